"""Packed updates of rows that are not float32: 100 steps, the same bits."""

from __future__ import annotations

import pytest

from tests.equivalence.training import compare
from tests.equivalence.update_fronts import train_function
from tests.equivalence.update_report import assert_updates_packed
from tests.equivalence.update_situations import FULL, TablesAndKernels
from tests.support.raw_optimizers import RAW

# TensorFlow has no bfloat16 kernel of ResourceSparseApplyRMSProp; applied in turn means not packed.
SKIPPED = {("bfloat16", "RMSprop"), ("bfloat16", "RMSprop, momentum")}
RULES = [rule for rule in RAW if "in turn" not in rule]
SLICE = {("float16", "Adagrad"), ("bfloat16", "SGD"), ("bfloat16", "Lion"), ("float64", "Adam")}


@pytest.mark.parametrize(
    ("dtype", "rule"),
    [
        pytest.param(dtype, rule, id=f"{dtype}-{rule}")
        for dtype in ("float16", "bfloat16", "float64")
        for rule in RULES
        if (dtype, rule) not in SKIPPED and (FULL or (dtype, rule) in SLICE)
    ],
)
def test_training_gives_the_same_bits(dtype: str, rule: str) -> None:
    report = compare(lambda: train_function(RAW[rule], model=lambda: TablesAndKernels(dtype=dtype)))
    assert_updates_packed(report)

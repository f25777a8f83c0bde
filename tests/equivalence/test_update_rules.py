"""100 steps of every optimizer through every front end, with packed updates and without.

The model holds duplicates, one id for a whole batch, a shared table, an empty batch, rows of 1, 3, 5, 8 and 16
elements, int32 and int64 ids, several ids per example, fields joined on two axes or not at all. A normal run takes a
slice; this takes all:

    PICASSO_FULL_MATRIX=1 python -m pytest tests/equivalence
"""

from __future__ import annotations

import pytest

from tests.equivalence.training import compare
from tests.equivalence.update_report import assert_updates_packed, reasons
from tests.equivalence.update_rules import PROMISES, STOCK_FAILS, TRAININGS, promise
from tests.equivalence.update_situations import FULL
from tests.equivalence.update_table import DOCUMENT, table

SLICE = {
    "Keras 3": ("SGD", "Adagrad", "AdamW", "Ftrl", "Lion"),
    "tf_keras": ("Adagrad", "RMSprop, centered"),
    "tf_keras legacy": ("Adam", "RMSprop, momentum"),
    "v1 Session": ("SGD", "Ftrl"),
    "v1 in tf.function": ("Nesterov", "RMSprop, centered"),
    "raw TensorFlow": ("SGD", "Adagrad", "Adam", "Adagrad, by hand", "Adagrad, duplicates in turn"),
}
CASES = [
    pytest.param(front_end, rule, id=f"{front_end}-{rule}")
    for front_end, rules in TRAININGS.items()
    for rule in rules
    if promise(rule, front_end) != STOCK_FAILS and (FULL or rule in SLICE[front_end])
]


@pytest.mark.parametrize(("front_end", "rule"), CASES)
def test_training_keeps_its_promise(front_end: str, rule: str) -> None:
    promised = promise(rule, front_end)
    report = compare(TRAININGS[front_end][rule], promised.bound)
    if promised.declined:
        assert reasons(report) == {promised.declined}
    else:
        assert_updates_packed(report)


def test_the_slice_names_cases_that_exist() -> None:
    for front_end, rules in SLICE.items():
        assert set(rules) <= set(TRAININGS[front_end]), front_end
    assert SLICE.keys() == TRAININGS.keys()


def test_promises_are_about_cases_that_exist() -> None:
    for rule, front_end in PROMISES:
        assert rule in TRAININGS[front_end], (rule, front_end)


def test_the_document_has_the_table_that_is_tested() -> None:
    assert table() in DOCUMENT.read_text(), "docs/equivalence.md is behind: python -m tests.equivalence.update_table"

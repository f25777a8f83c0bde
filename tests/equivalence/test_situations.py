"""Situations from bug reports come out as in stock TensorFlow: the same bits, or the same class of error.

What several machines or a GPU would be needed for is not here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import keras
import pytest
import tf_keras

from tests.equivalence import keras_situations, multi_hot_situations, situations
from tests.equivalence.training import Snapshot, compare

ROOT = Path(__file__).parents[2]

RAW = {
    situations.ids_out_of_range: 2,
    multi_hot_situations.empty_batches: 2,
    multi_hot_situations.negative_ids_of_a_bag: 2,
    multi_hot_situations.tables_of_other_dtypes: 2,
    situations.a_list_of_tables: 1,
    situations.writes_between_reads: 2,
    situations.frozen_and_constant_tables: 3,
    situations.the_same_lookup_twice: 3,
    situations.one_function_in_many_threads: 2,
    situations.reference_variables: 0,
}
"""With the lookups that must be packed in one graph."""

KERAS = {
    keras_situations.clipped_gradients: 2,
    keras_situations.masked_padding: 2,
    keras_situations.regularized_tables: 2,
    keras_situations.an_id_many_times_in_an_example: 2,
    keras_situations.changing_batches: 2,
    keras_situations.hashed_ids: 3,
    keras_situations.words_that_xla_cannot_look_up: 2,
    keras_situations.accumulated_gradients: 2,
    keras_situations.many_features_to_serve: keras_situations.FEATURES,
}
"""Likewise."""

FRONT_ENDS = {"keras": keras, "tf_keras": tf_keras}


def _name(value: object) -> str | None:
    return getattr(value, "__name__", None)


@pytest.mark.parametrize(("situation", "packed"), RAW.items(), ids=_name)
def test_raw_tensorflow(situation: Callable[[], Snapshot], packed: int) -> None:
    report = compare(situation)
    assert max((graph.lookups_packed for graph in report.graphs), default=0) >= packed, report.details()


@pytest.mark.parametrize("front_end", FRONT_ENDS)
@pytest.mark.parametrize(("situation", "packed"), KERAS.items(), ids=_name)
def test_keras(situation: Callable[[ModuleType], Snapshot], packed: int, front_end: str) -> None:
    front = FRONT_ENDS[front_end]

    def run() -> Snapshot:
        front.backend.clear_session()
        front.utils.set_random_seed(3)
        return situation(front)

    report = compare(run)
    assert max((graph.lookups_packed for graph in report.graphs), default=0) >= packed, report.details()


@pytest.mark.parametrize("front_end", FRONT_ENDS)
def test_two_replicas_in_a_process_of_their_own(front_end: str) -> None:
    environment = {**os.environ, "TF_USE_LEGACY_KERAS": "1" if front_end == "tf_keras" else "0"}
    command = [sys.executable, "-m", keras_situations.__name__, front_end]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    assert max(json.loads(done.stdout.splitlines()[-1])) >= 2

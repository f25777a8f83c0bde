"""What optimizers of Keras 3 and tf_keras can do besides their rule: packed or declined, never other numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import keras
import pytest
import tf_keras

from tests.equivalence.training import Snapshot, compare
from tests.equivalence.update_fronts import RATE, keras_model, train_keras
from tests.equivalence.update_report import assert_updates_packed, reasons, updates
from tests.equivalence.update_situations import FULL, TABLES

FRONT_ENDS = {"Keras 3": keras, "tf_keras": tf_keras}


@contextmanager
def _mixed_float16(front: ModuleType) -> Iterator[None]:
    front.mixed_precision.set_global_policy("mixed_float16")
    try:
        yield
    finally:
        front.mixed_precision.set_global_policy("float32")


def _scaled(front: ModuleType, optimizer: str) -> Any:
    """The optimizer with loss scaling."""
    optimizers = front.optimizers
    wrap = optimizers.LossScaleOptimizer if front is keras else front.mixed_precision.LossScaleOptimizer
    return wrap(getattr(optimizers, optimizer)(RATE))


def _schedule(front: ModuleType, name: str, *args: float) -> Any:
    return getattr(front.optimizers.schedules, name)(RATE, *args)


# Name of the option: the optimizer, for one front end or for both.
OPTIMIZERS: dict[str, Callable[[ModuleType], Any]] = {
    "clipnorm": lambda front: front.optimizers.SGD(RATE, clipnorm=0.1),
    "clipvalue": lambda front: front.optimizers.Adam(RATE, clipvalue=0.01),
    "global_clipnorm": lambda front: front.optimizers.Adam(RATE, global_clipnorm=0.1),
    "global_clipnorm, Adagrad": lambda front: front.optimizers.Adagrad(RATE, global_clipnorm=0.1),
    "weight decay": lambda front: front.optimizers.SGD(RATE, weight_decay=0.01),
    "weight decay, Adagrad": lambda front: front.optimizers.Adagrad(RATE, weight_decay=0.01),
    "EMA": lambda front: front.optimizers.Adam(RATE, use_ema=True),
    "exponential decay": lambda front: front.optimizers.Adagrad(_schedule(front, "ExponentialDecay", 10, 0.9)),
    "cosine decay": lambda front: front.optimizers.Adam(_schedule(front, "CosineDecay", 50)),
}
REGULARIZERS: dict[str, Callable[[ModuleType], Any]] = {
    "L1": lambda front: front.regularizers.L1(0.01),
    "L2": lambda front: front.regularizers.L2(0.01),
    "L1 and L2": lambda front: front.regularizers.L1L2(0.01, 0.01),
    "L2 of nothing": lambda front: front.regularizers.L2(0.0),
}
SLICE = {
    "Keras 3": {"global_clipnorm", "weight decay", "EMA", "exponential decay", "L2"},
    "tf_keras": {"clipvalue", "cosine decay", "L1 and L2"},
}


def _cases(names: dict[str, Any]) -> list[Any]:
    cases = [(front, name) for front in FRONT_ENDS for name in names if FULL or name in SLICE[front]]
    return [pytest.param(*case, id="-".join(case)) for case in cases]


@pytest.mark.parametrize(("front_end", "name"), _cases(OPTIMIZERS))
def test_an_option_of_the_optimizer(front_end: str, name: str) -> None:
    front = FRONT_ENDS[front_end]
    assert_updates_packed(compare(lambda: train_keras(front, lambda: OPTIMIZERS[name](front))))


@pytest.mark.parametrize("optimizer", ["SGD", "Adam"] if FULL else ["Adam"])
@pytest.mark.parametrize(("front_end", "name"), _cases(REGULARIZERS))
def test_a_regularizer_of_the_tables(front_end: str, name: str, optimizer: str) -> None:
    """The gradients of the tables are dense then."""
    front = FRONT_ENDS[front_end]

    def build(front: ModuleType) -> Any:
        return keras_model(front, embeddings_regularizer=REGULARIZERS[name](front))

    report = compare(lambda: train_keras(front, lambda: getattr(front.optimizers, optimizer)(RATE), build=build))
    assert sum(updates(report)) >= len(TABLES), report.details()
    assert not reasons(report), report.details()


@pytest.mark.parametrize("optimizer", ["SGD", "Adam"] if FULL else ["Adam"])
@pytest.mark.parametrize("front_end", FRONT_ENDS)
def test_loss_scaling_with_mixed_float16(front_end: str, optimizer: str) -> None:
    front = FRONT_ENDS[front_end]

    def train() -> Snapshot:
        with _mixed_float16(front):
            return train_keras(front, lambda: _scaled(front, optimizer))

    assert_updates_packed(compare(train))


@pytest.mark.parametrize("optimizer", ["SGD", "Adagrad", "Adam"] if FULL else ["Adagrad"])
def test_accumulated_gradients(optimizer: str) -> None:
    """Tables are packed; what else is written under a condition is left alone."""

    def make() -> Any:
        return getattr(keras.optimizers, optimizer)(RATE, gradient_accumulation_steps=3)

    report = compare(lambda: train_keras(keras, make))
    assert sum(updates(report)) >= len(TABLES), report.details()
    assert reasons(report) <= {"other_control_flow", "unordered_write"}, report.details()


@pytest.mark.parametrize("front_end", FRONT_ENDS if FULL else [])
def test_an_average_that_overwrites_the_variables_now_and_then(front_end: str) -> None:
    front = FRONT_ENDS[front_end]

    def make() -> Any:
        return front.optimizers.SGD(RATE, use_ema=True, ema_overwrite_frequency=7)

    report = compare(lambda: train_keras(front, make))
    assert sum(updates(report)) >= 2 * len(TABLES), report.details()
    assert reasons(report) <= {"not_an_update"}, report.details()


@pytest.mark.parametrize("optimizer", ["Adagrad", "Adam"] if FULL else ["Adam"])
@pytest.mark.parametrize("front_end", FRONT_ENDS if FULL else ["Keras 3"])
def test_several_steps_per_execution(front_end: str, optimizer: str) -> None:
    front = FRONT_ENDS[front_end]

    def make() -> Any:
        return getattr(front.optimizers, optimizer)(RATE)

    assert_updates_packed(compare(lambda: train_keras(front, make, steps_per_execution=4)))


@pytest.mark.parametrize("front_end", FRONT_ENDS if FULL else [])
def test_a_constraint_of_the_tables(front_end: str) -> None:
    front = FRONT_ENDS[front_end]

    def build(front: ModuleType) -> Any:
        return keras_model(front, embeddings_constraint=front.constraints.NonNeg())

    report = compare(lambda: train_keras(front, lambda: front.optimizers.SGD(RATE), build=build))
    assert sum(updates(report)) >= len(TABLES), report.details()

"""Keras models whose train step is their own, or whose tables are not all trained the same way."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from tests.equivalence.training import Snapshot, compare
from tests.equivalence.update_fronts import RATE, keras_model, keras_snapshot, sum_of_squares, train_keras
from tests.equivalence.update_report import assert_updates_packed, updates
from tests.equivalence.update_situations import FULL, STEPS, TABLES, dataset

FRONT_ENDS = {"Keras 3": keras, "tf_keras": tf_keras}


def _tensors(variables: list[Any]) -> list[tf.Variable]:
    return [getattr(variable, "value", variable) if hasattr(variable, "path") else variable for variable in variables]


def _loss(model: Any, data: Any) -> tf.Tensor:
    x, y = data
    return sum_of_squares(y, model(x, training=True))


def _own_step(front: ModuleType, train_step: Any) -> Any:
    """The usual model with another train step."""
    usual = keras_model(front)

    class Model(front.Model):
        pass

    Model.train_step = train_step
    return Model(usual.inputs, usual.outputs[0]) if front is tf_keras else Model(usual.input, usual.output)


def test_a_train_step_that_scatters_by_hand():
    def train_step(self, data):
        with tf.GradientTape() as tape:
            loss = _loss(self, data)
        variables = _tensors(self.trainable_variables)
        for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
            if isinstance(gradient, tf.IndexedSlices):
                variable.scatter_sub(tf.IndexedSlices(gradient.values * RATE, gradient.indices))
            else:
                variable.assign_sub(gradient * RATE)
        return {"loss": loss}

    def build(front):
        return _own_step(front, train_step)

    report = compare(lambda: train_keras(keras, lambda: keras.optimizers.SGD(RATE), build=build))
    assert_updates_packed(report)


@pytest.mark.parametrize("front_end", FRONT_ENDS if FULL else ["Keras 3"])
def test_two_optimizers_in_one_step(front_end):
    """Wide and deep: Ftrl for the wide tables, Adagrad for all else."""
    front = FRONT_ENDS[front_end]
    made: list[Any] = []

    def train_step(self, data):
        with tf.GradientTape() as tape:
            loss = _loss(self, data)
        variables = self.trainable_variables
        gradients = tape.gradient(loss, _tensors(variables) if front is keras else variables)
        pairs = list(zip(gradients, variables, strict=True))
        wide = [pair for pair in pairs if pair[1].shape[-1] in (1, 3)]
        made[-1].apply_gradients(wide)
        self.optimizer.apply_gradients([pair for pair in pairs if not any(pair is other for other in wide)])
        return {"loss": loss}

    def build(front):
        model = _own_step(front, train_step)
        made.append(front.optimizers.Ftrl(RATE, l1_regularization_strength=0.01))
        made[-1].build([v for v in model.trainable_variables if v.shape[-1] in (1, 3)])
        return model

    def train() -> Snapshot:
        found = train_keras(front, lambda: front.optimizers.SGD(RATE, momentum=0.9), build=build)
        slots = made[-1].variables
        slots = slots() if callable(slots) else slots
        return found | {f"wide slot {i}": np.asarray(slot) for i, slot in enumerate(slots)}

    report = compare(train)
    assert sum(updates(report)) >= 2 * len(TABLES), report.details()
    assert len(updates(report)) >= 3, report.details()  # one op for both would have mixed the rules


@pytest.mark.parametrize("front_end", FRONT_ENDS if FULL else ["tf_keras"])
def test_a_frozen_table_stays_as_it_is(front_end):
    front = FRONT_ENDS[front_end]

    def build(front):
        model = keras_model(front)
        model.get_layer("city_table").trainable = False
        return model

    report = compare(lambda: train_keras(front, lambda: front.optimizers.Adam(RATE), build=build))
    assert_updates_packed(report, tables=len(TABLES) - 1)


@pytest.mark.parametrize("front_end", FRONT_ENDS if FULL else ["Keras 3"])
def test_weights_are_saved_and_loaded_in_between(tmp_path, front_end):
    front = FRONT_ENDS[front_end]
    path = str(tmp_path / "saved.weights.h5")

    def train() -> Snapshot:
        front.backend.clear_session()
        front.utils.set_random_seed(7)
        model = keras_model(front)
        model.compile(front.optimizers.Adam(RATE), sum_of_squares)
        model.fit(dataset(STEPS // 2), verbose=0)
        model.save_weights(path)
        found = {f"saved {name}": value for name, value in keras_snapshot(model).items()}
        model.fit(dataset(STEPS // 4), verbose=0)
        model.load_weights(path)
        model.fit(dataset(STEPS // 2), verbose=0)
        return found | keras_snapshot(model)

    assert_updates_packed(compare(train))

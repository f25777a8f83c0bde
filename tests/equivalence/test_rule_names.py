"""The optimizers of the front ends go by their names in `graph_passes/analysis/known_rules.txt`."""

import importlib

import numpy as np
import pytest

import picasso_tf


def rules(front_end: str, optimizer: str) -> set[str]:
    """What the report calls the updates of one step of a model with two tables and a dense layer."""
    keras = importlib.import_module(front_end)
    layers = keras.layers
    inputs = [keras.Input((1,), dtype="int32") for _ in range(2)]
    vectors = [layers.Flatten()(layers.Embedding(50, 4)(one)) for one in inputs]
    model = keras.Model(inputs, layers.Dense(1)(layers.Concatenate()(vectors)))
    options = {"jit_compile": False} if front_end == "keras" else {}
    model.compile(getattr(keras.optimizers, optimizer)(), "mse", **options)
    ids = np.arange(8, dtype=np.int32).reshape(8, 1)
    picasso_tf.enable()
    try:
        model.fit([ids, ids], np.ones((8, 1), np.float32), verbose=0)
        report = picasso_tf.report()
    finally:
        picasso_tf.disable()
    return {item.rule for graph in report.graphs for item in graph.packed if item.kind == "update"}


@pytest.mark.parametrize("optimizer", ["SGD", "Adagrad", "Adam", "RMSprop"])
@pytest.mark.parametrize("front_end", ["keras", "tf_keras"])
def test_an_optimizer_of_keras_goes_by_its_name(front_end: str, optimizer: str) -> None:
    found = rules(front_end, optimizer)
    assert len(found) == 2, "one for the tables, one for the dense layer"
    assert all(optimizer in name.split(",")[0] for name in found), found
    assert {"sparse gradient" in name for name in found} == {True, False}, found

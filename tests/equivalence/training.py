"""Trains one model twice, stock and with the plugin, and compares every bit."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np
import tensorflow as tf

import picasso_tf

STEPS = 20
BATCH = 64
Snapshot = dict[str, np.ndarray]


def compare(train: Callable[[], Snapshot], bound: float = 0.0) -> picasso_tf.Report:
    """Runs `train` without and with the plugin; asserts that all it returns is bit-identical.

    Args:
        train: builds everything anew from fixed seeds and returns losses, outputs and variables by name.
        bound: not the same bits, but no difference above this fraction of the largest element of an array; 0: the same
            bits.

    Returns:
        The plugin's report, for the test to look at.
    """
    stock = train()
    picasso_tf.enable(verify=True)
    try:
        ours = train()
        report = picasso_tf.report()
    finally:
        picasso_tf.disable()
    assert stock.keys() == ours.keys()
    for name, expected in stock.items():
        assert expected.dtype == ours[name].dtype, name
        assert expected.tobytes() == ours[name].tobytes() or _within(bound, expected, ours[name]), (
            f"{name}: {np.sum(expected != ours[name])} of {expected.size} elements differ, by up to "
            f"{_difference(expected, ours[name]):.2g} where the largest is {_largest(expected):.2g}"
        )
    assert all(not graph.failures for graph in report.graphs)
    return report


def _within(bound: float, expected: np.ndarray, ours: np.ndarray) -> bool:
    return bound > 0 and bool(_difference(expected, ours) <= bound * _largest(expected))


def _difference(expected: np.ndarray, ours: np.ndarray) -> float:
    return float(np.max(np.abs(expected.astype("float64") - ours), initial=0))


def _largest(array: np.ndarray) -> float:
    return float(np.max(np.abs(array.astype("float64")), initial=0))


def features(rows: dict[str, int], examples: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Skewed ids, [examples, 1], alternately int32 and int64, with many duplicates, and one dense column."""
    generator = np.random.default_rng(seed)
    columns = {
        name: np.minimum(generator.zipf(1.3, (examples, 1)), count - 1).astype("int32" if index % 2 else "int64")
        for index, (name, count) in enumerate(rows.items())
    }
    columns["age"] = generator.random((examples, 1), np.float32)
    return columns


def labels(examples: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 2, (examples, 1)).astype("float32")


ROWS = {"user": 50, "item": 1000, "hour": 24, "city": 300, "tag": 7}
WIDTHS = {"user": 8, "item": 16, "hour": 3, "city": 8, "tag": 1}


def keras_model(keras: ModuleType):
    """Wide and deep with tables of several widths, one of them shared by two fields."""
    layers = keras.layers
    inputs = {name: keras.Input((1,), dtype="int32" if i % 2 else "int64", name=name) for i, name in enumerate(ROWS)}
    inputs["age"] = keras.Input((1,), name="age")
    tables = {name: layers.Embedding(ROWS[name], WIDTHS[name], name=f"{name}_table") for name in ROWS}
    vectors = {name: tables[name](inputs[name]) for name in ROWS}
    vectors["hour_as_city"] = tables["city"](inputs["hour"])
    deep = layers.Concatenate()([*[layers.Flatten()(vector) for vector in vectors.values()], inputs["age"]])
    pairs = layers.Concatenate(axis=1)([vectors["user"], vectors["city"], vectors["hour_as_city"]])
    crossed = layers.Flatten()(layers.Dot(axes=(2, 2))([pairs, pairs]))
    hidden = layers.Dense(16, activation="relu")(layers.Concatenate()([deep, crossed]))
    return keras.Model(inputs, layers.Dense(1, activation="sigmoid")(hidden))


def train_keras(keras: ModuleType, optimizer: str, **compile_options) -> Snapshot:
    """`fit` for STEPS steps, then `predict`: loss of the epoch, every variable and slot, the predictions."""
    keras.backend.clear_session()
    keras.utils.set_random_seed(7)
    model = keras_model(keras)
    model.compile(getattr(keras.optimizers, optimizer)(0.05), "binary_crossentropy", **compile_options)
    examples = STEPS * BATCH
    x, y = features(ROWS, examples), labels(examples)
    history = model.fit(tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH), verbose=0)
    snapshot = {"loss": np.array(history.history["loss"]), "predictions": model.predict(x, BATCH, verbose=0)}
    for index, variable in enumerate(model.variables):
        snapshot[f"variable {index}"] = np.asarray(variable)
    slots = model.optimizer.variables
    for index, slot in enumerate(slots() if callable(slots) else slots):
        snapshot[f"slot {index}"] = np.asarray(slot)
    return snapshot

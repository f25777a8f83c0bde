"""Indicator columns through tf_keras: the same bits, and one op for the counts of all columns."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
import tensorflow as tf

from tests.equivalence.training import Snapshot, compare

EXAMPLES, BATCH = 60, 16  # the last batch is smaller
WORDS = np.array(["", "a", "bb", "ccc", "other"], object)


def inputs(values: int) -> dict[str, np.ndarray]:
    """`values` of each feature for each example; "" and -1 are missing."""
    random, size = np.random.default_rng(values), (EXAMPLES, values)
    return {
        "word": random.choice(WORDS, size),
        "tag": random.choice(WORDS, size),
        "city": random.choice(WORDS, size),
        "number": random.integers(-1, 6, size),
        "age": random.choice([-1.0, 18.0, 65.0, 70.0], (EXAMPLES, 1)).astype(np.float32),
    }


def columns() -> list:
    column = tf.feature_column
    number = column.categorical_column_with_identity("number", 5, default_value=0)
    indicated = [
        column.categorical_column_with_vocabulary_list("word", list(WORDS[1:3]), num_oov_buckets=2),
        column.categorical_column_with_vocabulary_list("tag", list(WORDS[1:4])),  # other words are -1
        column.categorical_column_with_hash_bucket("city", 9),
        number,
        column.bucketized_column(column.numeric_column("age"), [18.0, 65.0]),
        column.crossed_column(["word", "tag"], 30),
        column.crossed_column(["tag", "number"], 20),
    ]
    return [*(column.indicator_column(of) for of in indicated), column.embedding_column(number, 4)]


@pytest.mark.parametrize("static", [True, False], ids=["static batch", "any batch"])
@pytest.mark.parametrize("values", [1, 3])
def test_indicator_columns(values: int, static: bool) -> None:
    keras = importlib.import_module("tf_keras")

    def train() -> Snapshot:
        keras.backend.clear_session()
        keras.utils.set_random_seed(3)
        x = inputs(values)
        dtypes = {name: tf.string if array.dtype == object else array.dtype for name, array in x.items()}
        fields = {name: keras.Input(array.shape[1:], dtype=dtypes[name], name=name) for name, array in x.items()}
        hidden = keras.layers.Dense(4, activation="tanh")(keras.layers.DenseFeatures(columns())(fields))
        model = keras.Model(fields, keras.layers.Dense(1)(hidden))
        model.compile(keras.optimizers.Adagrad(0.1), "mse")
        y = np.random.default_rng(0).random((EXAMPLES, 1)).astype(np.float32)
        batches = tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH, drop_remainder=static)
        losses = np.array(model.fit(batches, verbose=0, epochs=2, shuffle=False).history["loss"])
        found = {f"{n} {v.name}": tf.convert_to_tensor(v).numpy() for n, v in enumerate(model.variables)}
        return {**found, "losses": losses, "scores": model.predict(batches, verbose=0)}

    report = compare(train)
    graphs = [graph for graph in report.graphs if graph.lookups_packed or graph.transforms_packed]
    assert graphs
    for graph in graphs:
        packs = [item.members for item in graph.packed if "/indicator_packing/" in item.node]
        assert [len(members) for members in packs] == [3 * 7]
        crosses = [item.members for item in graph.packed if "/cross_packing/" in item.node]
        assert [len(members) for members in crosses] == [2]

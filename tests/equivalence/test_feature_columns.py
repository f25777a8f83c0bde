"""Feature columns through tf_keras: the same bits, and columns that write straight into the matrix of all columns."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
import tensorflow as tf

from tests.equivalence.training import Snapshot, compare

BATCH, STEPS, ROWS = 16, 6, 12
WIDTHS = {"user": 8, "tag": 16, "city": 8, "price": 24, "bias": 1, "hour": 5}


def inputs(values: int) -> dict[str, np.ndarray]:
    """`values` of each feature for each example, some of them missing: -1 or an empty string."""
    random = np.random.default_rng(values)
    size = (STEPS * BATCH, values)
    words = np.where(random.random(size) < 0.4, b"", random.integers(0, ROWS + 3, size).astype("S2"))
    ids = {name: random.integers(-1, ROWS, size) for name in ("user", "bias", "hour")}
    return {**ids, "tag": words, "city": words[::-1], "price": random.random((len(words), 1), np.float32)}


def columns() -> list:
    column = tf.feature_column
    ids = {name: column.categorical_column_with_identity(name, ROWS) for name in ("user", "bias", "hour")}
    ids["tag"] = column.categorical_column_with_hash_bucket("tag", ROWS)
    ids["city"] = column.categorical_column_with_vocabulary_list("city", [str(i) for i in range(ROWS)])
    ids["price"] = column.bucketized_column(column.numeric_column("price"), [0.2, 0.5, 0.9])
    combiners = ("sum", "mean", "sqrtn") * 2
    return [
        column.embedding_column(ids[name], width, combiner)
        for (name, width), combiner in zip(WIDTHS.items(), combiners, strict=True)
    ]


@pytest.mark.parametrize("static", [True, False], ids=["static batch", "any batch"])
@pytest.mark.parametrize("values", [1, 3])
@pytest.mark.parametrize("optimizer", ["SGD", "Adagrad", "Adam"])
def test_columns_write_straight_into_the_matrix_of_all(optimizer: str, values: int, static: bool) -> None:
    keras = importlib.import_module("tf_keras")

    def train() -> Snapshot:
        keras.backend.clear_session()
        keras.utils.set_random_seed(3)
        x = inputs(values)
        dtypes = {name: tf.string if array.dtype.kind == "S" else array.dtype for name, array in x.items()}
        fields = {name: keras.Input(array.shape[1:], dtype=dtypes[name], name=name) for name, array in x.items()}
        hidden = keras.layers.Dense(4, activation="tanh")(keras.layers.DenseFeatures(columns())(fields))
        model = keras.Model(fields, keras.layers.Dense(1)(hidden))
        model.compile(getattr(keras.optimizers, optimizer)(0.1), "mse")
        y = np.random.default_rng(0).random((STEPS * BATCH, 1)).astype(np.float32)
        batches = tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH, drop_remainder=static)
        losses = np.array(model.fit(batches, verbose=0, epochs=2).history["loss"])
        variables = [*model.variables, *model.optimizer.variables]
        return {"losses": losses, **{f"{n} {v.name}": tf.convert_to_tensor(v).numpy() for n, v in enumerate(variables)}}

    graph = max(compare(train).graphs, key=lambda graph: graph.nodes_before)
    (pack,) = [item for item in graph.packed if item.kind == "lookup"]
    assert len(pack.members) == len(WIDTHS)
    # The ConcatV2 of all columns; Adagrad's rsqrt keeps something of the narrow ones where the batch is not known.
    assert len(pack.absorbed) == (static or optimizer != "Adagrad")
    assert graph.updates_packed >= len(WIDTHS) * (1 + (optimizer != "SGD"))
    assert not graph.declined


@pytest.mark.parametrize("static", [True, False], ids=["static batch", "any batch"])
@pytest.mark.parametrize("optimizer", ["Adagrad", "Adam"])
def test_weighted_columns(optimizer: str, static: bool) -> None:
    keras = importlib.import_module("tf_keras")
    column = tf.feature_column

    def train() -> Snapshot:
        keras.backend.clear_session()
        keras.utils.set_random_seed(3)
        random, size = np.random.default_rng(0), (STEPS * BATCH, 3)
        x = {"user": random.integers(-1, ROWS, size), "tag": random.integers(-1, ROWS, size)}
        x |= {f"{name}_weight": np.where(ids < 0, 0, random.random(size)).astype(np.float32) for name, ids in x.items()}
        combiners = {"user": "mean", "tag": "sqrtn"}
        columns = [
            column.embedding_column(
                column.weighted_categorical_column(
                    column.categorical_column_with_identity(name, ROWS), f"{name}_weight"
                ),
                8,
                combiner,
            )
            for name, combiner in combiners.items()
        ]
        fields = {name: keras.Input(array.shape[1:], dtype=array.dtype, name=name) for name, array in x.items()}
        hidden = keras.layers.Dense(4, activation="tanh")(keras.layers.DenseFeatures(columns)(fields))
        model = keras.Model(fields, keras.layers.Dense(1)(hidden))
        model.compile(getattr(keras.optimizers, optimizer)(0.1), "mse")
        y = random.random((len(x["user"]), 1)).astype(np.float32)
        batches = tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH, drop_remainder=static)
        losses = np.array(model.fit(batches, verbose=0, epochs=2).history["loss"])
        variables = [*model.variables, *model.optimizer.variables]
        return {"losses": losses, **{f"{n} {v.name}": tf.convert_to_tensor(v).numpy() for n, v in enumerate(variables)}}

    graph = max(compare(train).graphs, key=lambda graph: graph.nodes_before)
    assert graph.lookups_packed == 2
    assert graph.updates_packed >= 4

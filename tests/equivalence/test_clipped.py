"""Lookups with `max_norm`: inference gives stock's bits, and training too, where gradients keep what clips the rows."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.ops import embedding_ops

from tests.equivalence.test_pooled import COMBINERS, ROWS, bags
from tests.equivalence.training import Snapshot, compare

ONE, BAG, SAFE, SHARDED = "one id", "bag", "safe bag", "bag of a table in shards"


def new_tables(dtype: tf.DType = tf.float32) -> list[tf.Variable]:
    random = np.random.default_rng(3)
    scales = np.array([0.0, 0.1, 1.0, 5.0])[np.arange(ROWS) % 4, None]
    return [tf.Variable(tf.cast(random.standard_normal((ROWS, width)) * scales, dtype)) for width in (8, 72, 5)]


def look_up(kind: str, table: tf.Variable, parts: tuple, combiner: str, norm: float) -> tf.Tensor:
    if kind == ONE:
        return tf.nn.embedding_lookup(table, parts[1], max_norm=norm)
    ids = tf.SparseTensor(*parts)
    if kind == BAG:
        return tf.nn.embedding_lookup_sparse(table, ids, None, combiner, max_norm=norm)
    if kind == SAFE:
        return tf.nn.safe_embedding_lookup_sparse(table, ids, None, combiner, max_norm=norm, default_id=2)
    return embedding_ops.safe_embedding_lookup_sparse(table, ids, None, combiner, max_norm=norm)


@pytest.mark.parametrize("kind", [ONE, BAG, SAFE, SHARDED])
@pytest.mark.parametrize("dtype", [tf.float32, tf.float64], ids=lambda dtype: dtype.name)
def test_inference_gives_the_same_bits(dtype: tf.DType, kind: str) -> None:
    def predict() -> Snapshot:
        tables = new_tables(dtype)
        if kind == SHARDED:
            tables = [[tf.Variable(table[:31]), tf.Variable(table[31:])] for table in tables]
        function = tf.function(
            lambda *parts: [look_up(kind, *one) for one in zip(tables, parts, COMBINERS, (1.0, 2.5, 0.5), strict=True)],
            reduce_retracing=True,
        )
        found = {}
        for n in range(5):
            rows = function(*(bags(10 * n + f, kind in (SAFE, SHARDED), kind == BAG) for f in range(3)))
            found |= {f"{n} {f}": one.numpy() for f, one in enumerate(rows)}
        return found

    report = compare(predict)
    assert [graph.lookups_packed for graph in report.graphs] == [3] * len(report.graphs)
    assert not [item for graph in report.graphs for item in graph.declined]


@pytest.mark.parametrize("kind", [ONE, SAFE])
def test_training_gives_the_same_bits(kind: str) -> None:
    def train() -> Snapshot:
        tables = new_tables()

        @tf.function(reduce_retracing=True)
        def step(*parts: tuple) -> tf.Tensor:
            with tf.GradientTape() as tape:
                rows = [look_up(kind, *one, 1.0) for one in zip(tables, parts, COMBINERS, strict=True)]
                loss = sum(tf.reduce_mean(tf.tanh(one)) for one in rows)
            for table, gradient in zip(tables, tape.gradient(loss, tables), strict=True):
                table.scatter_sub(tf.IndexedSlices(gradient.values * 0.5, gradient.indices))
            return loss

        losses = np.array([step(*(bags(10 * n + f, kind == SAFE) for f in range(3))) for n in range(5)])
        return {"losses": losses, **{f"table {n}": table.numpy() for n, table in enumerate(tables)}}

    report = compare(train)
    declined = [item.code for graph in report.graphs for item in graph.declined if "truediv" in item.node]
    assert declined
    assert set(declined) == {"gradient_needed"}


@pytest.mark.parametrize(("dtype", "norm"), [(tf.float16, 1.0), (tf.float64, 0.1), (tf.float32, -1.0)])
def test_what_stays(dtype: tf.DType, norm: float) -> None:
    """Half types, a norm that is no float32, and one that is not above 0."""

    def predict() -> Snapshot:
        tables = new_tables(dtype)
        function = tf.function(lambda ids: [tf.nn.embedding_lookup(table, ids, max_norm=norm) for table in tables])
        return {str(f): tf.cast(rows, tf.float64).numpy() for f, rows in enumerate(function(np.arange(9)))}

    report = compare(predict)
    assert [item.code for item in report.graphs[0].declined] == ["rows_changed"] * 3

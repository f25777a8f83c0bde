"""Sums and means of embedded ragged ids: training gives stock's bits, whatever wrote them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import tensorflow as tf

from tests.equivalence.training import Snapshot, compare

ROWS, BATCH = 60, 20
WIDTHS = (8, 5, 1)
KINDS = ("sum", "mean", "flat values", "weights")


def ragged(seed: int, dtype: tf.DType) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values, row splits and weights of ragged ids, some rows of which are empty."""
    random = np.random.default_rng(seed)
    counts = np.minimum(random.zipf(1.4, BATCH), 40) * (random.random(BATCH) > 0.3)
    splits = np.concatenate([[0], np.cumsum(counts)])
    ids = random.zipf(1.5, splits[-1]) % ROWS
    return ids.astype(np.int32), splits.astype(np.int64), random.standard_normal(len(ids)).astype(dtype.as_numpy_dtype)


def pooled(kind: str, table: tf.Variable, ids: tf.RaggedTensor, weights: tf.Tensor) -> tf.Tensor:
    if kind == "flat values":
        return tf.reduce_sum(tf.ragged.map_flat_values(tf.nn.embedding_lookup, table, ids), axis=1)
    rows = tf.nn.embedding_lookup(table, ids)
    if kind == "weights":
        rows = rows.with_flat_values(rows.flat_values * weights[:, tf.newaxis])
    return (tf.reduce_mean if kind == "mean" else tf.reduce_sum)(rows, axis=1)


def trainer(kind: str, dtype: tf.DType, splits_dtype: tf.DType, rate: float = 0.1) -> Callable[[], Snapshot]:
    def train() -> Snapshot:
        tables = [tf.Variable(np.random.default_rng(w).standard_normal((ROWS, w)), dtype=dtype) for w in WIDTHS]

        @tf.function(reduce_retracing=True)
        def step(values: tf.Tensor, splits: tf.Tensor, weights: tf.Tensor) -> list[tf.Tensor]:
            with tf.GradientTape() as tape:
                ids = tf.RaggedTensor.from_row_splits(values, splits)
                found = [pooled(kind, table, ids, weights) for table in tables]
                found = [tf.where(tf.math.is_nan(one), tf.zeros([], dtype), one) for one in found]
                loss = tf.add_n([tf.reduce_sum(tf.tanh(one)) for one in found])
            for table, gradient in zip(tables, tape.gradient(loss, tables), strict=True):
                table.scatter_sub(tf.IndexedSlices(tf.cast(rate, dtype) * gradient.values, gradient.indices))
            return found

        found = {}
        for n in range(4):
            ids, splits, weights = ragged(n, dtype)
            for width, one in zip(WIDTHS, step(ids, tf.cast(splits, splits_dtype), weights), strict=True):
                found[f"pooled {n}, {width}"] = tf.cast(one, tf.float64).numpy()
        tables_after = {f"table {n}": tf.cast(table, tf.float64).numpy() for n, table in enumerate(tables)}
        return {**found, **tables_after}

    return train


@pytest.mark.parametrize("splits", [tf.int32, tf.int64], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("dtype", [tf.float32, tf.float64], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("kind", KINDS)
def test_ragged_ids_have_the_same_bits(kind: str, dtype: tf.DType, splits: tf.DType) -> None:
    graphs = compare(trainer(kind, dtype, splits)).graphs
    assert graphs
    for graph in graphs:
        assert (graph.lookups_packed, graph.updates_packed, graph.declined) == (len(WIDTHS), len(WIDTHS), ())


def test_half_types_are_declined() -> None:
    graph = compare(trainer("sum", tf.float16, tf.int64)).graphs[0]
    assert {item.code for item in graph.declined if "Segment" in item.node} == {"dtype_not_supported"}


def test_segment_ids_of_another_origin_stay() -> None:
    """They may be negative, or in any order."""
    table = tf.Variable(np.random.default_rng(0).standard_normal((9, 4)).astype(np.float32))

    def run() -> Snapshot:
        function = tf.function(
            lambda ids, segments: tf.math.unsorted_segment_sum(tf.nn.embedding_lookup(table, ids), segments, 3)
        )
        return {"sums": function(tf.constant([1, 2, 3, 4]), tf.constant([2, 0, -1, 2])).numpy()}

    graph = compare(run).graphs[0]
    assert {item.code for item in graph.declined} == {"ragged_reduction", "single_lookup"}

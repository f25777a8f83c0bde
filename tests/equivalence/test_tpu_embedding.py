"""TensorFlow's embedding API for TPUs, run on the CPU: training gives stock's bits for all kinds of features.

TensorFlow Recommenders' `TPUEmbedding` layer looks up by the same function; see test_recommenders.py.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import tensorflow as tf

from tests.equivalence.training import Snapshot, compare

embedding = tf.tpu.experimental.embedding
ROWS, BATCH = 50, 16
COMBINERS = ("sum", "mean", "sqrtn")


def ragged(seed: int) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
    """One id or more in each row, and their weights."""
    random = np.random.default_rng(seed)
    lengths = random.integers(1, 20, BATCH)
    ids = tf.RaggedTensor.from_row_lengths(random.zipf(1.5, lengths.sum()) % ROWS, lengths)
    return ids, ids.with_values(random.random(lengths.sum()).astype(np.float32))


def batch(kind: str, seed: int) -> tuple:
    ids, weights = ragged(seed)
    if kind == "dense":
        return tf.constant(ids.values[:BATCH]), None
    if "sparse" in kind:
        ids, weights = ids.to_sparse(), weights.to_sparse()
    return ids, weights if "weights" in kind else None


def trainer(kind: str) -> Callable[[], Snapshot]:
    def train() -> Snapshot:
        configs = [embedding.TableConfig(ROWS, 8, combiner=combiner, name=combiner) for combiner in COMBINERS]
        tables = {
            config: tf.Variable(np.random.default_rng(n).standard_normal((ROWS, 8)).astype(np.float32))
            for n, config in enumerate(configs)
        }
        features = [embedding.FeatureConfig(table=config, name=config.name) for config in configs]

        @tf.function
        def step(ids: tf.Tensor, weights: tf.Tensor | None) -> list[tf.Tensor]:
            with tf.GradientTape() as tape:
                weights = None if weights is None else [weights] * 3
                found = embedding.serving_embedding_lookup([ids] * 3, weights, tables, features)
                loss = tf.add_n([tf.reduce_sum(tf.tanh(one)) for one in found])
            for table, gradient in zip(tables.values(), tape.gradient(loss, list(tables.values())), strict=True):
                table.scatter_sub(tf.IndexedSlices(0.1 * gradient.values, gradient.indices))
            return found

        found = {}
        for n in range(4):
            results = step(*batch(kind, n))
            found |= {f"looked up {n}, {i}": one.numpy() for i, one in enumerate(results)}
        return {**found, **{f"table {n}": table.numpy() for n, table in enumerate(tables.values())}}

    return train


@pytest.mark.parametrize("kind", ["dense", "sparse", "sparse with weights", "ragged"])
def test_lookups_and_updates_are_packed(kind: str) -> None:
    graph = max(compare(trainer(kind)).graphs, key=lambda graph: graph.nodes_before)
    assert (graph.lookups_packed, graph.updates_packed) == (3, 3)
    assert not [item for item in graph.declined if item.code != "single_transform"]


def test_ragged_weights_are_declined() -> None:
    """They are repeated by gathers of their own before they meet the rows; the gathers and the updates are packed."""
    graph = max(compare(trainer("ragged with weights")).graphs, key=lambda graph: graph.nodes_before)
    assert {item.code for item in graph.declined if "Segment" in item.node} == {"ragged_reduction"}
    assert graph.updates_packed == 3

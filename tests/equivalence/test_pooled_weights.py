"""Multi-hot features with weights: training and inference give stock's bits, whatever the front end."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import pytest
import tensorflow as tf

from tests.equivalence.test_pooled import (
    CHOSEN,
    COMBINERS,
    ROWS,
    any_order_trainer,
    bags,
    new_tables,
    shared_trainer,
    trainer,
)
from tests.equivalence.training import Snapshot, compare

PLAIN, FAST, SAFE, DEFAULT = "plain", "plain, fast", "safe", "safe with a default id"
KINDS = (PLAIN, FAST, SAFE, DEFAULT)
NAMES = {PLAIN: "embedding_lookup_sparse", SAFE: "embedding_lookup"}


def weighted_bags(seed: int, kind: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The parts of a SparseTensor and of the weights of its ids, of which some are zero or negative."""
    indices, ids, shape = bags(seed, kind in (SAFE, DEFAULT), kind in (PLAIN, FAST))
    random = np.random.default_rng(seed + 1)
    return indices, ids, random.integers(-1, 8, len(ids)).astype(np.float32) / 3, shape


def lookup(kind: str, table: tf.Variable, parts: tuple, combiner: str) -> tf.Tensor:
    indices, ids, weights, shape = parts
    weights = tf.cast(weights, table.dtype)
    bag, weight_bag = tf.SparseTensor(indices, ids, shape), tf.SparseTensor(indices, weights, shape)
    if kind in (PLAIN, FAST):
        fast = kind == FAST
        return tf.nn.embedding_lookup_sparse(table, bag, weight_bag, combiner, allow_fast_lookup=fast)
    default_id = 3 if kind == DEFAULT else None
    return tf.nn.safe_embedding_lookup_sparse(table, bag, weight_bag, combiner, default_id)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float32, tf.float64], ids=lambda dtype: dtype.name)
def test_inference_gives_the_same_bits(dtype: tf.DType, kind: str) -> None:
    def predict() -> Snapshot:
        tables = new_tables(dtype)
        function = tf.function(
            lambda *parts: [lookup(kind, *one) for one in zip(tables, parts, COMBINERS, strict=True)],
            reduce_retracing=True,
        )
        found = {}
        for n in range(5):
            results = function(*(weighted_bags(10 * n + f, kind) for f in range(3)))
            found |= {f"{n} {f}": tf.cast(one, tf.float64).numpy() for f, one in enumerate(results)}
        return found

    report = compare(predict)
    assert [graph.lookups_packed for graph in report.graphs] == [3] * len(report.graphs)
    assert not [item for graph in report.graphs for item in graph.declined]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("optimizer", CHOSEN)
@pytest.mark.parametrize("front_end", ["keras", "tf_keras"])
def test_training_gives_the_same_bits(front_end: str, optimizer: str, kind: str) -> None:
    train = trainer(front_end, optimizer, functools.partial(lookup, kind), lambda seed: weighted_bags(seed, kind))
    report = compare(train)
    graph = max(report.graphs, key=lambda graph: graph.nodes_before)
    assert graph.lookups_packed == 3
    assert graph.updates_packed >= 3 + (optimizer != "SGD") * 3
    assert not [item for item in graph.declined if "scatter" in item.node.lower()]


@pytest.mark.parametrize("kind", [PLAIN, SAFE])
def test_weights_that_are_learned_keep_their_lookup(kind: str) -> None:
    """Their gradient needs the rows by themselves."""

    def train() -> Snapshot:
        (table, *_), scale = new_tables(), tf.Variable(0.5)

        @tf.function(reduce_retracing=True)
        def step(indices: tf.Tensor, ids: tf.Tensor, weights: tf.Tensor, shape: tf.Tensor) -> tf.Tensor:
            with tf.GradientTape() as tape:
                looked_up = lookup(kind, table, (indices, ids, weights * scale, shape), "mean")
                loss = tf.reduce_sum(tf.tanh(looked_up))
            of_table, of_scale = tape.gradient(loss, [table, scale])
            table.scatter_sub(tf.IndexedSlices(0.1 * of_table.values, of_table.indices))
            scale.assign_sub(0.01 * of_scale)
            return loss

        losses = np.array([step(*weighted_bags(n, kind)) for n in range(4)])
        return {"losses": losses, "table": table.numpy(), "scale": scale.numpy()}

    graph = compare(train).graphs[0]
    assert (graph.lookups_packed, graph.updates_packed) == (0, 1)
    assert {item.node: item.code for item in graph.declined}[NAMES[kind]] == "gradient_needed"


@pytest.mark.parametrize("combiner", COMBINERS)
def test_rows_of_a_sparse_tensor_may_come_in_any_order(combiner: str) -> None:
    train = any_order_trainer(functools.partial(lookup, SAFE), combiner, lambda n: weighted_bags(n, SAFE))
    graph = compare(train).graphs[0]
    assert (graph.lookups_packed, graph.updates_packed) == (2, 2)


def test_a_table_of_two_features_and_a_feature_of_two_tables() -> None:
    report = compare(shared_trainer(functools.partial(lookup, SAFE), lambda n: weighted_bags(n, SAFE)))
    assert max(graph.lookups_packed for graph in report.graphs) == 4


def run_on(function: Callable, *arguments: tf.Tensor) -> Callable[[], Snapshot]:
    """Calls a new tf.function of two tables, whose values a cast changes."""

    def run() -> Snapshot:
        tables = [tf.Variable(np.random.default_rng(n).standard_normal((ROWS, 8)) * 3, dtype="float32") for n in (0, 1)]
        results = tf.function(lambda *given: [function(table, *given) for table in tables])(*arguments)
        return {str(n): result.numpy() for n, result in enumerate(results)}

    return run


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.int32], ids=lambda dtype: dtype.name)
def test_casts_that_change_rows_are_no_part_of_a_lookup(dtype: tf.DType) -> None:
    ids, segments, weights = tf.constant([3, 1, 4, 1]), tf.constant([0, 0, 1, 2]), tf.constant([0.5, 2.0, 1.0, 3.0])

    def by_hand(table: tf.Variable, ids: tf.Tensor, segments: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        rows = tf.cast(tf.cast(tf.nn.embedding_lookup(table, ids), dtype), tf.float32)
        return tf.math.segment_sum(rows * tf.expand_dims(weights, 1), segments)

    compare(run_on(by_hand, ids, segments, weights))


def test_segments_of_any_dtype_and_one_weight_for_all_ids() -> None:
    def by_hand(table: tf.Variable, segments: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        rows = tf.nn.embedding_lookup(table, tf.constant([3, 1, 4, 1]))
        return tf.math.segment_sum(rows * tf.expand_dims(weights, 1), tf.cast(segments, tf.int32))

    for segments in (tf.constant([0.0, 0.0, 1.0, 2.0]), tf.constant([0, 0, 1, 2], tf.int16)):
        compare(run_on(by_hand, segments, tf.constant([0.5, 2.0, 1.0, 3.0])))
    compare(run_on(by_hand, tf.constant([0, 0, 1, 2], tf.int64), tf.constant([2.0])))


@pytest.mark.parametrize("combiner", COMBINERS)
def test_no_id_but_one_weight(combiner: str) -> None:
    """As of one example whose feature is missing and whose weight is not."""

    def safe(table: tf.Variable, indices: tf.Tensor, ids: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        bag = tf.SparseTensor(indices, ids, [1, 1])
        weight_bag = tf.SparseTensor(tf.zeros([1, 2], tf.int64), weights, [1, 1])
        return tf.nn.safe_embedding_lookup_sparse(table, bag, weight_bag, combiner)

    def run() -> Snapshot:
        tables = new_tables()[:2]
        traced = tf.function(
            lambda *given: [safe(table, *given) for table in tables],
            input_signature=[
                tf.TensorSpec([None, 2], tf.int64),
                tf.TensorSpec([None], tf.int64),
                tf.TensorSpec([None], tf.float32),
            ],
            autograph=False,
        )
        results = traced(tf.zeros([0, 2], tf.int64), tf.zeros([0], tf.int64), tf.constant([0.5]))
        return {str(n): result.numpy() for n, result in enumerate(results)}

    compare(run)

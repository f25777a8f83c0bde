"""Tables in shards: training and inference with lists of variables give stock's bits, whatever the front end."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.distribute import sharded_variable
from tensorflow.python.ops import embedding_ops

from tests.equivalence.situations import attempts
from tests.equivalence.test_pooled import OPTIMIZERS, bags
from tests.equivalence.training import Snapshot, compare
from tests.equivalence.update_situations import FULL

WIDTHS = (8, 4, 5)
SHARDS = ((24, 23, 23), (20, 20, 20, 20), (36, 35))  # rows of each
ONE, BAG, SAFE, WEIGHTED = "one id", "bag", "safe bag", "weighted bag"
KINDS = (ONE, BAG, SAFE, WEIGHTED)
COMBINERS = ("sum", "mean", "sqrtn")
CHOSEN = OPTIMIZERS if FULL else ("SGD", "Adam")


def new_tables(dtype: tf.DType = tf.float32) -> list[list[tf.Variable]]:
    random = np.random.default_rng(3)
    return [
        [tf.Variable(tf.cast(random.standard_normal((rows, width)), dtype)) for rows in shards]
        for width, shards in zip(WIDTHS, SHARDS, strict=True)
    ]


def batch(kind: str, seed: int) -> tuple[np.ndarray, ...]:
    """What a lookup of a kind takes for one table; ids are below 60."""
    if kind == ONE:
        return (np.random.default_rng(seed).zipf(1.4, (24, 2)) % 60,)
    parts = bags(seed, kind == SAFE, kind == BAG)
    weights = np.random.default_rng(seed + 1).random(len(parts[1])).astype(np.float32)
    return (*parts, weights) if kind == WEIGHTED else parts


def look_up(kind: str, table: list[tf.Variable], parts: tuple, combiner: str, strategy: str) -> tf.Tensor:
    if kind == ONE:
        rows = embedding_ops.embedding_lookup(table, parts[0], partition_strategy=strategy)
        return tf.reshape(rows, [-1, 2 * table[0].shape[1]])
    ids = tf.SparseTensor(*parts[:3])
    if kind == WEIGHTED:
        weights = tf.SparseTensor(parts[0], tf.cast(parts[3], table[0].dtype), parts[2])
        return embedding_ops.safe_embedding_lookup_sparse(table, ids, weights, combiner, partition_strategy=strategy)
    if kind == SAFE:
        return embedding_ops.safe_embedding_lookup_sparse(table, ids, None, combiner, partition_strategy=strategy)
    return embedding_ops.embedding_lookup_sparse(table, ids, None, strategy, combiner=combiner)


def trainer(front_end: str, optimizer: str, kind: str, strategy: str) -> Callable[[], Snapshot]:
    """Trains three tables in shards, each with a combiner, for some steps."""
    keras = importlib.import_module(front_end)

    def train() -> Snapshot:
        tables = new_tables()
        shards = [shard for table in tables for shard in table]
        rule = getattr(keras.optimizers, optimizer)(0.1)
        rule.build(shards)

        @tf.function(reduce_retracing=True)
        def step(*parts: tuple) -> tf.Tensor:
            with tf.GradientTape() as tape:
                rows = [look_up(kind, *one, strategy) for one in zip(tables, parts, COMBINERS, strict=True)]
                loss = tf.reduce_mean(tf.square(tf.tanh(tf.concat(rows, 1)) - 0.5))
            rule.apply_gradients(zip(tape.gradient(loss, shards), shards, strict=True))
            return loss

        losses = np.array([step(*(batch(kind, 10 * n + f) for f in range(3))) for n in range(6)])
        slots = rule.variables() if callable(rule.variables) else rule.variables
        found = {f"slot {n}": tf.convert_to_tensor(slot).numpy() for n, slot in enumerate(slots)}
        return {**found, "losses": losses, **{f"shard {n}": shard.numpy() for n, shard in enumerate(shards)}}

    return train


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("optimizer", "strategy"), [*((name, "mod") for name in CHOSEN), ("SGD", "div")])
@pytest.mark.parametrize("front_end", ["keras", "tf_keras"] if FULL else ["tf_keras"])
def test_training_gives_the_same_bits(front_end: str, optimizer: str, kind: str, strategy: str) -> None:
    report = compare(trainer(front_end, optimizer, kind, strategy))
    graph = max(report.graphs, key=lambda graph: graph.nodes_before)
    shards = sum(len(rows) for rows in SHARDS)
    assert graph.lookups_packed == 3
    assert graph.updates_packed >= shards * (1 + (optimizer != "SGD"))
    assert not graph.declined


@pytest.mark.parametrize("strategy", ["mod", "div"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float32, tf.float64], ids=lambda dtype: dtype.name)
def test_inference_gives_the_same_bits(dtype: tf.DType, kind: str, strategy: str) -> None:
    def predict() -> Snapshot:
        tables = new_tables(dtype)
        function = tf.function(
            lambda *parts: [look_up(kind, *one, strategy) for one in zip(tables, parts, COMBINERS, strict=True)],
            reduce_retracing=True,
        )
        found = {}
        for n in range(5):
            rows = function(*(batch(kind, 10 * n + f) for f in range(3)))
            found |= {f"{n} {f}": tf.cast(one, tf.float64).numpy() for f, one in enumerate(rows)}
        return found

    report = compare(predict)
    assert [graph.lookups_packed for graph in report.graphs] == [3] * len(report.graphs)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_sharded_variables_and_ids_of_any_shape(dtype: type) -> None:
    def predict() -> Snapshot:
        tables = [sharded_variable.ShardedVariable(shards) for shards in new_tables()]
        look = tf.function(lambda *ids: [tf.nn.embedding_lookup(*one) for one in zip(tables, ids, strict=True)])
        found = {}
        for n, shape in enumerate([(7,), (2, 3), (), (0,), (0, 4), (2, 1, 2)]):
            ids = [np.random.default_rng(n).integers(0, 70, shape).astype(dtype) for _ in tables]
            found |= {f"{n} {f}": rows.numpy() for f, rows in enumerate(look(*ids))}
        return found

    report = compare(predict)
    assert all(graph.lookups_packed == 3 for graph in report.graphs)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("strategy", ["mod", "div"])
def test_ids_without_a_row_fail_alike(strategy: str, dtype: type) -> None:
    """An id of the whole table may lie beyond the end of its shard; int64 shards are cut to int32."""
    ids = [-1, 0, 22, 69, 70, 71, 72, 73, 78, 80, -70, np.iinfo(np.int32).max, np.iinfo(np.int32).min]
    if dtype == np.int64:
        ids += [2**33 * 23, 2**32 * 23 + 5, 2**62, np.iinfo(np.int64).max, np.iinfo(np.int64).min]

    def predict() -> Snapshot:
        tables = new_tables()
        look = tf.function(
            lambda ids: [embedding_ops.embedding_lookup(table, ids, partition_strategy=strategy) for table in tables]
        )
        each = {
            f"{f} {one}": lambda one=one, table=table: tf.function(
                lambda ids: embedding_ops.embedding_lookup(table, ids, partition_strategy=strategy)
            )(np.array([1, one], dtype))
            for f, table in enumerate(tables)
            for one in ids
        }
        return attempts(good=lambda: look(np.array([1, 2], dtype)), **each)

    report = compare(predict)
    assert max(graph.lookups_packed for graph in report.graphs) == 3


def test_a_shard_that_is_written_is_read_before_or_after_as_in_stock() -> None:
    def train() -> Snapshot:
        tables = new_tables()

        @tf.function
        def step(ids: tf.Tensor) -> list[tf.Tensor]:
            before = [tf.nn.embedding_lookup(table, ids) for table in tables]
            for table in tables:
                table[1].scatter_add(tf.IndexedSlices(tf.ones([1, table[1].shape[1]]), [0]))
            return before + [tf.nn.embedding_lookup(table, ids) for table in tables]

        found = {}
        for n in range(3):
            rows = step(np.array([1, 2, 3, 1], np.int64))
            found |= {f"{n} {f}": one.numpy() for f, one in enumerate(rows)}
        return found

    report = compare(train)
    assert report.graphs[0].lookups_packed == 6


@pytest.mark.parametrize("strategy", ["mod", "div"])
def test_partitioned_variables_in_a_session(strategy: str) -> None:
    v1 = tf.compat.v1

    def train() -> Snapshot:
        with tf.Graph().as_default(), v1.Session() as session:
            partitioner = v1.fixed_size_partitioner(3)
            start = v1.random_uniform_initializer(-1, 1, seed=3)
            options = {"initializer": start, "partitioner": partitioner, "use_resource": True}
            tables = [v1.get_variable(f"t{n}", (70, width), **options) for n, width in enumerate(WIDTHS)]
            ids = v1.placeholder(tf.int64, [None])
            rows = v1.concat([v1.nn.embedding_lookup(table, ids, strategy) for table in tables], 1)
            step = v1.train.AdagradOptimizer(0.1).minimize(tf.reduce_sum(tf.tanh(rows)))
            session.run(v1.global_variables_initializer())
            found = {}
            for n in range(4):
                found[f"rows {n}"] = session.run(rows, {ids: np.arange(n, 60, 3)})
                session.run(step, {ids: np.random.default_rng(n).zipf(1.4, 30) % 60})
            shards = [shard for table in tables for shard in table]
            return {**found, **{f"shard {n}": value for n, value in enumerate(session.run(shards))}}

    report = compare(train)
    packed = [graph.lookups_packed for graph in report.graphs]
    assert packed.count(3) >= 2
    assert max(graph.updates_packed for graph in report.graphs) >= 9

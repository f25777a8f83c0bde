"""Multi-hot features: training and inference with pooled lookups give stock's bits, whatever the front end."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable

import numpy as np
import pytest
import tensorflow as tf

from tests.equivalence.training import Snapshot, compare
from tests.equivalence.update_situations import FULL

ROWS, BATCH, MOST = 60, 24, 30
WIDTHS = (8, 16, 5)
SAFE, DEFAULT, PLAIN = "safe", "safe with a default id", "plain"
OPTIMIZERS = ("SGD", "Adagrad", "Adam", "RMSprop", "Ftrl", "Nadam", "Adamax", "Adadelta", "AdamW")
SLICE = ("SGD", "Adagrad", "Adam")
CHOSEN = OPTIMIZERS if FULL else SLICE


def bags(seed: int, negative: bool, last: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The parts of a SparseTensor with 0 to 30 ids in a row; `last`: the last row has one."""
    random = np.random.default_rng(seed)
    counts = np.minimum(random.zipf(1.4, BATCH), MOST) * (random.random(BATCH) > 0.3) * (seed % 5 != 4)
    if last:
        counts[-1] = 3
    rows = np.repeat(np.arange(BATCH), counts)
    columns = np.concatenate([np.arange(count) for count in counts])
    ids = random.zipf(1.5, len(rows)) % ROWS - 2 * negative
    return np.stack([rows, columns], 1).astype(np.int64), ids.astype(np.int64), np.array([BATCH, MOST], np.int64)


def lookup(kind: str, table: tf.Variable, parts: tuple, combiner: str) -> tf.Tensor:
    bag = tf.SparseTensor(*parts)
    if kind == PLAIN:
        return tf.nn.embedding_lookup_sparse(table, bag, None, combiner=combiner)
    return tf.nn.safe_embedding_lookup_sparse(table, bag, combiner=combiner, default_id=3 if kind == DEFAULT else None)


def new_tables(dtype: tf.DType = tf.float32) -> list[tf.Variable]:
    random = [np.random.default_rng(field).standard_normal((ROWS, width)) for field, width in enumerate(WIDTHS)]
    return [tf.Variable(tf.cast(values, dtype)) for values in random]


COMBINERS = ("sum", "mean", "sqrtn")
Lookup = Callable[[tf.Variable, tuple, str], tf.Tensor]
Batches = Callable[[int], tuple]


def trainer(front_end: str, optimizer: str, look_up: Lookup, batch: Batches, steps: int = 6) -> Callable[[], Snapshot]:
    """Trains tables, each with a combiner, and a layer behind them, for some steps, one of them without any id."""
    keras = importlib.import_module(front_end)

    def train() -> Snapshot:
        tables = new_tables()
        weights = tf.Variable(np.random.default_rng(9).standard_normal((sum(WIDTHS), 1)).astype(np.float32))
        rule = getattr(keras.optimizers, optimizer)(0.1)
        rule.build([*tables, weights])

        @tf.function(reduce_retracing=True)
        def step(*parts: tuple) -> tf.Tensor:
            with tf.GradientTape() as tape:
                looked_up = [look_up(*one) for one in zip(tables, parts, COMBINERS, strict=True)]
                loss = tf.reduce_mean(tf.square(tf.tanh(tf.concat(looked_up, 1) @ weights) - 0.5))
            gradients = tape.gradient(loss, [*tables, weights])
            rule.apply_gradients(zip(gradients, [*tables, weights], strict=True))
            return loss

        batches = [[batch(10 * n + f) for f in range(3)] for n in range(steps)]
        losses = np.array([step(*batch) for batch in batches])
        slots = rule.variables() if callable(rule.variables) else rule.variables
        found = {f"slot {n}": tf.convert_to_tensor(slot).numpy() for n, slot in enumerate(slots)}
        found |= {f"table {n}": table.numpy() for n, table in enumerate(tables)}
        return {**found, "losses": losses, "weights": weights.numpy()}

    return train


@pytest.mark.parametrize("kind", [SAFE, DEFAULT, PLAIN])
@pytest.mark.parametrize("optimizer", CHOSEN)
@pytest.mark.parametrize("front_end", ["keras", "tf_keras"])
def test_training_gives_the_same_bits(front_end: str, optimizer: str, kind: str) -> None:
    train = trainer(
        front_end, optimizer, functools.partial(lookup, kind), lambda seed: bags(seed, kind != PLAIN, kind == PLAIN)
    )
    report = compare(train)
    graph = max(report.graphs, key=lambda graph: graph.nodes_before)
    assert graph.lookups_packed == 3
    assert graph.updates_packed >= 3 + (optimizer != "SGD") * 3
    tables = [item for item in graph.declined if "scatter" in item.node.lower()]
    assert not tables


@pytest.mark.parametrize("kind", [SAFE, DEFAULT, PLAIN])
@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float32, tf.float64], ids=lambda dtype: dtype.name)
def test_inference_gives_the_same_bits(dtype: tf.DType, kind: str) -> None:
    def predict() -> Snapshot:
        tables = new_tables(dtype)
        function = tf.function(
            lambda *parts: [lookup(kind, *one) for one in zip(tables, parts, ("sum", "mean", "sqrtn"), strict=True)],
            reduce_retracing=True,
        )
        found = {}
        for n in range(5):
            results = function(*(bags(10 * n + f, kind != PLAIN) for f in range(3)))
            found |= {f"{n} {f}": tf.cast(one, tf.float64).numpy() for f, one in enumerate(results)}
        return found

    report = compare(predict)
    assert [graph.lookups_packed for graph in report.graphs] == [3] * len(report.graphs)


def any_order_trainer(look_up: Lookup, combiner: str, batch: Batches) -> Callable[[], Snapshot]:
    """Trains two tables on SparseTensors whose rows come in no order; the dense shape is the last part of a batch."""

    def train() -> Snapshot:
        tables = new_tables()[:2]

        @tf.function(reduce_retracing=True)
        def step(*parts: tf.Tensor) -> tf.Tensor:
            with tf.GradientTape() as tape:
                looked_up = tf.concat([look_up(table, parts, combiner) for table in tables], 1)
                loss = tf.reduce_sum(tf.tanh(looked_up))
            for table, gradient in zip(tables, tape.gradient(loss, tables), strict=True):
                table.scatter_sub(tf.IndexedSlices(0.1 * gradient.values, gradient.indices))
            return looked_up

        found = {}
        for n in range(4):
            *parts, shape = batch(n)
            order = np.random.default_rng(n).permutation(len(parts[0]))
            found[f"looked up {n}"] = step(*(part[order] for part in parts), shape).numpy()
        return {**found, **{f"table {n}": table.numpy() for n, table in enumerate(tables)}}

    return train


def shared_trainer(look_up: Lookup, batch: Batches) -> Callable[[], Snapshot]:
    """Trains a table that two features read, and two tables that each read one of these features."""
    keras = importlib.import_module("keras")

    def train() -> Snapshot:
        tables = new_tables()
        rule = keras.optimizers.Adagrad(0.1)
        rule.build(tables)

        @tf.function(reduce_retracing=True)
        def step(one: tuple, other: tuple) -> tf.Tensor:
            with tf.GradientTape() as tape:
                pairs = ((tables[0], one), (tables[0], other), (tables[1], one), (tables[2], other))
                loss = tf.reduce_sum(tf.square(tf.concat([look_up(*pair, "mean") for pair in pairs], 1)))
            rule.apply_gradients(zip(tape.gradient(loss, tables), tables, strict=True))
            return loss

        losses = np.array([step(batch(n), batch(n + 50)) for n in range(6)])
        return {"losses": losses, **{f"table {n}": table.numpy() for n, table in enumerate(tables)}}

    return train


@pytest.mark.parametrize("combiner", COMBINERS)
def test_rows_of_a_sparse_tensor_may_come_in_any_order(combiner: str) -> None:
    train = any_order_trainer(functools.partial(lookup, SAFE), combiner, lambda n: bags(n, True))
    graph = compare(train).graphs[0]
    assert (graph.lookups_packed, graph.updates_packed) == (2, 2)


def test_a_table_of_two_features_and_a_feature_of_two_tables() -> None:
    train = shared_trainer(functools.partial(lookup, SAFE), lambda n: bags(n, True))
    report = compare(train)
    assert max(graph.lookups_packed for graph in report.graphs) == 4

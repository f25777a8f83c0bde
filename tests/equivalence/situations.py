"""Situations that users have reported as bugs, in raw TensorFlow: each runs from fixed seeds and returns what came out.

Where it can, a situation has two tables, so that there is something to pack.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

import picasso_tf
from tests.equivalence.training import Snapshot

ROWS = 12
WIDTHS = (4, 6)


def attempts(**runs: Callable[[], Any]) -> Snapshot:
    """What each run gives, by its name; of one that TensorFlow refuses, the class of the error."""
    found: Snapshot = {}
    for name, run in runs.items():
        try:
            values = tf.nest.flatten(run(), expand_composites=True)
        except tf.errors.OpError as error:
            found[f"{name}: {type(error).__name__}"] = np.zeros(0)
        else:
            found |= {f"{name} {n}": np.asarray(value) for n, value in enumerate(values)}
    return found


def random_ids(*shape: int, seed: int = 0) -> np.ndarray:
    """Ids with duplicates, int32."""
    return np.random.default_rng(seed).integers(0, ROWS, shape, np.int32)


def new_tables(dtype: str = "float32") -> list[tf.Variable]:
    generator = np.random.default_rng(1)
    return [tf.Variable(tf.cast(generator.normal(size=(ROWS, width)), dtype)) for width in WIDTHS]


def gathered(tables: list[tf.Variable], ids: tf.Tensor) -> tf.Tensor:
    return tf.concat([tf.gather(table, ids) for table in tables], axis=-1)


def ids_out_of_range() -> Snapshot:
    """One id too many, or below 0: an error and no wrong row; when XLA compiles the function, what XLA does."""
    tables = new_tables()
    plain = tf.function(lambda ids: gathered(tables, ids))
    compiled = tf.function(lambda ids: gathered(tables, ids), jit_compile=True)
    above, below = tf.constant([1, ROWS]), tf.constant([-1, 1])
    return attempts(
        above=lambda: plain(above),
        below=lambda: plain(below),
        compiled_above=lambda: compiled(above),
        compiled_below=lambda: compiled(below),
        afterwards=lambda: plain(tf.constant([1, 2])),
    )


def a_list_of_tables() -> Snapshot:
    """A table in two parts of unequal size, its rows dealt out in blocks or in turn."""
    generator = np.random.default_rng(2)
    parts = [tf.Variable(generator.normal(size=(rows, 4)).astype("f")) for rows in (4, 3)]

    def step(strategy: str) -> Any:
        with tf.GradientTape() as tape:
            rows = tf.compat.v1.nn.embedding_lookup(parts, ids, partition_strategy=strategy)
            loss = tf.reduce_sum(rows**2)
        return rows, tape.gradient(loss, parts)

    ids = tf.constant([0, 3, 4, 6, 3])
    return attempts(**{name: lambda name=name: tf.function(step)(name) for name in ("div", "mod")})


def writes_between_reads() -> Snapshot:
    """The row of the id for "unknown" is zeroed in the step; each lookup sees the table as it is at its place."""
    first, second = new_tables()

    @tf.function
    def step(ids: tf.Tensor) -> Any:
        before = gathered([first, second], ids)
        first.scatter_nd_update([[3]], tf.zeros((1, WIDTHS[0])))
        between = gathered([first, second], ids)
        second.assign_add(tf.ones_like(second))
        return before, between, first.sparse_read(ids), second.sparse_read(ids)

    return attempts(first=lambda: step([3, 3, 1]), second=lambda: step([1, 3, 11]))


def frozen_and_constant_tables() -> Snapshot:
    """Pre-trained vectors as a constant and as a frozen variable beside tables that are trained."""
    trained = new_tables()
    frozen, constant = tf.Variable(new_tables()[0], trainable=False), tf.constant(new_tables()[1].numpy())

    @tf.function
    def step(ids: tf.Tensor) -> Any:
        with tf.GradientTape() as tape:
            rows = tf.concat([gathered([*trained, frozen], ids), tf.gather(constant, ids)], axis=1)
            loss = tf.reduce_sum(rows**2)
        return loss, tape.gradient(loss, trained), tape.watched_variables() == tuple(trained)

    return attempts(step=lambda: step(tf.constant([1, 1, 9])))


def the_same_lookup_twice() -> Snapshot:
    """One table looked up twice by the same ids, beside another."""
    first, second = new_tables()
    twice = tf.function(lambda ids: gathered([first, first, second], ids))
    return attempts(twice=lambda: twice(tf.constant([3, 3, 1])))


def one_function_in_many_threads() -> Snapshot:
    """A server's threads call one function, the first calls at once."""
    tables = new_tables()
    call = tf.function(lambda ids: tf.reduce_sum(gathered(tables, ids), axis=1))
    found: dict[int, tf.Tensor] = {}
    threads = [threading.Thread(target=lambda n=n: found.update({n: call(tf.fill([5], n % ROWS))})) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return attempts(threads=lambda: [found[n] for n in range(16)])


def reference_variables() -> Snapshot:
    """Variables of TensorFlow 1, a row overwritten before it is looked up, Adagrad in a session."""
    v1 = tf.compat.v1
    with tf.Graph().as_default():
        tables = [
            v1.Variable(table, use_resource=False) for table in (np.eye(ROWS, 4, dtype="f"), np.ones((ROWS, 6), "f"))
        ]
        ids = v1.placeholder(tf.int32, [None])
        with tf.control_dependencies([v1.scatter_update(table, [3], table[:1] * 0) for table in tables]):
            rows = tf.concat([tf.nn.embedding_lookup(table, ids) for table in tables], axis=1)
        update = v1.train.AdagradOptimizer(0.1).minimize(tf.reduce_sum(rows**2))
        options = v1.ConfigProto()
        options.graph_options.rewrite_options.use_plugin_optimizers = 1 if picasso_tf.is_enabled() else 2
        with v1.Session(config=options) as session:
            session.run(v1.global_variables_initializer())
            steps = [session.run([rows, update], {ids: random_ids(5, seed=n)})[0] for n in range(4)]
            after = session.run(tables)
    return attempts(steps=lambda: steps, after=lambda: after)

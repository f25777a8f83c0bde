"""Situations that users have reported as bugs, with several ids or none in an example, in raw TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from tests.equivalence.situations import attempts, gathered, new_tables, random_ids
from tests.equivalence.training import Snapshot


def bags(*rows: list[int]) -> tf.SparseTensor:
    """A list of ids per example."""
    ids = np.array([each for row in rows for each in row], np.int64)
    return tf.RaggedTensor.from_row_lengths(ids, [len(row) for row in rows]).to_sparse()


def safe(tables: list[tf.Variable], ids: tf.SparseTensor, combiner: str = "mean") -> tf.Tensor:
    return tf.concat([tf.nn.safe_embedding_lookup_sparse(table, ids, combiner=combiner) for table in tables], axis=1)


def empty_batches() -> Snapshot:
    """No example at all, examples without an id, then an ordinary batch through the same function."""
    tables = new_tables()
    found = {}
    for combiner in ("sum", "mean", "sqrtn"):
        pool = tf.function(lambda ids, c=combiner: safe(tables, ids, c), reduce_retracing=True)
        nothing = np.zeros((0, 2), np.int64), np.zeros(0, np.int64)
        parts = {"no_example": (0, 3), "no_id": (4, 0), "no_id_in_a_row": (4, 3)}
        given = {name: tf.SparseTensor(*nothing, shape) for name, shape in parts.items()} | {"usual": bags([1, 1], [2])}
        found |= attempts(**{f"{combiner}_{name}": lambda ids=ids, p=pool: p(ids) for name, ids in given.items()})
    look = tf.function(lambda ids: gathered(tables, ids), reduce_retracing=True)
    return found | attempts(none=lambda: look(np.zeros((0, 1), np.int32)), some=lambda: look(random_ids(3, 1)))


def negative_ids_of_a_bag() -> Snapshot:
    """-1 for "unknown": an error in the plain lookup, left out by the safe one, also where nothing is left."""
    tables, ids = new_tables(), bags([-1], [2, -5], [11, 3])
    plain = tf.function(
        lambda ids: tf.concat([tf.nn.embedding_lookup_sparse(t, ids, None, combiner="sum") for t in tables], 1)
    )
    return attempts(
        plain=lambda: plain(ids),
        safe=lambda: tf.function(lambda i: safe(tables, i))(ids),
        good=lambda: plain(bags([1])),
    )


def tables_of_other_dtypes() -> Snapshot:
    """Gradients of half-precision and double-precision tables have the table's dtype."""
    found = {}
    for dtype in ("float16", "bfloat16", "float64"):
        tables = new_tables(dtype)

        @tf.function
        def step(ids: tf.SparseTensor, tables: Any = tables) -> Any:
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.cast(safe(tables, ids), tf.float32) ** 2)
            return loss, tape.gradient(loss, tables)

        found |= attempts(**{dtype: lambda step=step: step(bags([1], [2, 3, 2], []))})
    return found

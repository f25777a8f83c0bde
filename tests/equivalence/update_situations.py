"""Tables, fields and batches that hold every situation of an embedding update at once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
import tensorflow as tf

FULL = os.environ.get("PICASSO_FULL_MATRIX") == "1"  # all of the matrix, not a slice
STEPS = 100
SIZES = (16, 5, 1, 0, 24)  # examples per batch, in turn: one is empty
DENSE = 2  # dense columns beside the fields
Arrays = dict[str, np.ndarray]


class Field(NamedTuple):
    """A column of ids.

    Attributes:
        table: name of its table.
        ids: ids per example.
        dtype: of the ids.
    """

    table: str
    ids: int = 1
    dtype: str = "int32"


TABLES = {"user": (50, 8), "item": (300, 16), "hour": (24, 3), "city": (30, 8), "tag": (7, 1), "word": (40, 5)}
FIELDS = {
    "user": Field("user", dtype="int64"),  # skewed: many duplicates
    "item": Field("item"),
    "hour": Field("hour"),  # one id for the whole batch
    "city": Field("city"),
    "home": Field("city", dtype="int64"),  # a second field of one table
    "tag": Field("tag"),  # feeds no concatenation
    "word": Field("word", ids=3),  # several ids per example
}


@cache
def batches(steps: int = STEPS, sizes: tuple[int, ...] = SIZES) -> list[tuple[Arrays, np.ndarray]]:
    """Ids `[examples, ids]` by field, `age` `[examples, DENSE]`, and labels `[examples, 1]`, for each step."""
    generator = np.random.default_rng(0)
    found = []
    for step in range(steps):
        examples = sizes[step % len(sizes)]
        columns: Arrays = {}
        for name, (table, count, dtype) in FIELDS.items():
            rows = TABLES[table][0]
            if name == "hour":
                ids = np.full((examples, count), step % rows)
            elif name in ("user", "word"):
                ids = np.minimum(generator.zipf(1.3, (examples, count)), rows) - 1
            else:
                ids = generator.integers(0, rows, (examples, count))
            columns[name] = ids.astype(dtype)
        columns["age"] = generator.random((examples, DENSE), np.float32)
        found.append((columns, generator.integers(0, 2, (examples, 1)).astype("float32")))
    return found


def dataset(steps: int = STEPS, sizes: tuple[int, ...] = SIZES) -> tf.data.Dataset:
    """The batches, for `fit`.

    It knows its length: at the end of a data set that does not, Keras starts one step more, in which stock TensorFlow
    may run what needs no data, such as the weight decay, before the step fails.
    """
    signature = {name: tf.TensorSpec([None, field.ids], field.dtype) for name, field in FIELDS.items()}
    signature["age"] = tf.TensorSpec([None, DENSE], "float32")

    def generate() -> Iterator[tuple[Arrays, np.ndarray]]:
        yield from batches(steps, sizes)

    labels = tf.TensorSpec([None, 1], "float32")
    generated = tf.data.Dataset.from_generator(generate, output_signature=(signature, labels))
    return generated.apply(tf.data.experimental.assert_cardinality(steps))


class TablesAndKernels:
    """The same model for raw TensorFlow: variables, and the loss of a batch."""

    HIDDEN = 8

    def __init__(self, make=tf.Variable, dtype: str = "float32"):
        generator = np.random.default_rng(1)

        def variable(name: str, *shape: int):
            return make(tf.cast(generator.normal(size=shape) * 0.3, dtype), name=name)

        self.tables = {name: variable(name, *shape) for name, shape in TABLES.items()}
        deep = sum(TABLES[field.table][1] * field.ids for name, field in FIELDS.items() if name != "tag")
        self.kernels = [variable("hidden", deep + DENSE + 9, self.HIDDEN), variable("out", self.HIDDEN, 1)]

    @property
    def variables(self) -> list[tf.Variable]:
        return [*self.tables.values(), *self.kernels]

    def loss(self, columns: dict[str, tf.Tensor], labels: tf.Tensor) -> tf.Tensor:
        """Sum of squared errors, so that an empty batch gives 0 and not NaN."""
        rows = {name: tf.gather(self.tables[field.table], columns[name]) for name, field in FIELDS.items()}
        flat = {name: tf.reshape(value, [-1, value.shape[1] * value.shape[2]]) for name, value in rows.items()}
        pairs = tf.concat([rows["user"], rows["city"], rows["home"]], axis=1)
        crossed = tf.reshape(tf.matmul(pairs, pairs, transpose_b=True), [-1, 9])
        deep = tf.concat(
            [*[flat[name] for name in FIELDS if name != "tag"], tf.cast(columns["age"], pairs.dtype), crossed], axis=-1
        )
        logits = tf.matmul(tf.tanh(tf.matmul(deep, self.kernels[0])), self.kernels[1]) + flat["tag"]
        return tf.reduce_sum(tf.square(logits - tf.cast(labels, logits.dtype))) * 0.05

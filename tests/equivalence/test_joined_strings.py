"""Strings that are joined, split and hashed: training gives stock's bits, and what can be packed is packed."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tests.equivalence.training import Snapshot, compare

EXAMPLES, BATCH, STEPS, ROWS = 48, 12, 8, 64
WORDS = ["", "a", "bb", "ccc", "a longer word than fits a small string", "ä"]


class Model(tf.Module):
    """Crosses by hand, as they are written where no layer for them is known."""

    def __init__(self) -> None:
        random = np.random.default_rng(0)
        self.tables = [tf.Variable(random.standard_normal((ROWS, 4)), dtype=tf.float32) for _ in range(5)]
        vocabulary = tf.lookup.KeyValueTensorInitializer(["city=a", "city=bb"], tf.constant([1, 2], tf.int64))
        self.vocabulary = tf.lookup.StaticHashTable(vocabulary, 0)

    def ids(self, words: tf.Tensor, tags: tf.Tensor, numbers: tf.Tensor) -> list[tf.Tensor]:
        hashed = tf.strings.to_hash_bucket_fast
        numbered = tf.strings.as_string(numbers)
        split = tf.strings.split(words[:, 0], "b")
        return [
            hashed(tf.strings.join([words, numbered, tags], "_X_"), ROWS),
            hashed(tf.strings.join([numbered, "/", words]), ROWS),
            tf.raw_ops.StringToHashBucket(string_tensor=tf.strings.join([tags, tags]), num_buckets=ROWS),
            self.vocabulary.lookup(tf.strings.join(["city=", words])),
            hashed(split.values, ROWS),
        ]

    @tf.function(reduce_retracing=True)
    def step(self, *features: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            rows = [tf.nn.embedding_lookup(*pair) for pair in zip(self.tables, self.ids(*features), strict=True)]
            loss = tf.add_n([tf.reduce_sum(row * row) for row in rows])
        for table, gradient in zip(self.tables, tape.gradient(loss, self.tables), strict=True):
            table.scatter_sub(tf.IndexedSlices(gradient.values * 0.01, gradient.indices))
        return loss


def features(size: int, seed: int) -> tuple[tf.Tensor, ...]:
    random = np.random.default_rng(seed)
    words, tags = (tf.constant(random.choice(np.array(WORDS, object), (size, 1))) for _ in range(2))
    return words, tags, tf.constant(random.integers(-(2**40), 2**40, (size, 1)))


def test_crosses_by_hand_are_packed() -> None:
    def train() -> Snapshot:
        model = Model()
        losses = [model.step(*features(BATCH if n % 3 else 7, n)).numpy() for n in range(STEPS)]
        return {"losses": np.array(losses), **{str(n): table.numpy() for n, table in enumerate(model.tables)}}

    report = compare(train)
    graphs = [graph for graph in report.graphs if graph.packed]
    assert graphs
    for graph in graphs:
        assert graph.transforms_packed == 10  # five hashes and lookups, four joins, the digits of numbers
        assert [item.code for item in graph.declined if "tring" in item.node] == ["string_split"]


@pytest.mark.parametrize("rows", [1, 3])
def test_strings_of_different_shapes_are_the_error_of_stock(rows: int) -> None:
    table = tf.Variable(tf.zeros([8, 4]))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)] * 2)
    def model(words: tf.Tensor, tags: tf.Tensor) -> list[tf.Tensor]:
        ids = [tf.strings.to_hash_bucket_fast(tf.strings.join([words, tags], str(n)), 8) for n in range(2)]
        return [tf.nn.embedding_lookup(table, of) for of in ids]

    def run() -> Snapshot:
        traced = tf.function(model.python_function, input_signature=model.input_signature)
        with pytest.raises(tf.errors.InvalidArgumentError):
            traced(tf.constant(["a", "b"]), tf.constant(["c"] * rows))
        return {}

    report = compare(run)
    assert [graph.transforms_packed for graph in report.graphs if graph.packed] == [4]

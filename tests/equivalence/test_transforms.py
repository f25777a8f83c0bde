"""Hashes, vocabularies, buckets and masks in the model: training and inference give stock's bits."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import numpy as np
import pytest
import tensorflow as tf

from tests.equivalence.training import Snapshot, compare

EXAMPLES, BATCH, WIDTH = 96, 32, 4
WORDS = ["", "a", "bb", "ccc", "a longer word than fits a small string", "ä", "7", "-1"]
NUMBERS = [0, 1, -1, 7, 12, 2**31, -(2**40)]


def columns() -> dict[str, np.ndarray]:
    random = np.random.default_rng(3)
    return {
        "word": random.choice(np.array(WORDS, object), (EXAMPLES, 1)),
        "tag": random.choice(np.array(WORDS, object), (EXAMPLES, 3)),
        "number": random.choice(np.array(NUMBERS, np.int64), (EXAMPLES, 1)),
        "age": random.choice(np.array([-1.0, 0.0, 18.0, 18.5, 65.0, 1e9, np.inf]), (EXAMPLES, 1)).astype(np.float32),
    }


def layers(keras) -> list[tuple[str, object, int]]:
    """Input, preprocessing layer and number of ids, of every kind that front ends have."""
    made = keras.layers
    return [
        ("word", made.StringLookup(vocabulary=WORDS[1:4]), 4),
        ("word", made.StringLookup(vocabulary=WORDS[1:4], num_oov_indices=3, mask_token=""), 8),
        ("tag", made.StringLookup(vocabulary=WORDS[1:4], num_oov_indices=2), 6),
        ("number", made.IntegerLookup(vocabulary=NUMBERS[:3]), 4),
        ("number", made.IntegerLookup(vocabulary=NUMBERS[:3], num_oov_indices=2, mask_token=7), 7),
        ("word", made.Hashing(11), 11),
        ("tag", made.Hashing(11, mask_value=""), 11),
        ("number", made.Hashing(5, salt=[3, 9]), 5),
        ("age", made.Discretization(bin_boundaries=[0.0, 18.0, 65.0]), 4),
    ]


def trainer(front_end: str) -> Callable[[], Snapshot]:
    keras = importlib.import_module(front_end)

    def train() -> Snapshot:
        keras.utils.set_random_seed(1)
        data = columns()
        kinds = {"word": "string", "tag": "string", "number": "int64", "age": "float32"}
        inputs = {name: keras.Input((data[name].shape[1],), dtype=kinds[name], name=name) for name in data}
        rows = [keras.layers.Embedding(count, WIDTH)(layer(inputs[name])) for name, layer, count in layers(keras)]
        joined = keras.layers.Concatenate()([keras.layers.Flatten()(row) for row in rows])
        model = keras.Model(inputs, keras.layers.Dense(1, activation="sigmoid")(joined))
        model.compile(keras.optimizers.Adagrad(0.1), "binary_crossentropy")
        labels = np.random.default_rng(1).integers(0, 2, (EXAMPLES, 1)).astype(np.float32)
        dataset = tf.data.Dataset.from_tensor_slices((data, labels)).batch(BATCH)  # the last batch is smaller
        losses = model.fit(dataset.repeat(3).take(8), epochs=1, verbose=0, shuffle=False).history["loss"]
        found = {f"variable {n}": weight for n, weight in enumerate(model.get_weights()) if weight.dtype != object}
        return {**found, "losses": np.array(losses), "scores": model.predict(dataset, verbose=0)}

    return train


@pytest.mark.parametrize("front_end", ["keras", "tf_keras"])
def test_preprocessing_layers_in_the_model(front_end: str) -> None:
    report = compare(trainer(front_end))
    graphs = [graph for graph in report.graphs if graph.lookups_packed]
    assert graphs
    for graph in graphs:
        assert graph.lookups_packed == 9
        assert graph.transforms_packed >= 9
        anchors = [item for item in graph.declined if item.code == "not_elementwise"]
        assert not anchors


def run_on(function: Callable[..., tuple], *batches: tuple) -> Callable[[], Snapshot]:
    """Calls a new tf.function of `function` on some batches."""

    def run() -> Snapshot:
        traced = tf.function(function, reduce_retracing=True)
        results = [traced(*batch) for batch in batches]
        return {f"{n}.{m}": value.numpy() for n, result in enumerate(results) for m, value in enumerate(result)}

    return run


def batch_of(size: int) -> tuple[tf.Tensor, tf.Tensor]:
    random = np.random.default_rng(size)
    words = random.choice(np.array(WORDS, object), (size, 2))
    return tf.constant(words, tf.string), tf.constant(random.integers(-50, 50, (size,)), tf.int32)


def test_raw_transforms_of_batches_of_any_size() -> None:
    """With a vocabulary that has buckets for other words, a dense feature made sparse, and remainders."""
    initializer = tf.lookup.KeyValueTensorInitializer(WORDS[:4], np.arange(4, dtype=np.int64))
    vocabulary = tf.lookup.StaticVocabularyTable(initializer, 3)
    tables = [tf.Variable(np.random.default_rng(n).standard_normal((16, 4)), dtype=tf.float32) for n in range(4)]

    def model(words: tf.Tensor, numbers: tf.Tensor) -> tuple:
        filled = tf.sparse.from_dense(words)
        sparse = tf.SparseTensor(filled.indices, tf.strings.to_hash_bucket_fast(filled.values, 16), filled.dense_shape)
        return (
            tf.nn.embedding_lookup(tables[0], vocabulary.lookup(words)),
            tf.nn.safe_embedding_lookup_sparse(tables[1], sparse, combiner="mean"),
            tf.nn.embedding_lookup(tables[2], tf.math.floormod(numbers, 16)),
            tf.nn.embedding_lookup(tables[3], tf.strings.to_hash_bucket_fast(tf.strings.as_string(numbers), 16)),
            tf.clip_by_value(numbers, 0, 9),
        )

    report = compare(run_on(model, *(batch_of(size) for size in (5, 0, 7, 3000))))
    packed = [item for graph in report.graphs for item in graph.packed if item.kind == "transform"]
    assert [len(item.members) for item in packed] == [11, 12]  # in the first graph zeros are a constant


def test_a_table_that_changes_between_lookups() -> None:
    rows = tf.Variable(np.random.default_rng(0).standard_normal((32, 4)), dtype=tf.float32)

    def run() -> Snapshot:
        table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, default_value=-1)

        @tf.function
        def step(words: tf.Tensor) -> tuple:
            before = table.lookup(words)
            table.insert(words, tf.strings.to_hash_bucket_fast(words, 30))
            after = table.lookup(words)
            return before, table.size(), tf.nn.embedding_lookup(rows, after), tf.nn.embedding_lookup(rows, before + 1)

        results = [step(batch_of(size)[0]) for size in (3, 6)]
        return {f"{n}.{m}": value.numpy() for n, result in enumerate(results) for m, value in enumerate(result)}

    compare(run)


def test_errors_are_those_of_stock() -> None:
    rows = tf.Variable(tf.zeros([8, 4]))

    def model(words: tf.Tensor, numbers: tf.Tensor, divisor: tf.Tensor) -> tuple:
        ids = tf.strings.to_hash_bucket_fast(words, 8)
        return tf.nn.embedding_lookup(rows, ids), tf.nn.embedding_lookup(rows, tf.math.floormod(numbers, divisor))

    def run() -> Snapshot:
        with pytest.raises(tf.errors.InvalidArgumentError, match="Integer division by zero"):
            tf.function(model)(*batch_of(4), tf.constant(0))
        return {}

    compare(run)

"""Crosses of features: hashed crossing layers, crossed columns and sparse crosses give stock's bits."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import numpy as np
import pytest
import tensorflow as tf

from tests.equivalence.training import Snapshot, compare

EXAMPLES, BATCH = 96, 20  # the last batch is smaller
WORDS = np.array(["", "a", "bb", "ccc", "a longer word than fits a small string"], object)


def columns(values: int) -> dict[str, np.ndarray]:
    """`values` of each feature for each example; "" and -1 are missing."""
    random = np.random.default_rng(values)
    size = (EXAMPLES, values)
    return {
        "word": random.choice(WORDS, size),
        "tag": random.choice(WORDS, size),
        "number": random.choice([-1, 0, 3, 2**31, 2**62], size),
        "age": random.choice([-1.0, 18.0, 65.0, 70.0], (EXAMPLES, 1)).astype(np.float32),
    }


def fitted(keras, data: dict[str, np.ndarray], body: Callable, static: bool = False) -> Snapshot:
    """Trains a model of `body`, which makes a matrix of inputs."""
    keras.backend.clear_session()
    keras.utils.set_random_seed(1)
    kinds = {name: "string" if array.dtype == object else str(array.dtype) for name, array in data.items()}
    inputs = {name: keras.Input(array.shape[1:], dtype=kinds[name], name=name) for name, array in data.items()}
    hidden = keras.layers.Dense(4, activation="tanh")(body(inputs))
    model = keras.Model(inputs, keras.layers.Dense(1)(hidden))
    model.compile(keras.optimizers.Adagrad(0.1), "mse")
    labels = np.random.default_rng(1).random((EXAMPLES, 1)).astype(np.float32)
    dataset = tf.data.Dataset.from_tensor_slices((data, labels)).batch(BATCH, drop_remainder=static)
    losses = np.array(model.fit(dataset, epochs=2, verbose=0, shuffle=False).history["loss"])
    variables = [*model.variables, *(model.optimizer.variables if keras.__name__ == "keras" else [])]
    found = {f"{n}": tf.convert_to_tensor(variable).numpy() for n, variable in enumerate(variables)}
    return {**found, "losses": losses, "scores": model.predict(dataset, verbose=0)}


def crosses_of(graph) -> list[int]:
    """How many crosses each packed op of crosses has, with the matrices that are made of them."""
    return [len(item.members) for item in graph.packed if "/cross_packing/" in item.node]


@pytest.mark.parametrize("mode", ["int", "one_hot"])
@pytest.mark.parametrize("front_end", ["keras", "tf_keras"])
def test_hashed_crossing_layers(front_end: str, mode: str) -> None:
    keras = importlib.import_module(front_end)
    crossed = [("word", "number"), ("tag", "word"), ("number", "tag")]  # Keras 3 takes no more than two

    def body(inputs):
        word = keras.layers.Embedding(9, 4)(keras.layers.Hashing(9)(inputs["word"]))
        rows = [inputs["age"], keras.layers.Flatten()(word)]
        for bins, names in enumerate(crossed, 30):
            cross = keras.layers.HashedCrossing(bins, output_mode=mode)([inputs[name] for name in names])
            rows.append(keras.layers.Flatten()(keras.layers.Embedding(bins, 4)(cross)) if mode == "int" else cross)
        return keras.layers.Concatenate()(rows)

    report = compare(lambda: fitted(keras, columns(1), body))
    graphs = [graph for graph in report.graphs if graph.packed]
    assert len(graphs) >= 2  # of training and of prediction
    for graph in graphs:
        assert crosses_of(graph) == [6]
        assert not [item for item in graph.declined if "ross" in item.node]


@pytest.mark.parametrize("static", [True, False], ids=["static batch", "any batch"])
@pytest.mark.parametrize("values", [1, 3])
def test_crossed_columns(values: int, static: bool) -> None:
    """Of raw features, which are dense, and of vocabularies and identities, which are sparse."""
    keras = importlib.import_module("tf_keras")
    column = tf.feature_column

    def body(inputs):
        word = column.categorical_column_with_vocabulary_list("word", list(WORDS[1:3]), num_oov_buckets=2)
        number = column.categorical_column_with_identity("number", 4, default_value=0)
        age = column.bucketized_column(column.numeric_column("age"), [18.0, 65.0])
        crosses = [
            column.crossed_column(["word", "tag"], 50),
            column.crossed_column(["tag", "number"], 60, hash_key=77),
            column.crossed_column([word, age], 70),
            column.crossed_column([word, number, "tag"], 80),
        ]
        return keras.layers.DenseFeatures([column.embedding_column(cross, 8) for cross in crosses])(inputs)

    report = compare(lambda: fitted(keras, columns(values), body, static))
    graphs = [graph for graph in report.graphs if graph.lookups_packed]
    assert graphs
    for graph in graphs:
        assert crosses_of(graph) == [4]
        assert graph.lookups_packed == 4


def run_on(function: Callable, *arguments: object) -> Snapshot:
    results = tf.nest.flatten(tf.function(function)(*arguments), expand_composites=True)
    return {str(n): result.numpy() for n, result in enumerate(results)}


def test_sparse_crosses_of_parsed_examples() -> None:
    """Also crosses of crosses, and crosses whose shape and indices are read."""
    random = np.random.default_rng(0)
    rows = [tf.Variable(random.standard_normal((40, 4)), dtype=tf.float32) for _ in range(3)]

    def example(size: int) -> bytes:
        words, numbers = random.choice(WORDS, size), random.integers(-5, 5, size + 1)
        word = tf.train.Feature(bytes_list=tf.train.BytesList(value=[str(w).encode() for w in words]))
        number = tf.train.Feature(int64_list=tf.train.Int64List(value=numbers))
        return tf.train.Example(
            features=tf.train.Features(feature={"word": word, "number": number} if size else {})
        ).SerializeToString()

    def model(serialized: tf.Tensor) -> list:
        spec = {"word": tf.io.VarLenFeature(tf.string), "number": tf.io.VarLenFeature(tf.int64)}
        parsed = tf.io.parse_example(serialized, spec)
        first = tf.sparse.cross_hashed([parsed["word"], parsed["number"]], 40)
        second = tf.sparse.cross_hashed([parsed["word"], parsed["word"]], 40, hash_key=3)
        third = tf.sparse.cross_hashed([first, parsed["number"]], 40)
        fourth = tf.sparse.cross_hashed([parsed["number"], second], 40)
        found = [tf.nn.safe_embedding_lookup_sparse(*pair) for pair in zip(rows, (first, second, third), strict=True)]
        return [*found, tf.sparse.to_dense(fourth), tf.sparse.to_dense(first, default_value=-1), third]

    serialized = tf.constant([example(size) for size in (2, 0, 1, 3, 1, 0)])
    report = compare(lambda: run_on(model, serialized))
    (graph,) = [graph for graph in report.graphs if graph.packed]
    assert crosses_of(graph) == [2, 3]


@pytest.mark.parametrize("unread", [tf.io.FixedLenFeature([1], tf.string, ""), tf.io.VarLenFeature(tf.string)], ids=str)
def test_parsed_features_that_nobody_reads_are_checked_all_the_same(unread: object) -> None:
    table = tf.Variable(tf.ones([20, 4]))
    number = tf.train.Feature(int64_list=tf.train.Int64List(value=[3]))
    good = tf.train.Example(features=tf.train.Features(feature={"number": number}))
    bad = tf.train.Example(features=tf.train.Features(feature={"number": number, "unread": number}))

    def model(serialized: tf.Tensor) -> list:
        spec = {"number": tf.io.FixedLenFeature([1], tf.int64), "unread": unread}
        return [tf.nn.embedding_lookup(table, tf.io.parse_example(serialized, spec)["number"])]

    def run() -> Snapshot:
        with pytest.raises(tf.errors.InvalidArgumentError, match="unread"):
            run_on(model, tf.constant([bad.SerializeToString()]))
        return run_on(model, tf.constant([good.SerializeToString()]))

    report = compare(run)
    assert {item.code for graph in report.graphs for item in graph.declined if "Parse" in item.node} == {
        "parsed_unread"
    }


def test_crosses_that_stay() -> None:
    """Those that give strings, which something may read."""
    words = tf.constant([["a"], ["b"]])
    table = tf.Variable(tf.ones([20, 4]))

    def model(words: tf.Tensor) -> list:
        strings = tf.sparse.cross([words, words])
        ids = tf.strings.to_hash_bucket_fast(strings.values, 20)
        return [strings.indices, tf.nn.embedding_lookup(table, ids), tf.sparse.cross_hashed([words, words], 10)]

    report = compare(lambda: run_on(model, words))
    codes = sorted(item.code for graph in report.graphs for item in graph.declined if "Cross" in item.node)
    assert codes == ["single_transform", "string_cross"]


def test_errors_are_those_of_stock() -> None:
    table = tf.Variable(tf.ones([20, 4]))

    def model(words: tf.Tensor, numbers: tf.Tensor) -> list:
        crosses = [tf.sparse.cross_hashed([words, numbers], bins) for bins in (10, 20)]
        return [tf.nn.embedding_lookup(table, cross.values) for cross in crosses]

    def run() -> Snapshot:
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.function(model)(tf.constant([["a"], ["b"]]), tf.constant([[1], [2], [3]], tf.int64))
        return {}

    assert [crosses_of(graph) for graph in compare(run).graphs if graph.packed] == [[2]]

"""Sums and means along axis 1 of embedded ids: training and inference give stock's bits, whatever the front end."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import numpy as np
import pytest
import tensorflow as tf

from picasso_tf.report import Report
from tests.equivalence.test_pooled import CHOSEN
from tests.equivalence.training import Snapshot, compare
from tests.equivalence.update_situations import FULL

ROWS = 60
WIDTHS = (8, 5, 1, 17)
FRONT_ENDS = ("keras", "tf_keras")
MEAN, SUM, MASK = "GlobalAveragePooling1D", "tf.reduce_sum", "mask_zero"


def ids_of(seed: int, examples: int, length: int) -> np.ndarray:
    """Ids of which many are 0, and all of the first example's."""
    ids = np.random.default_rng(seed).zipf(1.5, (examples, length)) % ROWS
    ids[0] = 0
    return ids.astype(np.int32)


def model_of(keras, kind: str, length: int | None):
    """One feature for each of `WIDTHS`, and a table that two features share."""
    pool = keras.layers.Lambda(lambda rows: tf.reduce_sum(rows, axis=1)) if kind == SUM else None
    features = [keras.Input((length,), dtype="int32") for _ in WIDTHS]
    tables = [keras.layers.Embedding(ROWS, width, mask_zero=kind == MASK) for width in WIDTHS]
    for seed, table in enumerate(tables):
        table.build((None, length))
        random = np.random.default_rng(seed)
        table.set_weights([random.standard_normal((ROWS, WIDTHS[seed])).astype(np.float32)])
    pairs = [*zip(features, tables, strict=True), (features[1], tables[0])]
    pooled = [(pool or keras.layers.GlobalAveragePooling1D())(table(ids)) for ids, table in pairs]
    if kind == MASK:  # an example without ids has no mean
        pooled = [keras.layers.Lambda(lambda rows: tf.where(tf.math.is_finite(rows), rows, 0.0))(one) for one in pooled]
    dense = keras.layers.Dense(1, kernel_initializer=keras.initializers.Constant(0.05))
    return keras.Model(features, dense(keras.layers.Concatenate()(pooled)))


def fitter(front_end: str, optimizer: str, kind: str, length: int, declared: int | None = None) -> Callable:
    """Fits a model for two epochs, whose last batches are short, and predicts."""
    keras = importlib.import_module(front_end)

    def train() -> Snapshot:
        keras.utils.set_random_seed(0)
        model = model_of(keras, kind, declared)
        rule = getattr(keras.optimizers, optimizer)(0.001)
        model.compile(rule, "mse", **({"jit_compile": False} if front_end == "keras" else {}))
        ids = [ids_of(seed, 43, length) for seed in range(len(WIDTHS))]
        wanted = np.random.default_rng(9).standard_normal((43, 1)).astype(np.float32)
        history = model.fit(ids, wanted, batch_size=10, epochs=2, shuffle=False, verbose=0)
        slots = rule.variables() if callable(rule.variables) else rule.variables
        found = {f"slot {n}": tf.convert_to_tensor(slot).numpy() for n, slot in enumerate(slots)}
        found |= {f"weight {n}": weight for n, weight in enumerate(model.get_weights())}
        losses = np.array(history.history["loss"])
        return {**found, "losses": losses, "predicted": model.predict(ids, verbose=0, batch_size=43)}

    return train


def assert_packed(report: Report, count: int = len(WIDTHS) + 1) -> None:
    """All sums are packed, and in training all updates of the tables, which take gradients that examples share."""
    assert report.graphs
    for graph in report.graphs:
        assert graph.lookups_packed == count
        assert not [item for item in graph.declined if item.code not in ("single_update", "single_transform")]


@pytest.mark.parametrize("kind", [MEAN, SUM, MASK])
@pytest.mark.parametrize("optimizer", CHOSEN)
@pytest.mark.parametrize("front_end", FRONT_ENDS)
def test_fitted_models_have_the_same_bits(front_end: str, optimizer: str, kind: str) -> None:
    assert_packed(compare(fitter(front_end, optimizer, kind, 7)))


@pytest.mark.parametrize("length", [1, 16, 23])
@pytest.mark.parametrize("kind", [MEAN, MASK])
@pytest.mark.parametrize("front_end", FRONT_ENDS if FULL else FRONT_ENDS[:1])
def test_lengths_that_are_declared(front_end: str, kind: str, length: int) -> None:
    assert_packed(compare(fitter(front_end, "Adagrad", kind, length, length)))


def by_hand(kind: str, table: tf.Variable, ids: tf.Tensor, scores: tf.Tensor) -> tf.Tensor:
    rows = tf.nn.embedding_lookup(table, ids)
    mask = tf.cast(ids != 0, table.dtype)
    if kind == "mean":
        return tf.reduce_mean(rows, axis=1)
    if kind == "masked, at least 1":
        total = tf.reduce_sum(rows * mask[..., None], axis=1)
        return total / tf.maximum(tf.reduce_sum(mask, axis=1, keepdims=True), 1.0)
    if kind == "masked, no NaN":
        column = tf.expand_dims(mask, -1)
        return tf.math.divide_no_nan(tf.reduce_sum(rows * column, 1), tf.reduce_sum(column, 1))
    if kind == "where":
        return tf.reduce_sum(tf.where((ids > 0)[:, :, None], rows, 0), -2)
    if kind == "by place":
        return tf.reduce_sum(rows * tf.constant(np.arange(1, 21).reshape(1, 20, 1), table.dtype), axis=1)
    return tf.reduce_sum(rows * scores[:, :, tf.newaxis], axis=1)


BY_HAND = ("mean", "masked, at least 1", "masked, no NaN", "where")


def hand_trainer(kind: str, shape: list[int | None], dtype: tf.DType) -> Callable[[], Snapshot]:
    """Trains four tables by hand on batches of several sizes, as far as `shape` leaves them open."""

    def train() -> Snapshot:
        tables = [tf.Variable(np.random.default_rng(w).standard_normal((ROWS, w)), dtype=dtype) for w in WIDTHS]

        @tf.function(input_signature=[tf.TensorSpec(shape, tf.int32), tf.TensorSpec(shape, dtype)])
        def step(ids: tf.Tensor, scores: tf.Tensor) -> list[tf.Tensor]:
            with tf.GradientTape() as tape:
                pooled = [by_hand(kind, table, ids, scores) for table in tables]
                loss = tf.add_n([tf.reduce_sum(tf.tanh(one)) for one in pooled])
            for table, gradient in zip(tables, tape.gradient(loss, tables), strict=True):
                table.scatter_sub(tf.IndexedSlices(0.1 * gradient.values, gradient.indices))
            return pooled

        found = {}
        for n, length in enumerate((1, 5, 16, 23, 40)):
            ids = ids_of(n, shape[0] or 7 * n % 11 + 1, shape[1] or length)
            scores = np.random.default_rng(n).standard_normal(ids.shape)
            for width, one in zip(WIDTHS, step(ids, tf.cast(scores, dtype)), strict=True):
                found[f"pooled {n}, {width}"] = one.numpy()
        return {**found, **{f"table {n}": table.numpy() for n, table in enumerate(tables)}}

    return train


@pytest.mark.parametrize("shape", [[None, None], [None, 20], [32, 5]], ids=str)
@pytest.mark.parametrize("kind", BY_HAND)
@pytest.mark.parametrize("dtype", [tf.float32, tf.float64], ids=lambda dtype: dtype.name)
def test_hand_written_pooling_has_the_same_bits(dtype: tf.DType, kind: str, shape: list[int | None]) -> None:
    (graph,) = compare(hand_trainer(kind, shape, dtype)).graphs
    assert (graph.lookups_packed, graph.updates_packed, graph.declined) == (len(WIDTHS), len(WIDTHS), ())


@pytest.mark.parametrize(("shape", "code"), [([None, 20], None), ([32, 5], None), ([None, None], "weighted_form")])
def test_weights_beside_the_ids(shape: list[int | None], code: str | None) -> None:
    (graph,) = compare(hand_trainer("scores", shape, tf.float32)).graphs
    assert graph.lookups_packed == (len(WIDTHS) if code is None else 0) or code
    assert {item.code for item in graph.declined if item.code != "single_lookup"} == ({code} if code else set())


def test_weights_that_are_the_same_for_all_examples_are_declined() -> None:
    (graph,) = compare(hand_trainer("by place", [None, 20], tf.float32)).graphs
    assert "weighted_form" in {item.code for item in graph.declined}


def test_half_types_are_declined() -> None:
    (graph,) = compare(hand_trainer("mean", [None, 5], tf.float16)).graphs
    assert {item.code for item in graph.declined if "Mean" in item.node} == {"dtype_not_supported"}


def test_ids_out_of_range_are_errors_of_the_same_class() -> None:
    table = tf.Variable(tf.zeros([9, 4]))

    def run() -> Snapshot:
        function = tf.function(lambda ids: tf.reduce_mean(tf.nn.embedding_lookup(table, ids), axis=1))
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[1,0\] = 9 is not in \[0, 9\)"):
            function(tf.constant([[1, 2], [9, 1]]))
        return {}

    assert compare(run).graphs[0].lookups_packed == 1

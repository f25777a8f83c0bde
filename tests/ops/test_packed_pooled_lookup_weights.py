"""Pooled lookups with weights: the bits of TensorFlow's own ops and of the oracle, and what is refused."""

import re

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from graph_passes.errors import ConfigError
from picasso_tf.ops import packed_pooled_lookup
from tests.support.packed_lookup_calls import make_table
from tests.support.packed_lookup_oracle import Output
from tests.support.packed_pooled_lookup_calls import assert_same_bits, check, make_bags, one, run, splits_of
from tests.support.packed_pooled_lookup_oracle import COMBINERS, Lookup, Spec

DTYPES = (tf.float16, tf.bfloat16, tf.float32, tf.float64)
COUNTS = (0, 0, *range(1, 36), 0, 100, 2500, 1, 0)  # every way to cut a sum, and more ids than one batch holds


def weights_of(count, dtype=tf.float32, seed=0, positive=False):
    """Some of them zero or negative."""
    random = np.random.default_rng(seed)
    values = random.standard_normal(count)
    values = np.abs(values) + 0.1 if positive else np.where(random.random(count) < 0.2, 0, values)
    return values.astype(np.float64 if dtype == tf.float64 else np.float32)


def sparse(counts, values, order=None):
    """A SparseTensor with `counts[r]` values in row r, perhaps in another order."""
    rows, columns = np.repeat(np.arange(len(counts)), counts), np.concatenate([np.arange(count) for count in counts])
    order = np.arange(len(rows)) if order is None else order
    return tf.SparseTensor(np.stack([rows, columns], 1)[order].astype(np.int64), values[order], [len(counts), 3000])


@tf.function  # eager TensorFlow squares weights by Pow, whose last bit may be another than that of Square in a graph
def stock(table, ids, weights, combiner):
    return tf.nn.embedding_lookup_sparse(table, ids, weights, combiner=combiner)


@tf.function
def stock_safe(table, ids, weights, combiner, default_id):
    weights = tf.cast(weights, table.dtype)  # it takes no others
    return tf.nn.safe_embedding_lookup_sparse(table, ids, weights, combiner=combiner, default_id=default_id)


@pytest.mark.parametrize("combiner", COMBINERS)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_bits_of_embedding_lookup_sparse(dtype, combiner):
    for seed, width in enumerate((1, 3, 4, 8, 13, 16, 33, 64, 300)):
        table = make_table(40, width, dtype=dtype, seed=seed)
        ids, segments = make_bags(COUNTS[:-1], 40, id_dtype=[np.int32, np.int64][seed % 2], seed=seed)
        weights = weights_of(len(ids), dtype, seed)
        bags = sparse(COUNTS[:-1], ids), sparse(COUNTS[:-1], weights)
        wanted = stock(table, *bags, combiner)
        spec = one(combiner=combiner, weights=0)
        assert_same_bits(run(spec, [table], [ids], [segments], weights=[weights])[0], wanted)
        check(spec, [table], [ids], [segments], weights=[weights])


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("default_id", [None, 0, 7])
@pytest.mark.parametrize("combiner", COMBINERS)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_bits_of_safe_embedding_lookup_sparse(dtype, combiner, default_id, in_order):
    table = make_table(40, 20, dtype=dtype)
    ids, _ = make_bags(COUNTS, 40, id_dtype=np.int64)
    ids = np.where(np.arange(len(ids)) % 7 == 1, -ids - 1, ids)
    weights = tf.cast(tf.cast(weights_of(len(ids), dtype), dtype), tf.float64 if dtype == tf.float64 else tf.float32)
    order = np.arange(len(ids)) if in_order else np.random.default_rng(1).permutation(len(ids))
    bags, weight_bags = sparse(COUNTS, ids, order), sparse(COUNTS, weights.numpy(), order)
    wanted = stock_safe(table, bags, weight_bags, combiner, default_id)
    fill, drops = -1 if default_id is None else default_id, combiner != "sum"
    spec = one(combiner=combiner, rows=0, drop=True, fill=fill, sort=True, weights=0, drop_weightless=drops)
    inputs = [bags.values.numpy()], [bags.indices.numpy()], [bags.dense_shape.numpy()]
    assert_same_bits(run(spec, [table], *inputs, weights=[weight_bags.values])[0], wanted)
    check(spec, [table], *inputs, weights=[weight_bags.values.numpy()])
    if in_order:
        arguments = {"combiner": combiner, "default_id": default_id, "drop_negative": True}
        assert_same_bits(packed_pooled_lookup([table], [bags], [weight_bags], **arguments)[0], wanted)


@pytest.mark.parametrize("combiner", COMBINERS)
def test_values_that_no_arithmetic_may_touch(combiner):
    """Signed zeros, infinities, NaNs and denormals, as rows and as weights."""
    values = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-41, 3.4e38, 1.0, -1.0], np.float32)
    table = tf.Variable(np.repeat(values[:, None], 9, 1))
    ids, weights = (grid.reshape(-1) for grid in np.meshgrid(np.arange(10), values, indexing="ij"))
    for counts in ([1] * 100, [2] * 50, [17] * 5 + [15]):
        bags = sparse(counts, ids), sparse(counts, weights)
        wanted = stock(table, *bags, combiner).numpy()
        segments = np.repeat(np.arange(len(counts)), counts)
        found = run(one(combiner=combiner, weights=0), [table], [ids], [segments], weights=[weights])[0]
        numbers = ~np.isnan(wanted)
        assert np.array_equal(np.isnan(found), ~numbers)
        assert found[numbers].tobytes() == wanted[numbers].tobytes()


def test_lookups_with_and_without_weights_beside_each_other():
    counts = [3, 0, 1, 40, 2, 0]
    tables = [make_table(20, 8), make_table(30, 5, seed=1)]
    bags = [make_bags(counts, 20), make_bags(counts[::-1], 30, id_dtype=np.int64, seed=1)]
    weights = [weights_of(len(bags[1][0]), seed=3), weights_of(len(bags[0][0]), seed=4).reshape(-1, 1)]
    lookups = (
        Lookup(0, 0, 0, 0, "mean"),
        Lookup(1, 1, 1, -1, "sum", fill=2, weights=0),
        Lookup(0, 0, 0, 0, "sqrtn", weights=1, drop_weightless=True),
        Lookup(0, 0, 0, 0, "sum", fill=3, weights=1, drop_weightless=True),
    )
    outputs = (
        Output(((0, 8), (1, 5), (-1, 3), (2, 8), (3, 8)), (-1, 32)),
        Output(((1, 0),)),
        Output(((2, 8),), (6, 8)),
    )
    segments = [bags[0][1], splits_of(counts[::-1])]
    dense = [np.random.default_rng(0).random((6, 3)).astype(np.float32)]
    spec = Spec(lookups, outputs, (False, True))
    check(spec, tables, [ids for ids, _ in bags], segments, [np.array([6, 20])], dense, weights)


def test_rows_end_with_the_last_id_that_has_a_weight():
    table, weights = make_table(9, 4), np.array([1, 2, 0, -1, np.nan], np.float32)
    ids, segments = np.array([1, 2, 3, 4, 5], np.int32), np.array([0, 2, 2, 4, 6])
    spec = one(combiner="mean", weights=0, drop_weightless=True)
    assert run(spec, [table], [ids], [segments], weights=[weights])[0].shape == (3, 4)
    check(spec, [table], [ids], [segments], weights=[weights])
    check(one(combiner="mean", weights=0), [table], [ids[:4]], [segments[:4]], weights=[weights[:4]])


def test_what_has_no_weight_may_name_no_row():
    """As in stock, which leaves such ids out before it gathers."""
    table, ids, segments = make_table(9, 4), np.array([1, 99, 2]), np.array([0, 1, 1])
    spec = one(combiner="mean", rows=0, weights=0, drop_weightless=True)
    assert run(spec, [table], [ids], [segments], [np.int32(2)], weights=[np.float32([1, 0, 2])])[0].shape == (2, 4)
    with pytest.raises(tf.errors.InvalidArgumentError, match=re.escape("indices[1] = 99 is not in [0, 9)")):
        run(spec, [table], [ids], [segments], [np.int32(2)], weights=[np.float32([1, 1, 2])])


@pytest.mark.parametrize(
    ("change", "weights", "sentence"),
    [
        ({}, [np.ones(2, np.float32)], "lookup 'one' must have one weight for each of its 3 ids, but its weights have"),
        ({}, [np.ones(3, np.float64)], "weights of float rows must be float or bool, but input 0 is double."),
        ({"weights": 1}, [np.ones(3, np.float32)], "`lookup_weights[0]`"),
        (
            {"weights": -1, "drop_weightless": True},
            [],
            "`lookup_drop_weightless[0]` must be false for a lookup without",
        ),
    ],
)
def test_what_is_refused(change, weights, sentence):
    inputs = [make_table(9, 4)], [np.array([1, 2, 3])], [np.array([0, 0, 1])]
    with pytest.raises(tf.errors.InvalidArgumentError, match=re.escape(sentence)):
        run(one(**({"weights": 0} | change)), *inputs, weights=weights)


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        ([], "`weights` must have one entry for each table. Received: 0 entries for 1 tables."),
        ([[1.0]], "`weights[0]` must be None or a tf.SparseTensor or tf.RaggedTensor of floats. Received: [1.0]."),
    ],
)
def test_wrapper_says_what_is_wrong(weights, sentence):
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        packed_pooled_lookup([make_table(9, 4)], [tf.ragged.constant([[1]])], weights)


@settings(max_examples=100, deadline=None)
@given(
    counts=st.lists(st.integers(0, 40), min_size=1, max_size=20),
    width=st.integers(1, 40),
    dtype=st.sampled_from(DTYPES),
    combiner=st.sampled_from(COMBINERS),
    default_id=st.sampled_from([None, 0, 4]),
    seed=st.integers(0, 99),
)
def test_random_bags_give_the_bits_of_stock(counts, width, dtype, combiner, default_id, seed):
    table = make_table(30, width, dtype=dtype)
    ids, _ = make_bags(counts, 30, seed=seed)
    weights = tf.cast(tf.cast(weights_of(len(ids), dtype, seed), dtype), tf.float64).numpy()
    bags, weight_bags = sparse(counts, ids), sparse(counts, weights)
    wanted = stock_safe(table, bags, weight_bags, combiner, default_id)
    arguments = {"combiner": combiner, "default_id": default_id, "drop_negative": True}
    assert_same_bits(packed_pooled_lookup([table], [bags], [weight_bags], **arguments)[0], wanted)

"""Pooled lookups of matrices of ids: the bits of TensorFlow's Sum and Mean and of the oracle, and what is refused."""

import re

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.packed_lookup_calls import make_table
from tests.support.packed_lookup_oracle import Output
from tests.support.packed_pooled_lookup_calls import assert_same_bits, check, make_bags, run
from tests.support.packed_pooled_lookup_oracle import Lookup, Spec

DTYPES = (tf.float32, tf.float64)
LENGTHS = (0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 18, 19, 20, 23, 31, 32, 33, 40, 50, 70)
STOCK = {"sum": tf.reduce_sum, "mean": tf.reduce_mean}
ROWS = Output(((0, 0),))


def spec_of(*lookups, outputs=(ROWS,)):
    return Spec(tuple(Lookup(0, 0, -1, name="one", **lookup) for lookup in lookups), outputs, ())


def matrix(examples, length, rows=40, seed=0, dtype=np.int64):
    return np.random.default_rng(seed).integers(0, rows, (examples, length)).astype(dtype)


def assert_equal(found, wanted):
    """The same bits, but that the sign of a NaN is left open."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert np.array_equal(np.isnan(found), np.isnan(wanted))
    assert_same_bits(np.where(np.isnan(found), 0, found), np.where(np.isnan(wanted), 0, wanted))


@pytest.mark.parametrize("combiner", STOCK)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_bits_of_sum_and_mean(dtype, combiner):
    for seed, width in enumerate((1, 2, 3, 4, 7, 8, 9, 12, 16, 17, 24, 31, 40, 300)):
        table = make_table(40, width, dtype=dtype, seed=seed)
        for length in LENGTHS:
            for examples in (0, 1, 2, 3, 5, 32, 67):
                ids = matrix(examples, length, seed=length, dtype=(np.int32, np.int64)[seed % 2])
                wanted = STOCK[combiner](tf.gather(table, ids), axis=1)
                assert_equal(run(spec_of({"combiner": combiner}), [table], [ids], [])[0], wanted)


@pytest.mark.parametrize("combiner", STOCK)
def test_bits_where_threads_share_the_work(combiner):
    for examples, length, width in ((3000, 17, 12), (5000, 50, 17), (4097, 16, 9), (3001, 33, 1), (2000, 7, 64)):
        table, ids = make_table(500, width), matrix(examples, length, 500)
        wanted = STOCK[combiner](tf.gather(table, ids), axis=1)
        assert_same_bits(run(spec_of({"combiner": combiner}), [table], [ids], [])[0], wanted)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_bits_of_weighted_and_masked_sums(dtype):
    random = np.random.default_rng(0)
    for width in (1, 3, 8, 17, 40):
        table = make_table(40, width, dtype=dtype)
        for length in LENGTHS:
            ids = matrix(9, length)
            weights = random.standard_normal(ids.shape).astype(dtype.as_numpy_dtype)
            mask = random.random(ids.shape) < 0.5
            mask[0] = False
            rows = tf.gather(table, ids)
            spec = spec_of({"weights": 0})
            wanted = tf.reduce_sum(rows * weights[..., None], axis=1)
            assert_same_bits(run(spec, [table], [ids], [], weights=[weights])[0], wanted)
            check(spec, [table], [ids], [], weights=[weights])
            wanted = tf.reduce_sum(tf.where(mask[..., None], rows, tf.zeros([], dtype)), axis=1)
            assert_same_bits(run(spec, [table], [ids], [], weights=[mask])[0], wanted)
            check(spec, [table], [ids], [], weights=[mask])


def test_values_that_no_arithmetic_may_touch():
    """Signed zeros, infinities, NaNs and denormals; what a mask hides counts as zero."""
    values = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-41, 3.4e38, 1.0, -1.0], np.float32)
    for width in (1, 9):
        table = tf.Variable(np.repeat(values[:, None], width, 1))
        for length in (1, 2, 17, 40):
            ids = matrix(50, length, 10, seed=length)
            mask = np.random.default_rng(1).random(ids.shape) < 0.5
            rows = tf.gather(table, ids)
            for combiner, stock in STOCK.items():
                assert_equal(run(spec_of({"combiner": combiner}), [table], [ids], [])[0], stock(rows, axis=1))
            wanted = tf.reduce_sum(tf.where(mask[..., None], rows, 0.0), axis=1)
            assert_equal(run(spec_of({"weights": 0}), [table], [ids], [], weights=[mask])[0], wanted)


@settings(max_examples=150, deadline=None)
@given(
    examples=st.integers(0, 12),
    widths=st.lists(st.integers(1, 40), min_size=1, max_size=4),
    columns=st.integers(1, 40),
    first=st.integers(0, 3),
    pitch=st.integers(0, 3),
    dtype=st.sampled_from(DTYPES),
    id_dtype=st.sampled_from([np.int32, np.int64]),
    narrow=st.booleans(),
    kind=st.sampled_from(["sum", "mean", "weights", "mask"]),
    seed=st.integers(0, 99),
)
def test_random_calls_give_the_bits_of_the_oracle(
    examples, widths, columns, first, pitch, dtype, id_dtype, narrow, kind, seed
):
    random = np.random.default_rng(seed)
    tables = [make_table(30, width, dtype=dtype, seed=n) for n, width in enumerate(widths)]
    ids = random.integers(-30, 30, (examples, first + columns + pitch)).astype(id_dtype)
    if narrow and id_dtype == np.int64:
        ids += random.integers(0, 3, ids.shape) << 32
    weights = random.standard_normal((examples, columns)).astype(dtype.as_numpy_dtype)
    given_weights = [weights > 0 if kind == "mask" else weights] if kind in ("weights", "mask") else []
    read = {"column": first, "columns": columns, "wrap": 30, "narrow": narrow}
    lookups = tuple(
        Lookup(n, 0, -1, combiner="mean" if kind == "mean" else "sum", weights=len(given_weights) - 1, **read)
        for n in range(len(widths))
    )
    output = Output(tuple(enumerate(widths)), (examples, sum(widths)))
    check(Spec(lookups, (output,), ()), tables, [ids], [], weights=given_weights)


@pytest.mark.parametrize("weighted", [False, True])
def test_sums_in_turn_have_the_bits_of_unsorted_segment_sum(weighted):
    counts = (0, 1, 1, *range(1, 36), 0, 100, 2500)
    for width in (1, 3, 8, 17, 300):
        table = make_table(40, width)
        ids, segments = make_bags(counts, 40)
        weights = np.random.default_rng(0).standard_normal(len(ids)).astype(np.float32)
        rows = tf.gather(table, ids)
        rows = rows * weights[:, None] if weighted else rows
        wanted = tf.math.unsorted_segment_sum(rows, segments, len(counts))
        lookup = Lookup(0, 0, 0, 0, name="one", weights=0 if weighted else -1, in_turn=True)
        spec = Spec((lookup,), (ROWS,), (False,))
        inputs = [table], [ids], [segments], [np.int32(len(counts))]
        assert_same_bits(run(spec, *inputs, weights=[weights] * weighted)[0], wanted)
        check(spec, *inputs, weights=[weights] * weighted)


def test_a_row_by_itself_is_added_to_a_zero():
    table = tf.Variable(np.float32([[-0.0, 1.0]]))
    spec = Spec((Lookup(0, 0, 0, name="one", in_turn=True),), (ROWS,), (False,))
    found = run(spec, [table], [np.array([0])], [np.array([0])])[0]
    assert not np.signbit(found).any()


@pytest.mark.parametrize(
    ("change", "ids", "weights", "sentence"),
    [
        ({}, [1, 2], [], "be a matrix, but"),
        ({}, [[1, 9]], [], "indices[0,1] = 9 is not in [0, 9) (lookup 'one', table"),
        ({}, [[1, -1]], [], "indices[0,1] = -1 is not in [0, 9)"),
        ({"column": 1, "columns": 2}, [[1, 2]], [], "lookup 'one' reads columns 1 to 2 of a matrix of ids"),
        ({"weights": 0}, [[1, 2]], [np.ones((1, 1), np.float32)], "must have one weight for each of its 2 ids"),
        ({"weights": 0}, [[1, 2]], [np.ones((2, 2), bool)], "must have one weight for each of its 2 ids"),
        ({"combiner": "sqrtn"}, [[1]], [], "`lookup_segments[0]` may be -1 only for a sum"),
        ({"weights": 0, "combiner": "mean"}, [[1]], [np.ones(1, np.float32)], "`lookup_segments[0]` may be -1 only"),
        ({"drop": True}, [[1]], [], "`lookup_segments[0]` may be -1 only for a sum"),
        ({"fill": 0}, [[1]], [], "`lookup_segments[0]` may be -1 only for a sum"),
        ({"in_turn": True}, [[1]], [], "`lookup_segments[0]` may be -1 only for a sum"),
    ],
)
def test_what_is_refused(change, ids, weights, sentence):
    with pytest.raises((tf.errors.InvalidArgumentError, ValueError), match=re.escape(sentence)):
        run(spec_of(change), [make_table(9, 4)], [np.array(ids)], [], weights=weights)


def test_half_types_are_refused():
    with pytest.raises(tf.errors.InvalidArgumentError, match=re.escape("may be -1 for float and double rows only.")):
        run(spec_of({}), [make_table(9, 4, dtype=tf.float16)], [np.array([[1]])], [])


@pytest.mark.parametrize(
    ("change", "weights", "sentence"),
    [
        ({"wrap": 9}, [], "`lookup_column[0]` must be -1, and its ids must be read as they are"),
        ({"weights": 0}, [np.ones(1, bool)], "`lookup_weights[0]` is a mask, but its ids are no matrix."),
        ({"in_turn": True, "combiner": "mean"}, [], "`lookup_in_turn[0]` must be false for a lookup that fills rows"),
    ],
)
def test_what_lookups_with_segments_may_not_have(change, weights, sentence):
    spec = Spec((Lookup(0, 0, 0, name="one", **change),), (ROWS,), (False,))
    with pytest.raises(tf.errors.InvalidArgumentError, match=re.escape(sentence)):
        run(spec, [make_table(9, 4)], [np.array([1])], [np.array([0])], weights=weights)

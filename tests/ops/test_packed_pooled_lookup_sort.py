"""Pooled lookups of ids in any order of rows: what safe_embedding_lookup_sparse makes of an unsorted SparseTensor."""

import re

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.packed_lookup_calls import make_table
from tests.support.packed_lookup_oracle import Output
from tests.support.packed_pooled_lookup_calls import assert_same_bits, check, make_bags, one, run, splits_of
from tests.support.packed_pooled_lookup_oracle import COMBINERS, Lookup, Spec

DTYPES = (tf.float16, tf.bfloat16, tf.float32, tf.float64)
COUNTS = (0, *range(14), 0, 100, 1, 0)


def shuffled(counts, rows, *, id_dtype=np.int64, negative=True, seed=0):
    """Ids of `counts[r]` table rows for each output row r, some of them negative, and their indices, in any order."""
    random = np.random.default_rng(seed)
    ids, owners = make_bags(counts, rows, id_dtype=id_dtype, seed=seed)
    if negative:
        ids = np.where(random.random(len(ids)) < 0.2, -1 - ids, ids)
    order = random.permutation(len(ids))
    return ids[order], np.stack([owners[order], np.arange(len(ids))[::-1]], 1)


def refused(sentence):
    return pytest.raises(tf.errors.InvalidArgumentError, match=re.escape(sentence))


@pytest.mark.parametrize("combiner", COMBINERS)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("default_id", [None, 0, 7])
def test_bits_of_safe_embedding_lookup_sparse(dtype, combiner, default_id):
    sizes = np.array([len(COUNTS), 3000])
    spec = one(combiner=combiner, rows=0, drop=True, fill=-1 if default_id is None else default_id, sort=True)
    for seed, width in enumerate((1, 3, 8, 33, 300)):
        table = make_table(40, width, dtype=dtype, seed=seed)
        ids, indices = shuffled(COUNTS, 40, seed=seed)
        bags = tf.SparseTensor(indices, ids, sizes)
        wanted = tf.nn.safe_embedding_lookup_sparse(table, bags, None, combiner=combiner, default_id=default_id)
        assert_same_bits(run(spec, [table], [ids], [indices], [sizes])[0], wanted)
        check(spec, [table], [ids], [indices], [sizes])


def test_rank_three_sparse_tensor():
    ids, indices = shuffled([3, 0, 4, 1, 9, 2], 40)
    cube = np.stack([indices[:, 0] // 3, indices[:, 0] % 3, indices[:, 1]], 1)
    table, sizes = make_table(40, 8), np.array([2, 3, 30])
    wanted = tf.nn.safe_embedding_lookup_sparse(table, tf.SparseTensor(cube, ids, sizes), None, combiner="sqrtn")
    spec = one(combiner="sqrtn", rows=0, drop=True, sort=True)
    assert_same_bits(run(spec, [table], [ids], [cube], [sizes])[0].reshape(2, 3, 8), wanted)


@pytest.mark.parametrize("segment_dtype", [np.int32, np.int64])
@pytest.mark.parametrize("id_dtype", [np.int32, np.int64])
def test_all_forms_of_segments(id_dtype, segment_dtype):
    ids, indices = shuffled(COUNTS, 40, id_dtype=id_dtype)
    table, spec = make_table(40, 6), one(combiner="mean", rows=0, drop=True, fill=3, sort=True)
    wanted = run(spec, [table], [ids], [indices], [np.array([len(COUNTS), 500])])[0]
    for segments in (indices.astype(segment_dtype), indices[:, 0].astype(segment_dtype)):
        for sizes in (np.int32(len(COUNTS)), np.array([len(COUNTS), 9])):
            assert_same_bits(run(spec, [table], [ids], [segments], [sizes])[0], wanted)


def test_ids_that_are_in_order_and_row_splits_are_as_without_it():
    ids, owners = make_bags(COUNTS, 40)
    table, sizes = make_table(40, 6), [np.int32(len(COUNTS))]
    wanted = run(one(rows=0), [table], [ids], [owners], sizes)[0]
    assert_same_bits(run(one(rows=0, sort=True), [table], [ids], [owners], sizes)[0], wanted)
    splits = Spec((Lookup(0, 0, 0, sort=True),), (Output(((0, 0),)),), (True,))
    assert_same_bits(run(splits, [table], [ids], [splits_of(COUNTS)])[0], wanted)
    nothing = [np.zeros(0, np.int64)], [np.zeros((0, 2), np.int64)]
    assert run(one(rows=0, sort=True), [table], *nothing, [np.int32(2)])[0].tolist() == [[0.0] * 6] * 2


def test_a_lookup_in_several_outputs_beside_others():
    """Sorted and unsorted, with and without the attribute, and a dense piece."""
    n = len(COUNTS)
    tables = [make_table(40, 8), make_table(30, 5, seed=1)]
    bags = [shuffled(COUNTS, 40), shuffled(COUNTS[::-1], 30, seed=1), make_bags(COUNTS, 30, seed=2)]
    lookups = (
        Lookup(0, 0, 0, 0, "mean", drop=True, sort=True),
        Lookup(1, 1, 1, 0, "sum", drop=True, fill=2, sort=True),
        Lookup(1, 2, 2, 0, "sqrtn"),
        Lookup(1, 2, 2, 0, "sqrtn", sort=True),
    )
    outputs = (
        Output(((2, 5), (0, 8), (-1, 3), (1, 5), (0, 8)), (-1, 29)),
        Output(((1, 0),)),
        Output(((0, 8), (3, 5)), (-1, 13)),
    )
    dense = [np.random.default_rng(0).random((n, 3)).astype(np.float32)]
    spec = Spec(lookups, outputs, (False,) * 3)
    check(spec, tables, [ids for ids, _ in bags], [of for _, of in bags], [np.array([n, 9])], dense)


def test_without_the_attribute_such_ids_are_an_error():
    table, sizes = make_table(9, 4), [np.int64(5)]
    ids, segments = np.array([1, 2, 3, 4]), np.array([0, 3, 2, 4])
    sentence = "the segments of lookup 'one' must not decrease, but segments[2] = 2 comes after 3."
    for spec in (one(rows=0), one(rows=0, sort=False)):
        with refused(sentence):
            run(spec, [table], [ids], [segments], sizes)
    attributes = one(rows=0).attributes() | {"lookup_sort": []}
    without = type("Without", (), {"attributes": lambda self: attributes})()
    with refused(sentence):
        run(without, [table], [ids], [segments], sizes)
    lookups = (Lookup(0, 0, 0, 0, name="one", sort=True), Lookup(0, 0, 0, 0, name="two"))
    both = Spec(lookups, (Output(((0, 4), (1, 4)), (-1, 8)),), (False,))
    with refused(sentence.replace("one", "two")):
        run(both, [table], [ids], [segments], sizes)


@pytest.mark.parametrize("bad", [9, 2**40, -1])
def test_an_id_out_of_range_is_named_where_it_stands(bad):
    table = tf.Variable(tf.zeros([9, 4]), name="user_table")
    ids, segments = np.array([1, 2, bad, 3, bad]), np.array([4, 3, 0, 2, 0])
    with refused(f"indices[2] = {bad} is not in [0, 9) (lookup 'one', table 'user_table/"):
        run(one(rows=0, sort=True), [table], [ids], [segments], [np.int32(5)])


@pytest.mark.parametrize("bad", [5, -1])
def test_a_segment_out_of_range_is_named_where_it_stands(bad):
    segments = np.array([4, 3, bad, 2, 0, bad])
    with refused(f"segments[2] = {bad} of lookup 'one' is not in [0, 5), its rows."):
        run(one(rows=0, sort=True), [make_table(9, 4)], [np.zeros(6, np.int64)], [segments], [np.int32(5)])


def test_a_fill_out_of_range_is_an_error_where_a_row_is_filled():
    table, spec = tf.Variable(tf.zeros([9, 4]), name="user_table"), one(rows=0, drop=True, fill=9, sort=True)
    ids, segments = np.array([1, -1, 2, 3]), np.array([2, 1, 0, 1])
    assert run(spec, [table], [ids], [segments], [np.int32(3)])[0].shape == (3, 4)
    for more in ([2, 1, 0, 0], [2, 1, 0, 2]):
        with refused("lookup 'one' fills a row without ids with row 9 of table 'user_table/"):
            run(spec, [table], [ids], [np.array(more)], [np.int32(3)])


@settings(max_examples=100, deadline=None)
@given(
    counts=st.lists(st.integers(0, 20), min_size=1, max_size=20),
    width=st.integers(1, 40),
    dtype=st.sampled_from(DTYPES),
    combiner=st.sampled_from(COMBINERS),
    default_id=st.sampled_from([None, 0, 4]),
    seed=st.integers(0, 99),
)
def test_random_bags_give_the_bits_of_stock(counts, width, dtype, combiner, default_id, seed):
    table, sizes = make_table(30, width, dtype=dtype), np.array([len(counts), 500])
    ids, indices = shuffled(counts, 30, seed=seed)
    bags = tf.SparseTensor(indices, ids, sizes)
    wanted = tf.nn.safe_embedding_lookup_sparse(table, bags, None, combiner=combiner, default_id=default_id)
    spec = one(combiner=combiner, rows=0, drop=True, fill=-1 if default_id is None else default_id, sort=True)
    assert_same_bits(run(spec, [table], [ids], [indices], [sizes])[0], wanted)


def test_what_is_dropped_may_belong_to_no_row():
    """As in stock, which leaves such ids out before it looks at their rows."""
    table = make_table(20, 8)
    indices = np.array([[0, 0], [7, 0], [2, 0]], np.int64)
    ids, shape = np.array([1, -2, 3]), np.array([4, 64])
    bags = tf.SparseTensor(indices, ids, shape)
    wanted = tf.nn.safe_embedding_lookup_sparse(table, bags, None, combiner="sum")
    assert_same_bits(run(one(rows=0, drop=True, sort=True), [table], [ids], [indices], [shape])[0], wanted)
    nothing = run(one(rows=0, drop=True, sort=True), [table], [ids[1:2]], [indices[1:2]], [np.array([0, 64])])[0]
    assert nothing.shape == (0, 8)

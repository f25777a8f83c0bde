"""What the packed pooled lookup and its wrapper refuse: InvalidArgument as from stock, in one clear sentence."""

import re

import numpy as np
import pytest
import tensorflow as tf

from picasso_tf.bridge import library
from picasso_tf.ops import packed_pooled_lookup
from tests.support.packed_lookup_calls import make_table
from tests.support.packed_lookup_oracle import Output
from tests.support.packed_pooled_lookup_calls import make_bags, one, run, splits_of
from tests.support.packed_pooled_lookup_oracle import Lookup, Spec

ROWS = Output(((0, 0),))
SPLITS = Spec((Lookup(0, 0, 0, name="one"),), (ROWS,), (True,))


def refused(message):
    return pytest.raises(tf.errors.InvalidArgumentError, match=re.escape(message))


@pytest.mark.parametrize("bad", [10, -1, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize("id_dtype", [np.int32, np.int64])
def test_id_out_of_range(bad, id_dtype):
    table = tf.Variable(tf.zeros([10, 4]), name="user_table")
    ids, segments = np.array([3, 5, bad, bad, 1], id_dtype), np.array([0, 0, 0, 1, 1])
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.raw_ops.SparseSegmentSum(data=table, indices=ids, segment_ids=segments)
    with refused(f"indices[2] = {bad} is not in [0, 10) (lookup 'one', table 'user_table/"):
        run(one(), [table], [ids], [segments])
    drop = one(drop=True)
    if bad < 0:
        assert run(drop, [table], [ids], [segments])[0].shape == (2, 4)
    else:
        with refused(f"indices[2] = {bad} is not in [0, 10)"):
            run(drop, [table], [ids], [segments])


def test_the_first_of_many_faults_is_reported():
    tables = [make_table(100, 32, seed=i) for i in range(4)]
    bags = [make_bags([4] * 2000, 100, seed=i) for i in range(4)]
    bags[1][0][[3000, 700]] = 100
    bags[3][0][[1, 2]] = -3
    bags[3][1][:] = bags[3][1][::-1]
    lookups = tuple(Lookup(i, i, i, 0, name=f"lookup_{i}") for i in range(4))
    pieces = tuple((i, 32) for i in reversed(range(4)))
    spec = Spec(lookups, (Output(pieces, (-1, 128)),), (False,) * 4)
    inputs = [ids for ids, _ in bags], [segments for _, segments in bags], [np.int32(2000)]
    for _ in range(20):
        with refused("indices[700] = 100 is not in [0, 100) (lookup 'lookup_1'"):
            run(spec, tables, *inputs)
    bags[1][0][[3000, 700]] = 0
    for _ in range(20):
        with refused("the segments of lookup 'lookup_3' must not decrease, but segments[4] = 1998 comes after 1999."):
            run(spec, tables, *inputs)


def test_a_lookup_that_no_piece_reads_is_not_checked():
    table, ids, segments = make_table(9, 4), np.array([1, 99]), np.array([0, 0])
    spec = Spec((Lookup(0, 0, 0), Lookup(0, 1, 0), Lookup(0, 1, 0, 0)), (ROWS,), (False,))
    wanted = table.numpy()[1] + table.numpy()[2]
    assert run(spec, [table], [np.array([1, 2]), ids], [segments], [np.int32(0)])[0].tolist() == [wanted.tolist()]


@pytest.mark.parametrize("rows", [None, 5])
@pytest.mark.parametrize("columns", [1, 2])
def test_segments_that_decrease(rows, columns):
    segments = np.array([0, 3, 3, 2, 4])
    segments = segments if columns == 1 else np.stack([segments, [9, 0, 1, 0, 0]], 1)
    spec, given = (one(), []) if rows is None else (one(rows=0), [np.int64(rows)])
    with refused("the segments of lookup 'one' must not decrease, but segments[3] = 2 comes after 3."):
        run(spec, [make_table(9, 4)], [np.zeros(5, np.int32)], [segments], given)


@pytest.mark.parametrize(
    ("segments", "rows", "sentence"),
    [
        ([0, 1, 5], 5, "segments[2] = 5 of lookup 'one' is not in [0, 5), its rows."),
        ([0, 9, 1], 5, "segments[1] = 9 of lookup 'one' is not in [0, 5), its rows."),
        ([-1, 0, 1], 5, "segments[0] = -1 of lookup 'one' is not in [0, 5), its rows."),
        ([-1, 0, 1], None, "segments[0] = -1 of lookup 'one' is not in [0, 2), its rows."),
        ([0, 0, -3], None, "segments[2] = -3 of lookup 'one' is not the number of a row."),
        ([0, 0, 0], 0, "segments[0] = 0 of lookup 'one' is not in [0, 0), its rows."),
    ],
)
def test_segments_out_of_range(segments, rows, sentence):
    spec, given = (one(), []) if rows is None else (one(rows=0), [np.int64(rows)])
    with refused(sentence):
        run(spec, [make_table(9, 4)], [np.zeros(3, np.int32)], [np.array(segments)], given)


def test_indices_that_leave_the_dense_shape():
    indices = np.array([[0, 0, 0], [1, 3, 0]])
    with refused("segments[1] = 6 of lookup 'one' is not in [0, 6), its rows."):
        run(one(rows=0), [make_table(9, 4)], [np.zeros(2, np.int32)], [indices], [np.array([2, 3, 5])])
    with refused("is not in [0, 6), its rows."):  # the row number overflows
        indices[1, 0] = 2**62
        run(one(rows=0), [make_table(9, 4)], [np.zeros(2, np.int32)], [indices], [np.array([2, 3, 5])])


@pytest.mark.parametrize(
    ("splits", "at", "found"), [([1, 2, 4], 0, 1), ([0, 3, 2, 4], 2, 2), ([0, 3, 5], 2, 5), ([0, 3], 1, 3), ([0], 0, 0)]
)
def test_row_splits(splits, at, found):
    sentence = f"the row splits of lookup 'one' must rise from 0 to its number of ids, 4, but splits[{at}] = {found}."
    with refused(sentence):
        run(SPLITS, [make_table(9, 4)], [np.zeros(4, np.int32)], [np.array(splits)])


def test_fill_out_of_range_is_an_error_where_a_row_is_filled():
    table = tf.Variable(tf.zeros([10, 4]), name="user_table")
    spec = one(rows=0, fill=10, drop=True)
    ids = np.array([1, -2, 3])
    assert run(spec, [table], [ids], [np.array([0, 1, 1])], [np.int32(2)])[0].shape == (2, 4)
    with refused("lookup 'one' fills a row without ids with row 10 of table 'user_table/"):
        run(spec, [table], [ids], [np.array([0, 1, 2])], [np.int32(3)])


IDS = (np.arange(4), np.zeros([2, 2], np.int32), np.zeros(1, np.int64))
SEGMENTS = (np.array([0, 1, 1, 3]), np.zeros([4, 3], np.int64), np.zeros([4, 1], np.int32), np.zeros([4, 11], np.int64))
GIVEN = (np.int32(4), np.array([4, 5]), np.array([-1, 5]), np.array([2**40, 2**40, 2]), np.zeros(0, np.int64))
ONE, TWO = Lookup(0, 0, 0, 0, name="one"), Lookup(0, 2, 4, -1, name="two")
BAD_SPECS = {
    "piece 1 of output 0 (lookup 'two') has 7 rows, but piece 0 (lookup 'one') has 4.": (
        (ONE, TWO),
        (Output(((0, 8), (1, 8)), (-1, 16)),),
    ),
    "piece 1 of output 0 (dense input 0) has 3 rows, but piece 0 (lookup 'one') has 4.": (
        (ONE,),
        (Output(((0, 8), (-1, 2)), (-1, 10)),),
    ),
    "dense input 0 has 6 elements, which is no multiple of the width of its piece, 4.": (
        (ONE,),
        (Output(((-1, 4),), (-1, 4)),),
    ),
    "the piece of lookup 'one' is 16 wide, which is not the size of a row of its table, whose shape is [9,8].": (
        (ONE,),
        (Output(((0, 16),), (-1, 16)),),
    ),
    "32 elements cannot take the shape [?,5].": ((ONE,), (Output(((0, 8),), (-1, 5)),)),
    "the ids of lookup 'x' must be a vector, but their shape is [2,2].": ((Lookup(0, 1, 0, name="x"),), (ROWS,)),
    "lookup 'x' must have one segment for each of its 1 ids, but its segments have shape [4].": (
        (Lookup(0, 2, 0, name="x"),),
        (ROWS,),
    ),
    "the segments of lookup 'x' must be a vector or a matrix of two columns or more, but their shape is [4,1].": (
        (Lookup(0, 0, 2, name="x"),),
        (ROWS,),
    ),
    "the segments of lookup 'x' must have at most 9 columns, but their shape is [4,11].": (
        (Lookup(0, 0, 3, name="x"),),
        (ROWS,),
    ),
    "the rows of lookup 'x' must be a vector with one entry for each column of its segments, whose shape is [4,3], "
    "but there are none.": ((Lookup(0, 0, 1, name="x"),), (ROWS,)),
    "the rows of lookup 'y' must be a vector with one entry for each column of its segments, whose shape is [4,3], "
    "but their shape is [2].": ((Lookup(0, 0, 1, 1, name="y"),), (ROWS,)),
    "the rows of lookup 'z' must be a scalar or a vector with one entry for each column of its segments, whose shape "
    "is [4], but their shape is [0].": ((Lookup(0, 0, 0, 4, name="z"),), (ROWS,)),
    "must fit 63 bits and not be negative, but its rows are [-1 5].": ((Lookup(0, 0, 0, 2),), (ROWS,)),
    "must fit 63 bits and not be negative, but its rows are [1099511627776": ((Lookup(0, 0, 0, 3),), (ROWS,)),
    "`lookup_table[0]` must be in [0, 1), but it is 1.": ((Lookup(1, 0, 0),), (ROWS,)),
    "`lookup_ids[0]` must be in [0, 3), but it is -1.": ((Lookup(0, -1, 0),), (ROWS,)),
    "`lookup_segments[0]` must be in [-1, 5), but it is 5.": ((Lookup(0, 0, 5),), (ROWS,)),
    "`lookup_rows[0]` must be in [-1, 5), but it is -2.": ((Lookup(0, 0, 0, -2),), (ROWS,)),
    "`lookup_rows[0]` must be -1, for row splits tell the number of rows, but it is 2.": (
        (Lookup(0, 2, 4, 2),),
        (ROWS,),
    ),
    "`lookup_fill[0]` must be in [-1, 9223372036854775807), but it is -2.": ((Lookup(0, 0, 0, fill=-2),), (ROWS,)),
    "output 1 has no piece.": ((ONE,), (ROWS, Output((), (-1, 8)))),
    "output 0 has a shape of unknown rank, so it must have one piece, a lookup of width 0": (
        (ONE,),
        (Output(((0, 8),)),),
    ),
    "`output_shapes[0]` must have at most one unknown dimension, but it is [?,?].": (
        (ONE,),
        (Output(((0, 8),), (-1, -1)),),
    ),
}


@pytest.mark.parametrize("sentence", BAD_SPECS)
def test_what_does_not_fit_is_said_in_one_sentence(sentence):
    spec = Spec(*BAD_SPECS[sentence], (False,) * 4 + (True,))
    segments = [*SEGMENTS, np.array([0, 0, 0, 0, 1, 1, 1, 1])]
    dense = [np.zeros((3, 2), np.float32)]
    with pytest.raises((tf.errors.InvalidArgumentError, ValueError)) as caught:
        run(spec, [make_table(9, 8)], IDS, segments, GIVEN, dense)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("attribute", "value", "sentence"),
    [
        ("lookup_drop", [False] * 2, "`lookup_drop` must have one entry for each lookup (1), but it has 2."),
        ("lookup_combiner", [], "`lookup_combiner` must have one entry for each lookup (1), but it has 0."),
        ("lookup_fill", [], "`lookup_fill` must have one entry for each lookup (1), but it has 0."),
        ("lookup_sort", [True] * 2, "`lookup_sort` must have one entry for each lookup (1), but it has 2."),
        ("segments_are_splits", [], "`segments_are_splits` must have one entry for each segments input (1), but it"),
        ("piece_width", [0, 0], "`piece_width` must have one entry for each piece (1), but it has 2."),
        ("lookup_combiner", ["max"], 'string \'max\' not in: "sum", "mean", "sqrtn"'),
    ],
)
def test_attributes_are_checked_when_a_graph_is_made(attribute, value, sentence):
    table = make_table(9, 8)

    @tf.function
    def function():
        return library.ops().picasso_packed_pooled_lookup(
            tables=[table.handle],
            ids=[tf.range(3)],
            segments=[tf.range(3)],
            rows=[],
            dense=[tf.zeros([0])],
            weights=[],
            **(one().attributes() | {attribute: value}),
        )

    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match=re.escape(sentence)):
        function.get_concrete_function()


def test_ranks_are_checked_when_a_graph_is_made():
    table = make_table(9, 8)

    @tf.function
    def function(ids, segments, splits):
        spec = SPLITS if splits else one()
        return library.ops().picasso_packed_pooled_lookup(
            tables=[table.handle],
            ids=[ids],
            segments=[segments],
            rows=[],
            dense=[tf.zeros([0])],
            weights=[],
            **spec.attributes(),
        )

    for ids, segments, splits in (([2, 2], [2], False), ([2], [2, 2, 2], False), ([2], [2, 2], True), ([2], [], True)):
        with pytest.raises(ValueError, match="Shape must be"):
            function.get_concrete_function(tf.TensorSpec(ids, tf.int32), tf.TensorSpec(segments, tf.int64), splits)


def test_table_of_another_dtype():
    with refused("must be float of rank 1 or more, but it is double of shape"):
        spec = Spec((Lookup(0, 0, 0), Lookup(1, 0, 0)), (ROWS,), (False,))
        run(spec, [make_table(9, 8), make_table(9, 8, dtype=tf.float64)], [np.arange(4)], [np.arange(4)])


def test_uninitialised_variable_is_the_error_of_stock():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        table = tf.compat.v1.get_variable("t", [4, 2], use_resource=True)
        ids = tf.RaggedTensor.from_row_splits([1, 2, 3], [0, 2, 3])
        stock = tf.nn.safe_embedding_lookup_sparse(table, ids, None, combiner="sum")
        ours = packed_pooled_lookup([table], [ids], combiner="sum")
        with pytest.raises(tf.errors.OpError) as caught:
            session.run(stock)
        with pytest.raises(type(caught.value)):
            session.run(ours)
        session.run(tf.compat.v1.global_variables_initializer())
        assert session.run(ours)[0].tolist() == session.run(stock).tolist()


RAGGED = tf.RaggedTensor.from_row_splits(*(np.zeros(3, np.int32), splits_of([1, 2])))


def test_reads_and_writes_of_one_function_keep_their_order():
    table = tf.Variable(tf.zeros([4, 2]))

    @tf.function
    def function():
        before = packed_pooled_lookup([table], [RAGGED], combiner="sum")[0]
        table.scatter_add(tf.IndexedSlices([[5.0, 5.0]], [0]))
        after = packed_pooled_lookup([table], [RAGGED], combiner="sum")[0]
        return before, after

    before, after = function()
    assert before.numpy().tolist() == [[0.0, 0.0]] * 2
    assert after.numpy().tolist() == [[5.0, 5.0], [10.0, 10.0]]

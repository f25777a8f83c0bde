"""What the packed lookup refuses: the same class of error as `ResourceGather`, in one clear sentence."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from picasso_tf.bridge import library
from picasso_tf.ops import packed_lookup
from tests.support.packed_lookup_calls import make_ids, make_table, natural, run
from tests.support.packed_lookup_oracle import Lookup, Output, Spec

ROWS = Output(((0, 0),))


def refused(message):
    return pytest.raises(tf.errors.InvalidArgumentError, match=re.escape(message))


def stock_error(table, ids):
    with pytest.raises(tf.errors.OpError) as caught:
        tf.raw_ops.ResourceGather(resource=table.handle, indices=ids, dtype=tf.float32)
    return caught.value


@pytest.mark.parametrize("bad", [10, -1, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize("id_dtype", [np.int32, np.int64])
@pytest.mark.parametrize(
    ("shape", "at"), [((), ()), ((6,), (5,)), ((4, 3), (3, 0))], ids=["scalar", "vector", "matrix"]
)
def test_out_of_range_is_the_error_of_stock(bad, id_dtype, shape, at):
    table = tf.Variable(tf.zeros([10, 4]), name="user_table")
    ids = make_ids(shape, 10, id_dtype)
    ids[at] = bad
    stock = stock_error(table, ids)
    with pytest.raises(type(stock)) as caught:
        run(natural(1), [table], [ids])
    position = f"[{','.join(map(str, at))}]" if at else ""
    sentence = f"indices{position} = {bad} is not in [0, 10)"
    assert sentence in stock.message
    assert f"{sentence} (lookup 'lookup_0', table 'user_table/" in caught.value.message


def test_out_of_range_names_the_position_in_the_columns_read():
    ids = make_ids((6, 4), 10)
    ids[4, 2] = 77
    for first, columns, position in ((2, 1, "[4]"), (1, 2, "[4,1]")):
        spec = Spec((Lookup(0, 0, first, columns),), (ROWS,))
        with refused(f"indices{position} = 77 is not in [0, 10)"):
            run(spec, [make_table(10, 4)], [ids])


def test_the_first_of_many_bad_ids_is_reported():
    tables = [make_table(100, 32, seed=i) for i in range(8)]
    ids = [make_ids(4000, 100, seed=i) for i in range(8)]
    ids[2][[3000, 700]] = 100
    ids[5][[1, 2]] = -3
    pieces = tuple((i, 32) for i in reversed(range(8)))
    spec = Spec(natural(8).lookups, (Output(pieces, (-1, 256)),))
    for _ in range(20):
        with refused("indices[700] = 100 is not in [0, 100) (lookup 'lookup_2'"):
            run(spec, tables, ids)


def test_an_id_of_one_table_never_reads_another():
    tables = [make_table(10, 4), make_table(100, 4)]
    with refused("indices[0] = 50 is not in [0, 10)"):
        run(natural(2), tables, [np.array([50], np.int32), np.array([50], np.int32)])


def test_table_without_rows():
    with refused("indices[0] = 0 is not in [0, 0)"):
        run(natural(1), [make_table(0, 4)], [np.array([0], np.int32)])


def test_destroyed_variable_is_the_error_of_stock():
    handle = tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[4, 2], shared_name="destroyed")
    tf.raw_ops.AssignVariableOp(resource=handle, value=tf.zeros([4, 2]))
    tf.raw_ops.DestroyResourceOp(resource=handle)
    table = SimpleNamespace(handle=handle, dtype=tf.float32)
    stock = stock_error(table, [0])
    with pytest.raises(type(stock)):
        run(natural(1), [table], [np.array([0], np.int32)])


def test_uninitialised_variable_is_the_error_of_stock():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        table = tf.compat.v1.get_variable("t", [4, 2], use_resource=True)
        stock = tf.raw_ops.ResourceGather(resource=table.handle, indices=[0], dtype=tf.float32)
        ours = packed_lookup([table], [[0]])
        with pytest.raises(tf.errors.OpError) as caught:
            session.run(stock)
        with pytest.raises(type(caught.value)):
            session.run(ours)
        session.run(tf.compat.v1.global_variables_initializer())
        assert session.run(ours)[0].tolist() == session.run(stock).tolist()


ONE = Lookup(0, 0, name="one")
BAD_SPECS = {
    "piece 1 of output 0 (lookup 'two') has 5 rows, but piece 0 has 4.": Spec(
        (ONE, Lookup(0, 1, name="two")), (Output(((0, 8), (1, 8)), (-1, 16)),)
    ),
    "piece 1 of output 0 (dense input 0) has 3 rows, but piece 0 has 4.": Spec(
        (ONE,), (Output(((0, 8), (-1, 2)), (-1, 10)),)
    ),
    "the piece of lookup 'one' is 12 wide, which is no multiple of the row of its table, whose shape is [9,8].": Spec(
        (ONE,), (Output(((0, 12),), (-1, 12)),)
    ),
    "lookup 'one' has 4 ids, which is no multiple of the 3 that one row": Spec((ONE,), (Output(((0, 24),), (-1, 24)),)),
    "dense input 0 has 6 elements, which is no multiple of the width of its piece, 4.": Spec(
        (ONE,), (Output(((-1, 4),), (-1, 4)),)
    ),
    "32 elements cannot take the shape [?,5].": Spec((ONE,), (Output(((0, 8),), (-1, 5)),)),
    "32 elements cannot take the shape [4,9].": Spec((ONE,), (Output(((0, 8),), (4, 9)),)),
    "32 elements cannot take the shape [3,?].": Spec((ONE,), (ROWS,), ((0, (3, -1)),)),
    "reads columns 2 to 4 of a matrix of ids, but its ids have shape [4,3].": Spec((Lookup(0, 2, 2, 3),), (ROWS,)),
    "reads columns 0 to 0 of a matrix of ids, but its ids have shape [4].": Spec((Lookup(0, 0, 0, 1),), (ROWS,)),
    "`lookup_table[0]` must be in [0, 1), but it is 1.": Spec((Lookup(1, 0),), (ROWS,)),
    "`lookup_ids[0]` must be in [0, 3), but it is -1.": Spec((Lookup(0, -1),), (ROWS,)),
    "`lookup_column[0]` and `lookup_columns[0]` must be -1 and 0, or": Spec((Lookup(0, 0, 1, 0),), (ROWS,)),
    "`lookup_wrap[0]` must not be negative, but it is -2.": Spec((Lookup(0, 0, wrap=-2),), (ROWS,)),
    "`piece_source[0]` must be in [-1, 1), but it is -2.": Spec((ONE,), (Output(((-2, 1),), (-1, 1)),)),
    "`piece_width[0]` must be in [0, ": Spec((ONE,), (Output(((0, -1),), (-1, 1)),)),
    "every piece of output 0 must be at least 1 wide, but one has width 0.": Spec(
        (ONE,), (Output(((0, 0),), (-1, 8)),)
    ),
    "output 0 has a shape of unknown rank, so it must have one piece, a lookup of width 0": Spec(
        (ONE,), (Output(((0, 8),)),)
    ),
    "output 1 has no piece.": Spec((ONE,), (ROWS, Output((), (-1, 8)))),
    "`output_shapes[0]` must have at most one unknown dimension, but it is [?,?].": Spec(
        (ONE,), (Output(((0, 8),), (-1, -1)),)
    ),
    "`shape_lookup[0]` must be in [0, 1), but it is 4.": Spec((ONE,), (ROWS,), ((4, None),)),
}


@pytest.mark.parametrize("sentence", BAD_SPECS)
def test_what_does_not_fit_is_said_in_one_sentence(sentence):
    ids = [make_ids(4, 9), make_ids(5, 9), make_ids((4, 3), 9)]
    with pytest.raises((tf.errors.InvalidArgumentError, ValueError)) as caught:
        run(BAD_SPECS[sentence], [make_table(9, 8)], ids, [np.zeros((3, 2), np.float32)])
    assert sentence in str(caught.value)


def test_attribute_lists_of_different_length():
    attributes = natural(1).attributes() | {"lookup_wrap": [0, 0]}
    with refused("`lookup_wrap` must have one entry for each lookup (1), but it has 2."):
        library.ops().picasso_packed_lookup(
            tables=[make_table(9, 8).handle], ids=[make_ids(4, 9)], dense=[np.zeros([0], np.float32)], **attributes
        )


def test_table_of_another_dtype():
    with refused("must be float of rank 1 or more, but it is double of shape"):
        run(natural(2), [make_table(9, 8), make_table(9, 8, dtype=tf.float64)], [make_ids(4, 9)] * 2)

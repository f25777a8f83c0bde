"""The packed lookup against its oracle and against TensorFlow's own gather."""

import re
import threading
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from graph_passes.errors import ConfigError
from picasso_tf.bridge import library
from picasso_tf.ops import packed_lookup
from tests.support import packed_lookup_oracle as oracle
from tests.support.packed_lookup_oracle import Lookup, Output, Spec

DTYPES = (tf.float16, tf.bfloat16, tf.float32, tf.float64)
WIDTHS = (1, 3, 8, 16, 32, 64, 128, 200)


def make_table(rows, *row_shape, dtype=tf.float32, seed=0):
    values = np.random.default_rng(seed).standard_normal((rows, *row_shape))
    return tf.Variable(tf.cast(values, dtype))


def make_ids(shape, rows, dtype=np.int32, seed=0):
    return np.random.default_rng(seed).integers(0, rows, shape).astype(dtype)


def run(spec, tables, ids, dense=()):
    """Calls the raw op as the graph pass emits it. Returns (outputs, shapes) as arrays."""
    if not dense:
        dense = [np.zeros([0], tables[0].dtype.as_numpy_dtype)]  # names the dtype; no piece reads it
    result = library.ops().picasso_packed_lookup(
        tables=[table.handle for table in tables], ids=ids, dense=dense, **spec.attributes()
    )
    return [x.numpy() for x in result.outputs], [x.numpy() for x in result.shapes]


def check(spec, tables, ids, dense=()):
    """Asserts that op and oracle give the same bits."""
    wanted = oracle.packed_lookup(spec, [table.numpy() for table in tables], ids, list(dense))
    found = run(spec, tables, ids, dense)
    for found_list, wanted_list in zip(found, wanted, strict=True):
        for one_found, one_wanted in zip(found_list, wanted_list, strict=True):
            assert one_found.dtype == one_wanted.dtype
            assert one_found.shape == one_wanted.shape
            assert one_found.tobytes() == one_wanted.tobytes()


def natural(count, **lookup):
    """Each of `count` lookups to an output of its own."""
    lookups = tuple(Lookup(i, i, name=f"lookup_{i}", **lookup) for i in range(count))
    return Spec(lookups, tuple(Output(((i, 0),)) for i in range(count)))


# ---- Values --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("id_dtype", [np.int32, np.int64])
def test_all_widths_side_by_side(dtype, id_dtype):
    tables = [make_table(50 + i, width, dtype=dtype, seed=i) for i, width in enumerate(WIDTHS)]
    ids = [make_ids(70, 50 + i, id_dtype, seed=i) for i in range(len(WIDTHS))]
    spec = Spec(
        tuple(Lookup(i, i) for i in range(len(WIDTHS))),
        (Output(tuple(enumerate(WIDTHS)), (-1, sum(WIDTHS))),),
    )
    check(spec, tables, ids)


@pytest.mark.parametrize("width", WIDTHS)
def test_natural_output_of_each_width(width):
    check(natural(1), [make_table(40, width)], [make_ids((9, 5), 40)])


def test_large_batch_is_split_over_threads():
    tables = [make_table(1000, 32, seed=i) for i in range(26)]
    ids = [make_ids(5000, 1000, seed=i) for i in range(26)]
    pieces = tuple((i, 32) for i in range(26))
    check(Spec(tuple(Lookup(i, i) for i in range(26)), (Output(pieces, (-1, 26 * 32)),)), tables, ids)
    check(natural(26), tables, ids)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (0, 4), (3, 0), (2, 3, 4)], ids=str)
def test_natural_output_for_ids_of_any_shape(shape):
    check(natural(1), [make_table(7, 4, 3)], [make_ids(shape, 7)])


def test_rows_of_rank_zero_and_rows_without_elements():
    check(natural(2), [make_table(7), make_table(7, 0)], [make_ids(5, 7), make_ids(5, 7)])


def test_no_rows_at_all():
    pieces = ((0, 8), (-1, 2), (1, 6))
    spec = Spec((Lookup(0, 0), Lookup(1, 1)), (Output(pieces, (-1, 16)),), ((0, None), (0, (-1, 4, 2))))
    check(spec, [make_table(7, 8), make_table(0, 3)], [make_ids(0, 7), make_ids((0, 2), 7)], [np.zeros((0, 2), np.float32)])


def test_columns_of_one_matrix():
    lookups = (Lookup(0, 0, 0, 1), Lookup(1, 0, 2, 3), Lookup(0, 0, 5, 1), Lookup(1, 0, 0, 6))
    outputs = (Output(((0, 8), (1, 12), (2, 8)), (-1, 28)), *(Output(((i, 0),)) for i in range(4)))
    check(Spec(lookups, outputs), [make_table(9, 8), make_table(9, 4)], [make_ids((50, 6), 9, np.int64)])


def test_several_ids_in_each_row():
    lookups = (Lookup(0, 0), Lookup(0, 1), Lookup(0, 2, 1, 2))
    pieces = ((0, 12), (1, 4), (2, 8))
    ids = [make_ids((30, 3), 9), make_ids(30, 9), make_ids((30, 4), 9)]
    check(Spec(lookups, (Output(pieces, (-1, 24)),)), [make_table(9, 4)], ids)


def test_one_row_that_takes_more_ids_than_a_batch():
    check(Spec((Lookup(0, 0),), (Output(((0, 3 * 5000),), (-1, 15000)),)), [make_table(9, 3)], [make_ids((2, 5000), 9)])


def test_one_lookup_in_several_places_and_one_variable_twice():
    table = make_table(9, 8)
    lookups = (Lookup(0, 0), Lookup(1, 1))
    outputs = (Output(((1, 8), (0, 8), (0, 8)), (-1, 3, 8)), Output(((0, 0),)), Output(((1, 8),), (4, -1)))
    check(Spec(lookups, outputs), [table, table], [make_ids(6, 9), make_ids(6, 9, seed=1)])


def test_dense_inputs_pass_through():
    dense = [np.random.default_rng(i).random((6, 2 + i)).astype(np.float32) for i in range(2)]
    pieces = ((-2, 3), (0, 8), (-1, 2), (-2, 3))
    check(Spec((Lookup(0, 0),), (Output(pieces, (-1, 16)), Output(((-1, 4),), (3, 4)))), [make_table(9, 8)], [make_ids(6, 9)], dense)


def test_output_of_rank_three():
    spec = Spec((Lookup(0, 0), Lookup(0, 1)), (Output(((0, 8), (1, 8)), (-1, 2, 8)), Output(((0, 8),), (3, -1, 4))))
    check(spec, [make_table(9, 8)], [make_ids(6, 9), make_ids(6, 9, seed=1)])


def test_shapes_of_lookups():
    lookups = (Lookup(0, 0), Lookup(0, 0, 1, 1), Lookup(0, 0, 0, 2))
    shapes = ((0, None), (1, None), (2, None), (0, (-1, 8)), (1, (2, 3, -1, 4)), (2, (12, 8)))
    check(Spec(lookups, (Output(((0, 0),)),), shapes), [make_table(9, 4, 2)], [make_ids((6, 2), 9)])


def test_negative_ids_wrap():
    ids = np.array([-9, -1, 0, 8], np.int32)
    check(natural(1, wrap=9), [make_table(9, 4)], [ids])
    check(natural(1, wrap=9), [make_table(9, 4)], [ids.astype(np.int64)])


def test_int64_ids_are_truncated_before_they_wrap():
    ids = np.array([2**32 + 3, -(2**32) + 4, 2**31 + 2**31, 2**33 - 1], np.int64)  # 3, 4, 0, -1
    check(natural(1, narrow=True, wrap=9), [make_table(9, 4)], [ids])
    with pytest.raises(tf.errors.InvalidArgumentError, match=re.escape("indices[0] = 4294967299 is not in [0, 9)")):
        run(natural(1), [make_table(9, 4)], [ids])


@st.composite
def calls(draw):
    """A random call: tables, ids and dense inputs, and a spec that fits them."""
    batch = draw(st.integers(0, 40))
    tables = [
        (draw(st.integers(1, 12)), *draw(st.lists(st.integers(1, 6), min_size=0, max_size=2)))
        for _ in range(draw(st.integers(1, 4)))
    ]
    ids, lookups = [], []
    for i in range(draw(st.integers(1, 6))):
        table = draw(st.integers(0, len(tables) - 1))
        rows, wrap = tables[table][0], draw(st.booleans())
        columns = draw(st.integers(1, 4))
        values = make_ids((batch, columns), rows, draw(st.sampled_from([np.int32, np.int64])), seed=i)
        values = np.where(np.arange(columns) % 2, values - rows, values).astype(values.dtype) if wrap else values
        ids.append(values)
        first = draw(st.integers(-1, columns - 1))
        taken = 0 if first < 0 else draw(st.integers(1, columns - first))
        lookups.append(Lookup(table, i, first, taken, rows if wrap else 0, draw(st.booleans())))
    dense = [np.arange(batch * 3, dtype=np.float32).reshape(batch, 3)]
    outputs = []
    for _ in range(draw(st.integers(1, 3))):
        if draw(st.booleans()):
            outputs.append(Output(((draw(st.integers(0, len(lookups) - 1)), 0),)))
            continue
        sources = draw(st.lists(st.integers(-1, len(lookups) - 1), min_size=1, max_size=5))
        pieces = tuple((s, 3 if s < 0 else _width(lookups[s], ids, tables)) for s in sources)
        outputs.append(Output(pieces, (-1, sum(width for _, width in pieces))))
    return Spec(tuple(lookups), tuple(outputs)), tables, ids, dense


def _width(lookup, ids, tables):
    columns = lookup.columns or ids[lookup.ids].shape[1]
    return columns * int(np.prod(tables[lookup.table][1:], dtype=int))


@settings(max_examples=150, deadline=None)
@given(calls())
def test_random_calls(call):
    spec, shapes, ids, dense = call
    check(spec, [make_table(*shape, seed=i) for i, shape in enumerate(shapes)], ids, dense)


# ---- Errors --------------------------------------------------------------------------------------------------------


def stock_error(table, ids):
    with pytest.raises(tf.errors.OpError) as caught:
        tf.raw_ops.ResourceGather(resource=table.handle, indices=ids, dtype=tf.float32)
    return caught.value


@pytest.mark.parametrize("bad", [10, -1, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize("id_dtype", [np.int32, np.int64])
@pytest.mark.parametrize("shape, at", [((), ()), ((6,), (5,)), ((4, 3), (3, 0))], ids=["scalar", "vector", "matrix"])
def test_out_of_range_is_the_error_of_stock(bad, id_dtype, shape, at):
    table = make_table(10, 4)
    ids = make_ids(shape, 10, id_dtype)
    ids[at] = bad
    stock = stock_error(table, ids)
    with pytest.raises(type(stock)) as caught:
        run(natural(1), [table], [ids])
    position = f"[{','.join(map(str, at))}]" if at else ""
    sentence = f"indices{position} = {bad} is not in [0, 10)"
    assert sentence in stock.message
    assert f"{sentence} (lookup 'lookup_0', table '" in caught.value.message


def test_out_of_range_names_the_position_in_the_columns_read():
    ids = make_ids((6, 4), 10)
    ids[4, 2] = 77
    for first, columns, position in ((2, 1, "[4]"), (1, 2, "[4,1]")):
        spec = Spec((Lookup(0, 0, first, columns),), (Output(((0, 0),)),))
        with pytest.raises(tf.errors.InvalidArgumentError, match=re.escape(f"indices{position} = 77 is not in [0, 10)")):
            run(spec, [make_table(10, 4)], [ids])


def test_the_first_of_many_bad_ids_is_reported():
    tables = [make_table(100, 32, seed=i) for i in range(8)]
    ids = [make_ids(4000, 100, seed=i) for i in range(8)]
    ids[2][[3000, 700]] = 100
    ids[5][[1, 2]] = -3
    pieces = tuple((i, 32) for i in reversed(range(8)))
    spec = Spec(natural(8).lookups, (Output(pieces, (-1, 256)),))
    for _ in range(20):
        with pytest.raises(tf.errors.InvalidArgumentError, match=re.escape("indices[700] = 100 is not in [0, 100) (lookup 'lookup_2'")):
            run(spec, tables, ids)


def test_an_id_of_one_table_never_reads_another():
    tables = [make_table(10, 4), make_table(100, 4)]
    with pytest.raises(tf.errors.InvalidArgumentError, match=re.escape("indices[0] = 50 is not in [0, 10)")):
        run(natural(2), tables, [np.array([50], np.int32), np.array([50], np.int32)])


def test_table_without_rows():
    with pytest.raises(tf.errors.InvalidArgumentError, match=re.escape("indices[0] = 0 is not in [0, 0)")):
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
    "piece 1 of output 0 (dense input 0) has 3 rows, but piece 0 has 4.": Spec((ONE,), (Output(((0, 8), (-1, 2)), (-1, 10)),)),
    "the piece of lookup 'one' is 12 wide, which is no multiple of the row of its table, whose shape is [9,8].": Spec(
        (ONE,), (Output(((0, 12),), (-1, 12)),)
    ),
    "lookup 'one' has 4 ids, which is no multiple of the 3 that one row": Spec((ONE,), (Output(((0, 24),), (-1, 24)),)),
    "dense input 0 has 6 elements, which is no multiple of the width of its piece, 4.": Spec(
        (ONE,), (Output(((-1, 4),), (-1, 4)),)
    ),
    "32 elements cannot take the shape [?,5].": Spec((ONE,), (Output(((0, 8),), (-1, 5)),)),
    "32 elements cannot take the shape [4,9].": Spec((ONE,), (Output(((0, 8),), (4, 9)),)),
    "32 elements cannot take the shape [3,?].": Spec((ONE,), (Output(((0, 0),)),), ((0, (3, -1)),)),
    "reads columns 2 to 4 of a matrix of ids, but its ids have shape [4,3].": Spec(
        (Lookup(0, 2, 2, 3),), (Output(((0, 0),)),)
    ),
    "reads columns 0 to 0 of a matrix of ids, but its ids have shape [4].": Spec((Lookup(0, 0, 0, 1),), (Output(((0, 0),)),)),
    "`lookup_table[0]` must be in [0, 1), but it is 1.": Spec((Lookup(1, 0),), (Output(((0, 0),)),)),
    "`lookup_ids[0]` must be in [0, 3), but it is -1.": Spec((Lookup(0, -1),), (Output(((0, 0),)),)),
    "`lookup_column[0]` and `lookup_columns[0]` must be -1 and 0, or": Spec((Lookup(0, 0, 1, 0),), (Output(((0, 0),)),)),
    "`lookup_wrap[0]` must not be negative, but it is -2.": Spec((Lookup(0, 0, wrap=-2),), (Output(((0, 0),)),)),
    "`piece_source[0]` must be in [-1, 1), but it is -2.": Spec((ONE,), (Output(((-2, 1),), (-1, 1)),)),
    "`piece_width[0]` must be in [0, ": Spec((ONE,), (Output(((0, -1),), (-1, 1)),)),
    "every piece of output 0 must be at least 1 wide, but one has width 0.": Spec((ONE,), (Output(((0, 0),), (-1, 8)),)),
    "output 0 has a shape of unknown rank, so it must have one piece, a lookup of width 0": Spec((ONE,), (Output(((0, 8),)),)),
    "output 1 has no piece.": Spec((ONE,), (Output(((0, 0),)), Output((), (-1, 8)))),
    "`output_shapes[0]` must have at most one unknown dimension, but it is [?,?].": Spec((ONE,), (Output(((0, 8),), (-1, -1)),)),
    "`shape_lookup[0]` must be in [0, 1), but it is 4.": Spec((ONE,), (Output(((0, 0),)),), ((4, None),)),
}


@pytest.mark.parametrize("sentence", BAD_SPECS)
def test_what_does_not_fit_is_said_in_one_sentence(sentence):
    ids = [make_ids(4, 9), make_ids(5, 9), make_ids((4, 3), 9)]
    with pytest.raises((tf.errors.InvalidArgumentError, ValueError)) as caught:
        run(BAD_SPECS[sentence], [make_table(9, 8)], ids, [np.zeros((3, 2), np.float32)])
    assert sentence in str(caught.value)


def test_attribute_lists_of_different_length():
    attributes = natural(1).attributes() | {"lookup_wrap": [0, 0]}
    with pytest.raises(tf.errors.InvalidArgumentError, match=re.escape("`lookup_wrap` must have one entry for each lookup (1), but it has 2.")):
        library.ops().picasso_packed_lookup(
            tables=[make_table(9, 8).handle], ids=[make_ids(4, 9)], dense=[np.zeros([0], np.float32)], **attributes
        )


def test_table_of_another_dtype():
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be float of rank 1 or more, but it is double of shape"):
        run(natural(2), [make_table(9, 8), make_table(9, 8, dtype=tf.float64)], [make_ids(4, 9)] * 2)


# ---- Shape inference -----------------------------------------------------------------------------------------------


def test_inferred_shapes():
    lookups = (Lookup(0, 0), Lookup(0, 0, 1, 1), Lookup(0, 0, 0, 2), Lookup(0, 1))
    outputs = (
        *(Output(((i, 0),)) for i in range(4)),
        Output(((1, 8), (2, 16)), (-1, 24)),
        Output(((3, 8),), (-1, 2, 4)),
        Output(((3, 8),), (-1, 8, 1)),
    )
    spec = Spec(lookups, outputs, ((0, None), (3, None), (3, (-1, 2))))
    table = make_table(9, 4, 2)

    @tf.function(input_signature=[tf.TensorSpec([5, 3], tf.int32), tf.TensorSpec(None, tf.int64)])
    def function(known, unknown):
        result = library.ops().picasso_packed_lookup(
            tables=[table.handle], ids=[known, unknown], dense=[tf.zeros([0])], **spec.attributes()
        )
        return result.outputs + result.shapes

    found = [shape.as_list() if shape.rank is not None else None for shape in function.get_concrete_function().output_shapes]
    wanted = [[5, 3, 4, 2], [5, 4, 2], [5, 2, 4, 2], None, [5, 24], [None, 2, 4], [None, 8, 1], [4], [None], [2]]
    assert found == wanted


# ---- Gradients -----------------------------------------------------------------------------------------------------


def gradients(forward, tables, *, function):
    """d sum(weights * outputs) / d tables, dense."""

    def step():
        with tf.GradientTape() as tape:
            outputs = forward()
            weights = [tf.reshape(tf.range(1.0, 1.0 + tf.cast(tf.size(x), tf.float32)), tf.shape(x)) for x in outputs]
            loss = tf.add_n([tf.reduce_sum(weight * x) for weight, x in zip(weights, outputs)])
        return [tf.convert_to_tensor(gradient) for gradient in tape.gradient(loss, tables)]

    return [x.numpy() for x in (tf.function(step) if function else step)()]


@pytest.mark.parametrize("function", [False, True], ids=["eager", "function"])
@pytest.mark.parametrize("concat", [False, True])
def test_gradient_is_that_of_gather(concat, function):
    tables = [make_table(9, 4), make_table(6, 2, 3), make_table(5)]
    order = [0, 1, 2, 0]
    ids = [make_ids((6, 2), 9), make_ids(6, 6, np.int64), make_ids((6, 1), 5), make_ids(6, 9, np.int64, seed=1)]

    def stock():
        rows = [tf.gather(tables[t], i) for t, i in zip(order, ids)]
        return [tf.concat([tf.reshape(x, [6, -1]) for x in rows], 1)] if concat else rows

    def ours():
        result = packed_lookup([tables[t] for t in order], ids, concat=concat)
        return [result] if concat else result

    for one, other in zip(gradients(stock, tables, function=function), gradients(ours, tables, function=function)):
        np.testing.assert_array_equal(one, other)


def test_gradient_through_columns_narrow_wrap_dense_and_an_unused_output():
    table = make_table(9, 4)
    dense = tf.constant(np.random.default_rng(1).random((6, 3)), tf.float32)
    ids = make_ids((6, 5), 9, np.int64) - np.array([0, 9, 0, 9, 0]) + np.array([2**32, 0, 0, 0, 2**32])
    lookups = (Lookup(0, 0, 0, 2, 9, True), Lookup(0, 0, 3, 1, 9, False))
    pieces = ((1, 4), (-1, 3), (0, 8), (-1, 3))
    spec = Spec(lookups, (Output(pieces, (-1, 18)), Output(((1, 0),))))
    weights = tf.reshape(tf.range(6.0 * 18), [6, 18])
    with tf.GradientTape() as tape:
        tape.watch([dense, table.handle])
        result = library.ops().picasso_packed_lookup(
            tables=[table.handle], ids=[ids], dense=[dense], **spec.attributes()
        )
        loss = tf.reduce_sum(weights * result.outputs[0])
    found = tape.gradient(loss, [table.handle, dense])
    wanted = np.zeros((9, 4), np.float32)
    np.add.at(wanted, ids[:, 3] + 9, weights[:, :4].numpy())
    np.add.at(wanted, oracle.effective_ids(lookups[0], [ids]).reshape(-1), weights[:, 7:15].numpy().reshape(-1, 4))
    np.testing.assert_array_equal(tf.convert_to_tensor(found[0]), wanted)
    np.testing.assert_array_equal(found[1], weights[:, 4:7] + weights[:, 15:])


def test_gradient_where_nothing_was_looked_up():
    table = make_table(9, 4)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(packed_lookup([table], [np.zeros([0], np.int32)], concat=True))
    gradient = tape.gradient(loss, table)
    assert gradient.values.shape == (0, 4)
    assert gradient.indices.shape == (0,)


# ---- Variables that change -----------------------------------------------------------------------------------------


def test_lookups_while_other_threads_write():
    tables = [tf.Variable(tf.ones([200, 32])) for _ in range(4)]
    ids = [make_ids(2000, 200, seed=i) for i in range(4)]
    stop, failures = threading.Event(), []

    def write():
        value = 1.0
        while not stop.is_set():
            value += 1.0
            for table in tables:
                table.scatter_update(tf.IndexedSlices(tf.fill([100, 32], value), tf.range(100)))
            tables[0].assign(tables[0] * 1.0)

    def read():
        try:
            for _ in range(30):
                rows = packed_lookup(tables, ids, concat=True).numpy()
                assert rows.shape == (2000, 128)
                assert (rows >= 1.0).all()
                assert (rows == np.round(rows)).all()
        except Exception as error:  # a thread's exception would be lost
            failures.append(error)

    writer = threading.Thread(target=write)
    readers = [threading.Thread(target=read) for _ in range(16)]
    for thread in [writer, *readers]:
        thread.start()
    for thread in readers:
        thread.join()
    stop.set()
    writer.join()
    assert failures == []


def test_reads_and_writes_of_one_function_keep_their_order():
    table = tf.Variable(tf.zeros([4, 2]))

    @tf.function
    def function():
        before = packed_lookup([table], [[1, 1]])[0]
        table.scatter_add(tf.IndexedSlices([[5.0, 5.0]], [1]))
        after = packed_lookup([table], [[1, 1]])[0]
        return before, after

    before, after = function()
    assert before.numpy().tolist() == [[0.0, 0.0]] * 2
    assert after.numpy().tolist() == [[5.0, 5.0]] * 2


# ---- The wrapper ---------------------------------------------------------------------------------------------------


def test_wrapper_takes_keras_variables():
    import keras

    layer = keras.layers.Embedding(7, 3)
    layer.build(None)
    found = packed_lookup([layer.embeddings], [[6, 0]])[0]
    np.testing.assert_array_equal(found, layer.embeddings.numpy()[[6, 0]])


@pytest.mark.parametrize(
    "tables, ids, concat, sentence",
    [
        ([], [], False, "`tables` and `ids` must be lists of the same length, at least 1. Received: 0 tables and 0 ids."),
        ([(4, 2)], [[1], [2]], False, "Received: 1 tables and 2 ids."),
        ([(4, 2)], [[1.0]], False, "`ids[0]` must be int32 or int64. Received: float32."),
        ([()], [[1]], False, "`tables[0]` must have rows, so a rank of 1 or more. Received: shape ()."),
        ([(4, 2)], [3], True, "`ids[0]` must have the shape [batch] or [batch, k]. Received: ()."),
        ([(4, 0)], [[3]], True, "the rows of `tables[0]` must have a known, positive size. Received: shape (4, 0)."),
    ],
    ids=["empty", "lengths", "float_ids", "scalar_table", "scalar_ids", "empty_rows"],
)
def test_wrapper_says_what_is_wrong(tables, ids, concat, sentence):
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        packed_lookup([tf.Variable(tf.zeros(shape)) for shape in tables], ids, concat=concat)


def test_wrapper_refuses_what_is_no_variable_and_mixed_dtypes():
    with pytest.raises(ConfigError, match=re.escape("`tables[0]` must be a tf.Variable or a Keras variable. Received: ")):
        packed_lookup([tf.zeros([4, 2])], [[1]])
    with pytest.raises(ConfigError, match=re.escape("must have the same floating-point dtype. Received: float32, float64.")):
        packed_lookup([make_table(4, 2), make_table(4, 2, dtype=tf.float64)], [[1], [1]])
    with pytest.raises(ConfigError, match=re.escape("must have the same floating-point dtype. Received: int32.")):
        packed_lookup([tf.Variable([[1]])], [[0]])

"""The packed lookup gives the bits of its oracle, and the shapes that it infers."""

import re

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from picasso_tf.bridge import library
from tests.support.packed_lookup_calls import check, make_ids, make_table, natural, run
from tests.support.packed_lookup_oracle import Lookup, Output, Spec

DTYPES = (tf.float16, tf.bfloat16, tf.float32, tf.float64)
WIDTHS = (1, 3, 8, 16, 32, 64, 128, 200)


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
    check(
        spec,
        [make_table(7, 8), make_table(0, 3)],
        [make_ids(0, 7), make_ids((0, 2), 7)],
        [np.zeros((0, 2), np.float32)],
    )


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
    check(
        Spec((Lookup(0, 0),), (Output(pieces, (-1, 16)), Output(((-1, 4),), (3, 4)))),
        [make_table(9, 8)],
        [make_ids(6, 9)],
        dense,
    )


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

    found = [
        shape.as_list() if shape.rank is not None else None for shape in function.get_concrete_function().output_shapes
    ]
    wanted = [[5, 3, 4, 2], [5, 4, 2], [5, 2, 4, 2], None, [5, 24], [None, 2, 4], [None, 8, 1], [4], [None], [2]]
    assert found == wanted

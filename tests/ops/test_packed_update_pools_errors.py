"""What the packed updates refuse of pooled gradients, in one clear sentence, with nothing written."""

import dataclasses
import re

import numpy as np
import pytest
import tensorflow as tf

from picasso_tf.bridge import library
from picasso_tf.ops import UpdateTable, packed_dense_update, packed_sparse_update
from picasso_tf.ops.packed_update import PooledGradient
from tests.support import packed_update_oracle as oracle
from tests.support.packed_update_oracle import Segment, Spec, Table

SGD = ("mul g0 p0", "scatter_sub s0 v0")
SEGMENT = Segment(0, 0, ((0, 0, 0, 0),), pools=((0, "mean"),))
SPEC = Spec(SGD, ("v1",), (Table((0,), (0,), name="user"),), (SEGMENT,))
IDS = np.array([1, 0, 2, 1], np.int32)
POOL = np.array([0, 0, 1, 2])
ROWS = np.ones((3, 2), np.float32)  # of the pooled gradient
BOTH = pytest.mark.parametrize("all_rows", [False, True], ids=["sparse", "dense"])


def refused(sentence):
    return pytest.raises((tf.errors.InvalidArgumentError, ValueError), match=re.escape(sentence))


def check_refused(
    sentence, all_rows, spec=SPEC, *, dtype=tf.float32, ids=(IDS,), gradients=(ROWS,), pools=(POOL,), weights=()
):
    """Asserts that a call on a table of 3 rows of 2 fails with one sentence, and writes nothing."""
    variables = [tf.Variable(tf.ones([3, 2], dtype)) for table in spec.tables for _ in table.states]
    gradients = [gradient.astype(dtype.as_numpy_dtype) for gradient in gradients]
    with refused(sentence) as caught:
        scalars = [np.array(0.5, dtype.as_numpy_dtype)]
        oracle.run(spec, all_rows, variables, list(ids), gradients, scalars, pools, weights)
    assert "\n" not in getattr(caught.value, "message", str(caught.value)).strip()
    for variable in variables:
        assert (variable.numpy() == 1).all()


def with_segment(**changes):
    return dataclasses.replace(SPEC, segments=(dataclasses.replace(SEGMENT, **changes),))


@BOTH
@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
@pytest.mark.parametrize("matrix", [False, True], ids=["vector", "matrix"])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("bad", [3, -1, 2**31 - 1, -(2**31)])
def test_a_pool_entry_out_of_range(bad, dtype, matrix, combiner, all_rows):
    pool = np.array([0, 2, bad, bad], dtype)
    pool = np.stack([pool, np.zeros(4, dtype)], 1) if matrix else pool
    sentence = f"entry 2 of pool 0 is row {bad} of a gradient that has 3 rows (table 'user')."
    check_refused(sentence, all_rows, with_segment(pools=((0, combiner),)), pools=[pool])


@BOTH
def test_a_pool_entry_out_of_range_where_a_fill_looks_for_empty_rows(all_rows):
    for bad in (3, -1, 2**62, -(2**62)):
        sentence = f"entry 1 of pool 0 is row {bad} of a gradient that has 3 rows (table 'user')."
        check_refused(sentence, all_rows, with_segment(fill=1), pools=[np.array([0, bad, 1, 2])])


@BOTH
def test_the_pool_entry_of_an_id_that_is_left_out_is_not_read(all_rows):
    variable = tf.Variable(tf.zeros([3, 2]))
    ids = [np.array([1, -1, 2, -9])]
    spec, one = with_segment(fill=0), np.float32(-1)
    oracle.run(spec, all_rows, [variable], ids, [ROWS], [one], [np.array([0, 2**40, 1, -5])])
    assert variable.numpy().tolist() == [[0, 0], [1, 1], [1, 1]]


@BOTH
def test_the_first_of_many_faults_is_reported_and_no_table_is_written(all_rows):
    tables = tuple(Table((i,), (0,), name=f"table_{i}") for i in range(3))
    segments = tuple(dataclasses.replace(SEGMENT, table=i, pools=((i, "sum"),)) for i in range(3))
    spec = Spec(SGD, ("v1",), tables, segments)
    pools = [POOL, np.array([0, 1, 7, 8]), np.array([9, 1, 1, 1])]
    for _ in range(5):
        sentence = "entry 2 of pool 1 is row 7 of a gradient that has 3 rows (table 'table_1')."
        check_refused(sentence, all_rows, spec, pools=pools)


@BOTH
@pytest.mark.parametrize("shape", [(3,), (5,), (3, 2), (0,), (), (1, 4)], ids=str)
def test_a_pool_of_another_length(shape, all_rows):
    told = str(list(shape)).replace(" ", "")
    sentence = f"pool 0 of segment 0 (table 'user') must have 4 entries, one for each id, but it has shape {told}."
    check_refused(sentence, all_rows, pools=[np.zeros(shape, np.int64)])


@BOTH
def test_a_pool_of_no_columns(all_rows):
    sentence = "pool 0 of segment 0 (table 'user') must have 4 entries, one for each id, but it has shape [4,0]."
    check_refused(sentence, all_rows, pools=[np.zeros((4, 0), np.int64)])


@BOTH
@pytest.mark.parametrize("combiner", ["max", "", "Mean"])
def test_an_unknown_combiner(combiner, all_rows):
    sentence = f"`gradient_combiner[0]` must be 'sum', 'mean' or 'sqrtn', but it is '{combiner}'."
    check_refused(sentence, all_rows, with_segment(pools=((0, combiner),)))


@BOTH
@pytest.mark.parametrize(
    ("changes", "weights", "sentence"),
    [
        (
            {},
            np.ones(3, np.float32),
            "weights 0 of segment 0 (table 'user') must have 4 elements, one for each id, but their shape is [3].",
        ),
        ({}, np.ones(4), "weights 0 must be float, as the gradients are, or bool, but they are double."),
        ({"weights": (1,)}, np.ones(4, np.float32), "`gradient_weights[0]` must be in [-1, 1), but it is 1."),
        ({"pools": ((0, "mean"),)}, np.ones(4, np.float32), "`gradient_weights[0]` must be -1 for a gradient that is "),
    ],
)
def test_weights(changes, weights, sentence, all_rows):
    spec = with_segment(**({"pools": ((0, "sum"),), "weights": (0,)} | changes))
    check_refused(sentence, all_rows, spec, weights=[weights])


@BOTH
@pytest.mark.parametrize(("dtype", "name"), [(tf.float16, "half"), (tf.bfloat16, "bfloat16")])
def test_half_types(dtype, name, all_rows):
    sentence = f"gradients of pooled ids must be float or double, but `dtype` is {name}."
    check_refused(sentence, all_rows, dtype=dtype)


@BOTH
def test_a_gradient_that_spans_more_than_a_row(all_rows):
    sentence = (
        "gradient 0 of segment 0 (table 'user') is of pooled ids, so it must be read as wide as a row of the table "
        "(2 elements), not 4."
    )
    spec = with_segment(gradients=((0, 1, 4, 6),))
    check_refused(sentence, all_rows, spec, gradients=[np.ones((3, 6), np.float32)])


@BOTH
def test_a_gradient_that_is_no_matrix_of_rows(all_rows):
    sentence = (
        "gradient 0 of segment 0 (table 'user') is of pooled ids, so it must be made of rows of 2 elements, but it has "
        "shape [3,3]."
    )
    check_refused(sentence, all_rows, gradients=[np.ones((3, 3), np.float32)])
    spec = with_segment(gradients=((0, 1, 2, 4),))
    check_refused(
        "is read as a matrix of 4 columns, but it has shape [3,3].", all_rows, spec, gradients=[np.ones((3, 3))]
    )


@BOTH
@pytest.mark.parametrize("fill", [3, 2**40])
def test_a_fill_out_of_range(fill, all_rows):
    sentence = f"segment 0 (table 'user') fills empty rows with row {fill}, but the table has 3 rows."
    check_refused(sentence, all_rows, with_segment(fill=fill))


@BOTH
def test_a_fill_of_a_gradient_that_is_not_pooled(all_rows):
    sentence = "`segment_fill[1]` is 0, but not all gradients of that segment take the same pool."
    plain = dataclasses.replace(SEGMENT, pools=(), fill=0, gradients=((1, 0, 0, 0),))
    gradients = [ROWS, np.ones((4, 2), np.float32)]
    check_refused(sentence, all_rows, dataclasses.replace(SPEC, segments=(SEGMENT, plain)), gradients=gradients)
    mixed = Segment(0, 0, ((0, 0, 0, 0), (1, 0, 0, 0)), pools=((0, "sum"), (-1, "sum")), fill=0)
    spec = dataclasses.replace(SPEC, segments=(mixed,), num_row_gradients=2)
    check_refused(sentence.replace("[1]", "[0]"), all_rows, spec, gradients=gradients)


@BOTH
def test_ids_beyond_the_table_are_refused_with_a_fill_too(all_rows):
    sentence = "indices[3] = 3 is not in [0, 3) (segment 0, table 'user')"
    check_refused(sentence, all_rows, with_segment(fill=0), ids=[np.array([-1, 2, -2, 3])])
    check_refused("indices[0] = -1 is not in [0, 3)", all_rows, ids=[np.array([-1, 2, -2, 3])])


@BOTH
@pytest.mark.parametrize(
    ("attribute", "value", "sentence"),
    [
        ("gradient_pool", [], "`gradient_pool` must have one entry for each row gradient of each segment (1), but it "),
        (
            "gradient_pool",
            [0, 0],
            "`gradient_pool` must have one entry for each row gradient of each segment (1), but ",
        ),
        ("gradient_pool", [1], "`gradient_pool[0]` must be in [-2, 1), but it is 1."),
        ("gradient_pool", [-3], "`gradient_pool[0]` must be in [-2, 1), but it is -3."),
        (
            "gradient_combiner",
            [],
            "`gradient_combiner` must have one entry for each row gradient of each segment (1), ",
        ),
        (
            "gradient_combiner",
            ["sum"] * 2,
            "`gradient_combiner` must have one entry for each row gradient of each segm",
        ),
        (
            "gradient_weights",
            [-1, -1],
            "`gradient_weights` must have one entry for each row gradient of each segment (1), but it has 2.",
        ),
        ("segment_fill", [0, 0], "`segment_fill` must have one entry for each segment (1), but it has 2."),
    ],
)
def test_attributes_are_checked_when_a_graph_is_made(attribute, value, sentence, all_rows):
    ops, variable = library.ops(), tf.Variable(tf.ones([3, 2]))
    op = ops.picasso_packed_dense_update if all_rows else ops.picasso_packed_sparse_update

    @tf.function
    def function():
        op(
            variables=[variable.handle],
            ids=[tf.constant(IDS)],
            gradients=[tf.constant(ROWS)],
            scalars=[tf.constant(0.5)],
            pools=[tf.constant(POOL)],
            weights=[],
            **(SPEC.attributes() | {attribute: value}),
        )

    with refused(sentence):
        function.get_concrete_function()


@pytest.mark.parametrize("function", [packed_sparse_update, packed_dense_update])
@pytest.mark.parametrize(
    ("gradient", "sentence"),
    [
        (PooledGradient(ROWS, POOL[:3]), "must have 4 entries, one for each id, but it has shape [3]."),
        (PooledGradient(ROWS, POOL + 1), "entry 3 of pool 0 is row 3 of a gradient that has 3 rows"),
        (PooledGradient(ROWS, POOL, weights=[1.0]), "must have 4 elements, one for each id, but their shape is [1]."),
        (PooledGradient(ROWS, POOL, "max"), "must be 'sum', 'mean' or 'sqrtn', but it is 'max'."),
    ],
)
def test_wrapper(gradient, sentence, function):
    variable = tf.Variable(tf.ones([3, 2]))
    with refused(sentence):
        function([UpdateTable([variable], [IDS], [[gradient]], parameters=[0.5])], SGD, ["v1"])
    assert (variable.numpy() == 1).all()

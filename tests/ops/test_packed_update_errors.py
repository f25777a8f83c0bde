"""What the packed updates refuse, in one clear sentence, with nothing written."""

import dataclasses
import re

import numpy as np
import pytest
import tensorflow as tf

from tests.support import packed_update_oracle as oracle
from tests.support.packed_update_oracle import Segment, Spec, Table

SGD = ("mul g0 p0", "scatter_sub s0 v0")
TABLE = Table((0,), (0,), name="user")
SEGMENT = Segment(0, 0, ((0, 0, 0, 0),))
SPEC = Spec(SGD, ("v1",), (TABLE,), (SEGMENT,))
IDS = np.array([1, 0, 2, 1], np.int32)
BOTH = pytest.mark.parametrize("all_rows", [False, True], ids=["sparse", "dense"])


def run(spec=SPEC, all_rows=False, variables=None, ids=(IDS,), gradients=None, scalars=(0.5,)):
    variables = [tf.Variable(tf.ones([3, 2]))] if variables is None else variables
    gradients = [np.ones((4, 2), np.float32)] if gradients is None else gradients
    oracle.run(spec, all_rows, variables, list(ids), list(gradients), [np.float32(scalar) for scalar in scalars])


def refused(sentence, error=tf.errors.InvalidArgumentError):
    return pytest.raises((error, ValueError), match=re.escape(sentence))


@BOTH
@pytest.mark.parametrize("bad", [3, -1, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_an_id_out_of_range_is_named_and_nothing_is_written(bad, dtype, all_rows):
    ids = np.tile(IDS, 500).reshape(-1, 2).astype(dtype)
    ids[400, 1] = ids[900, 0] = bad
    variables = [tf.Variable(tf.ones([3, 2])) for _ in range(2)]
    tables = (dataclasses.replace(TABLE, name="item"), Table((1,), (0,), name="user"))
    good = np.zeros(2000, np.int32)
    segments = (SEGMENT, Segment(1, 0, ((0, 0, 0, 0),)), Segment(1, 1, ((0, 0, 0, 0),)))
    gradients = [np.ones((2000, 2), np.float32)]
    message = f"indices[400,1] = {bad} is not in [0, 3) (segment 2, table 'user')"
    for _ in range(5):
        with refused(message):
            run(Spec(SGD, ("v1",), tables, segments), all_rows, variables, [good, ids], gradients)
    for variable in variables:
        assert (variable.numpy() == 1).all()


def test_only_negative_ids_are_dropped():
    spec = dataclasses.replace(SPEC, drop_negative=True)
    run(spec, ids=[np.array([-1, -5, 0, 2])])
    with refused("indices[1] = 3 is not in [0, 3) (segment 0, table 'user')"):
        run(spec, ids=[np.array([-1, 3, 0, 2])])


def test_a_table_without_rows_has_no_id():
    with refused("indices[0] = 1 is not in [0, 0) (segment 0, table 'user')"):
        run(variables=[tf.Variable(tf.zeros([0, 2]))])


def test_the_position_is_that_in_the_columns_read():
    ids = np.zeros((4, 3), np.int64)
    ids[2, 1] = 9
    for column, columns, position in ((1, 1, "[2]"), (0, 2, "[2,1]")):
        segment = Segment(0, 0, ((0, 0, 2 * columns, 4),), column, columns)
        with refused(f"indices{position} = 9 is not in [0, 3)"):
            run(dataclasses.replace(SPEC, segments=(segment,)), ids=[ids], gradients=[np.ones((4, 4), np.float32)])


@BOTH
def test_destroyed_variable(all_rows):
    handle = tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[3, 2], shared_name="gone")
    variable = tf.Variable(tf.ones([3, 2]))
    tf.raw_ops.AssignVariableOp(resource=handle, value=tf.zeros([3, 2]))
    tf.raw_ops.DestroyResourceOp(resource=handle)
    gone = dataclasses.make_dataclass("Gone", ["handle", "dtype"])(handle, tf.float32)
    with pytest.raises(tf.errors.OpError, match=re.escape("variable 'gone' is not initialised, or was destroyed.")):
        run(Spec(SGD, ("v1", "s1"), (Table((0, 1), (0,)),), (SEGMENT,)), all_rows, [variable, gone])
    assert (variable.numpy() == 1).all()


def with_program(*program, results=("s0",), **changes):
    return dataclasses.replace(SPEC, program=program, results=results, **changes)


BAD_PROGRAMS = {
    "`program[0]` is 'exp s0', but there is no instruction 'exp'.": with_program("exp s0"),
    "`program[0]` is '', but there is no instruction ''.": with_program(""),
    "`program[1]` is 'add s0', but 'add' takes 2 operands, not 1.": with_program("neg s0", "add s0"),
    "`program[0]` is 'neg s0 s0', but 'neg' takes 1 operands, not 2.": with_program("neg s0 s0"),
    "`program[0]` is 'neg v0', but there is no 'v0' yet: of kind 'v' there are 0.": with_program("neg v0"),
    "`program[0]` is 'neg s1', but there is no 's1' yet: of kind 's' there are 1.": with_program("neg s1"),
    "'x0' is not a value: one of s, g, t, p, v and a number.": with_program("neg x0"),
    "'s' is not a value": with_program("neg s"),
    "'s99999999999' is not a value": with_program("neg s99999999999"),
    "`program[0]` is 'scatter_add g0 s0', but 'g0' has a row for each id, where one for each row of the table is "
    "needed.": with_program("scatter_add g0 s0"),
    "`program[0]` is 'touched_add s0 g0', but 'g0' has a row for each id": with_program("touched_add s0 g0"),
    "`results[0]` is 'v0', but 'v0' has a row for each id": with_program("mul g0 p0", results=("v0",)),
    "`results[0]` is 'v7', but there is no 'v7' yet": with_program(results=("v7",)),
    "`results` must have one entry for each state (1), but it has 2.": with_program(results=("s0", "s0")),
}


@BOTH
@pytest.mark.parametrize("sentence", BAD_PROGRAMS)
def test_a_wrong_program_is_refused(sentence, all_rows):
    with refused(sentence):
        run(BAD_PROGRAMS[sentence], all_rows)


def with_tables(*tables, **changes):
    return dataclasses.replace(SPEC, tables=tables, **changes)


def with_segments(*segments):
    return dataclasses.replace(SPEC, segments=segments)


BAD_CALLS = {
    "variable 0 is a state of table 'user' and again of table 'item', but it may be only one state of one table.": (
        with_tables(TABLE, Table((0,), (0,), name="item")),
        {},
    ),
    "`table_variables[0]` must be in [0, 1), but it is 1.": (with_tables(Table((1,), (0,))), {}),
    "`table_parameters[0]` must be in [0, 1), but it is -1.": (with_tables(Table((0,), (-1,))), {}),
    "`table_gradients[0]` must be in [0, 1), but it is 5.": (with_tables(Table((0,), (0,), (5,))), {}),
    "`segment_table[0]` must be in [0, 1), but it is 1.": (with_segments(Segment(1, 0, ((0, 0, 0, 0),))), {}),
    "`segment_table[1]` must be in [1, 2), but it is 0.": (
        dataclasses.replace(with_tables(TABLE, Table((1,), (0,))), segments=(Segment(1, 0, ((0, 0, 0, 0),)), SEGMENT)),
        {"variables": [(3, 2), (3, 2)]},
    ),
    "`segment_ids[0]` must be in [0, 1), but it is 2.": (with_segments(Segment(0, 2, ((0, 0, 0, 0),))), {}),
    "`segment_column[0]` and `segment_columns[0]` must be -1 and 0, or": (
        with_segments(Segment(0, 0, ((0, 0, 0, 0),), 2, 0)),
        {},
    ),
    "`segment_wrap[0]` must not be negative, but it is -3.": (
        with_segments(Segment(0, 0, ((0, 0, 0, 0),), wrap=-3)),
        {},
    ),
    "`segment_gradients[0]` must be in [0, 1), but it is 1.": (with_segments(Segment(0, 0, ((1, 0, 0, 0),))), {}),
    "`segment_first[0]` must be in [0, 1), but it is -1.": (with_segments(Segment(0, 0, ((0, -1, 2, 2),))), {}),
    "`segment_first[0]` must be in [0, 1), but it is 1.": (with_segments(Segment(0, 0, ((0, 1, 2, 2),))), {}),
    "`segment_span[0]` must be in [0, 3), but it is -2.": (with_segments(Segment(0, 0, ((0, 0, -2, 2),))), {}),
    "`segment_span[0]` must be in [0, 3), but it is 4.": (with_segments(Segment(0, 0, ((0, 0, 4, 2),))), {}),
    "`segment_pitch[0]` must be in [0, ": (with_segments(Segment(0, 0, ((0, 0, 2, -1),))), {}),
    "`segment_gradients` must have one entry for each row gradient of each segment (1), but it has 2.": (
        with_segments(Segment(0, 0, ((0, 0, 0, 0), (0, 0, 0, 0)))),
        {},
    ),
    "all states of table 'user' must have the same number of elements, but state": (
        with_tables(Table((0, 1), (0,), name="user"), results=("v1", "s1")),
        {"variables": [(3, 2), (3, 3)]},
    ),
    "segment 0 (table 'user') reads columns 1 to 2 of a matrix of ids, but its ids have shape [4,2].": (
        with_segments(Segment(0, 0, ((0, 0, 4, 4),), 1, 2)),
        {"ids": [np.zeros((4, 2), np.int32)]},
    ),
    "gradient 0 of segment 0 (table 'user') must have 4 rows of 2 elements, one for each id, but it has shape [3,2].": (
        SPEC,
        {"gradients": [np.ones((3, 2), np.float32)]},
    ),
    "is read as a matrix of 3 columns, but it has shape [4,2].": (with_segments(Segment(0, 0, ((0, 1, 2, 3),))), {}),
    "is read 3 columns wide, which is no multiple of the table's row of 2 elements.": (
        with_segments(Segment(0, 0, ((0, 0, 3, 5),))),
        {"gradients": [np.ones((4, 5), np.float32)]},
    ),
    "has rows for 8 ids in these columns, but there are 4 ids.": (
        with_segments(Segment(0, 0, ((0, 0, 4, 4),))),
        {"gradients": [np.ones((4, 4), np.float32)]},
    ),
    "segment 0 (table 'user') has ids, but the variable": (SPEC, {"variables": [()]}),
}


@BOTH
@pytest.mark.parametrize("sentence", BAD_CALLS)
def test_what_does_not_fit_is_said_in_one_sentence(sentence, all_rows):
    spec, changes = BAD_CALLS[sentence]
    changes = dict(changes)
    shapes = changes.pop("variables", [(3, 2)])
    with refused(sentence):
        run(spec, all_rows, [tf.Variable(tf.ones(shape)) for shape in shapes], **changes)


@BOTH
def test_a_table_gradient_of_another_size(all_rows):
    spec = Spec(("sub s0 t0",), ("v0",), (Table((0,), (), (0,), name="user"),), num_row_gradients=0)
    with refused("table 'user'"):
        run(spec, all_rows, ids=[], gradients=[np.ones((2, 2), np.float32)], scalars=[])


@BOTH
def test_a_parameter_of_two_elements(all_rows):
    with refused("of table 'user' must have one element, but it has shape [2]."):
        oracle.run(
            SPEC,
            all_rows,
            [tf.Variable(tf.ones([3, 2]))],
            [IDS],
            [np.ones((4, 2), np.float32)],
            [np.ones(2, np.float32)],
        )


@BOTH
def test_a_variable_of_another_dtype(all_rows):
    with refused("of table 'user', must be float, but it is double."):
        run(all_rows=all_rows, variables=[tf.Variable(tf.ones([3, 2], tf.float64))])


@BOTH
def test_shapes_are_checked_when_a_graph_is_built(all_rows):
    variables = [tf.Variable(tf.ones([3, 2])), tf.Variable(tf.ones([3, 3]))]
    spec = with_tables(Table((0, 1), (0,), name="user"), results=("v1", "s1"))

    @tf.function
    def function():
        run(spec, all_rows, variables)

    with refused("all states of table 'user' must have the same number of elements, but state 1 has 9 and one before"):
        function.get_concrete_function()

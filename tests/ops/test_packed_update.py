"""The packed updates give the bits of their oracle."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import packed_update_oracle as oracle
from tests.support.packed_update_oracle import ELEMENTWISE, Segment, Spec, Table

DTYPES = (tf.float16, tf.bfloat16, tf.float32, tf.float64)
UNARY = ("neg", "square", "sqrt", "rsqrt", "row_rsqrt", "reciprocal", "abs", "sign")
# The last bits of a power are those of the C library, which neither NumPy nor TensorFlow uses.
EXACT = [name for name in ELEMENTWISE if name != "pow"]
STOCK = {
    "add": tf.add,
    "sub": tf.subtract,
    "mul": tf.multiply,
    "div": tf.divide,
    "div_no_nan": tf.math.divide_no_nan,
    "max": tf.maximum,
    "min": tf.minimum,
    "neg": tf.negative,
}
BOTH = pytest.mark.parametrize("all_rows", [False, True], ids=["sparse", "dense"])

SGD = (("mul g0 p0", "scatter_sub s0 v0"), ("v1",))
ADAGRAD = (
    ("square g0", "scatter_add s1 v0", "mul g0 p0", "add v1 p1", "sqrt v3", "div v2 v4", "scatter_sub s0 v5"),
    ("v6", "v1"),
)
ADAM = (
    (
        *("segment_sum g0", "sub v0 s1", "mul v1 p0", "add s1 v2", "square g0", "segment_sum v4", "sub v5 s2"),
        *("mul v6 p1", "add s2 v7", "mul v3 p2", "sqrt v8", "add v10 p3", "div v9 v11", "sub s0 v12"),
    ),
    ("v13", "v3", "v8"),
)
RULES = {"sgd": (SGD, 1, 1), "adagrad": (ADAGRAD, 2, 2), "adam": (ADAM, 3, 4)}  # with states and parameters


def numbers(shape, dtype, seed=0, least=-2.0):
    """Multiples of 1/16 are exact in every dtype, but their products are not."""
    values = np.random.default_rng(seed).integers(int(least * 16), 33, shape) / 16
    return values.astype(dtype.as_numpy_dtype)


def bits(array):
    """NaNs of all kinds are one."""
    return np.where(np.isnan(array), np.nan, array).astype(array.dtype).tobytes()


def check(spec, all_rows, variables, ids, gradients, scalars):
    """Asserts that op and oracle give the same bits, and that what was read before stays."""
    held = [tf.Variable(variable) for variable in variables]
    before = [variable.read_value() for variable in held]
    wanted = oracle.packed_update(spec, all_rows, variables, ids, gradients, scalars)
    oracle.run(spec, all_rows, held, ids, gradients, scalars)
    for found, value, read, old in zip(held, wanted, before, variables, strict=True):
        assert found.numpy().dtype == value.dtype
        assert bits(found.numpy()) == bits(value)
        assert read.numpy().tobytes() == old.tobytes()


def check_rule(rule, all_rows, dtype, tables, ids_of):
    """Updates tables of the given shapes by a rule; `ids_of(i)` are the ids of table i."""
    (program, results), num_states, num_parameters = RULES[rule]
    variables, ids, gradients, specs, segments = [], [], [], [], []
    for i, shape in enumerate(tables):
        first = len(variables)
        variables += [numbers(shape, dtype, seed=10 * i + k, least=-2.0 if k == 0 else 0.0) for k in range(num_states)]
        specs.append(Table(tuple(range(first, first + num_states)), tuple(range(num_parameters)), name=f"table_{i}"))
        ids.append(ids_of(i))
        gradients.append(numbers((*ids[i].shape, *shape[1:]), dtype, seed=100 + i))
        segments.append(Segment(i, i, ((i, 0, 0, 0),)))
    scalars = [np.array(value, dtype.as_numpy_dtype) for value in (0.1, 0.3, 0.7, 1e-2)[:num_parameters]]
    spec = Spec(program, results, tuple(specs), tuple(segments))
    check(spec, all_rows, variables, ids, gradients, scalars)


def uniform(count, rows, dtype=np.int32):
    return lambda i: np.random.default_rng(i).integers(0, rows, count).astype(dtype)


@BOTH
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("rule", RULES)
def test_rules_on_all_dtypes(rule, dtype, all_rows):
    check_rule(rule, all_rows, dtype, [(70, 8), (70, 3), (70, 1), (70, 40)], uniform(90, 70))


@BOTH
@pytest.mark.parametrize("shape", [(9,), (9, 1), (9, 7), (9, 2, 3), (9, 0), (300, 17), (5, 1030), (50, 4100)], ids=str)
@pytest.mark.parametrize("rule", RULES)
def test_rows_of_any_width(rule, shape, all_rows):
    check_rule(rule, all_rows, tf.float32, [shape], uniform(20, shape[0], np.int64))


@BOTH
@pytest.mark.parametrize("rule", RULES)
def test_one_row_with_more_ids_than_a_buffer(rule, all_rows):
    check_rule(rule, all_rows, tf.float32, [(40, 16)], lambda i: np.repeat([7, 3, 7, 9, 7], [900, 2, 700, 1, 800]))


@BOTH
@pytest.mark.parametrize("rule", RULES)
def test_nothing_to_do(rule, all_rows):
    check_rule(rule, all_rows, tf.float32, [(5, 3), (0, 4)], uniform(0, 1))


@BOTH
def test_many_tables_of_different_size(all_rows):
    shapes = [(1 + 37 * i, 1 + i % 19) for i in range(60)]
    check_rule(
        "adagrad",
        all_rows,
        tf.float32,
        shapes,
        lambda i: np.random.default_rng(i).integers(0, shapes[i][0], 11 * i).astype(np.int64),
    )


@BOTH
def test_already_sorted_ids_and_each_row_once(all_rows):
    check_rule("adam", all_rows, tf.float32, [(300, 8)], lambda i: np.arange(300, dtype=np.int32))
    check_rule("adam", all_rows, tf.float32, [(300, 8)], lambda i: np.arange(300, dtype=np.int32)[::-1].copy())


@BOTH
def test_columns_of_one_matrix_of_gradients_and_of_ids(all_rows):
    ids = [np.random.default_rng(0).integers(0, 9, (50, 6))]
    gradients = [numbers((50, 5, 8), tf.float32), numbers((5, 10, 30), tf.float32)]
    segments = (
        Segment(0, 0, ((0, 3, 8, 40),), column=0, columns=2),
        Segment(0, 0, ((1, 26, 4, 30),), column=5, columns=1),
        Segment(1, 0, ((0, 0, 36, 40),), column=1, columns=4),
    )
    tables = (Table((0, 1), (0, 1)), Table((2, 3), (1, 0)))
    variables = [numbers(shape, tf.float32, seed=i, least=0.0) for i, shape in enumerate([(9, 4)] * 2 + [(9, 9)] * 2)]
    check(
        Spec(*ADAGRAD, tables, segments), all_rows, variables, ids, gradients, [np.float32([0.1]), np.float32([[0.2]])]
    )


@BOTH
def test_negative_ids_wrap_and_are_truncated_first(all_rows):
    ids = [np.array([-9, -1, 0, 8], np.int32), np.array([2**32 + 3, -(2**32) + 4, 2**33 - 1], np.int64)]
    segments = (Segment(0, 0, ((0, 0, 0, 0),), wrap=9), Segment(0, 1, ((1, 0, 0, 0),), wrap=9, narrow=True))
    gradients = [numbers((4, 4), tf.float32), numbers((3, 4), tf.float32)]
    check(
        Spec(*SGD, (Table((0,), (0,)),), segments),
        all_rows,
        [numbers((9, 4), tf.float32)],
        ids,
        gradients,
        [np.float32(0.1)],
    )


@BOTH
def test_negative_ids_are_dropped_on_demand(all_rows):
    ids = [np.array([3, -1, 5, -100, 3, -(2**31)], np.int32), np.array([-4, -2], np.int64)]
    segments = (Segment(0, 0, ((0, 0, 0, 0),)), Segment(1, 1, ((1, 0, 0, 0),), wrap=1))
    tables = (Table((0, 1), (0, 1)), Table((2, 3), (0, 1)))
    spec = Spec(*ADAGRAD, tables, segments, drop_negative=True)
    variables = [numbers((9, 4), tf.float32, seed=i, least=0.0) for i in range(4)]
    gradients = [numbers((6, 4), tf.float32), numbers((2, 4), tf.float32)]
    check(spec, all_rows, variables, ids, gradients, [np.float32(0.1), np.float32(0.01)])


def test_dense_tables_without_ids_and_scalar_variables():
    program = ("mul s1 p0", "add v0 t0", "mul v1 p1", "sub s0 v2")
    tables = (Table((0, 1), (0, 1), (0,)), Table((2, 3), (1, 0), (1,)), Table((4, 5), (0, 1), (2,)))
    shapes = ((), (30, 50), (7,))
    variables = [numbers(shapes[i // 2], tf.float32, seed=i) for i in range(6)]
    gradients = [numbers((1,), tf.float32), numbers((1500,), tf.float32), numbers((7, 1), tf.float32)]
    spec = Spec(program, ("v3", "v1"), tables, num_row_gradients=0)
    check(spec, True, variables, [], gradients, [np.float32(0.9), np.float32(0.1)])


@BOTH
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("opcode", EXACT)
def test_each_instruction_on_special_numbers(opcode, dtype, all_rows):
    special = np.array([0.0, -0.0, 1.0, -1.0, 3.0, np.inf, -np.inf, np.nan, 0.3, -2.5, 1e-3, 100.0])
    grid = np.stack(np.meshgrid(special, special), -1).reshape(-1, 2)[:, ::-1]
    count = 3 if opcode == "select" else 1 if opcode in UNARY else 2
    variables = [grid[:, i % 2].reshape(-1, 1).astype(dtype.as_numpy_dtype) for i in range(2)]
    ids = [np.arange(len(grid), dtype=np.int32)[::-1].copy()]
    gradient = grid[::-1, 0].reshape(-1, 1).astype(dtype.as_numpy_dtype)
    on_rows = f"{opcode} {' '.join(['s0', 's1', 's0'][:count])}"
    on_ids = f"{opcode} {' '.join(['g0', 's1', 's0'][:count])}"
    spec = Spec(
        (on_rows, on_ids, "scatter_update s1 v1"), ("v0", "v2"), (Table((0, 1)),), (Segment(0, 0, ((0, 0, 0, 0),)),)
    )
    check(spec, all_rows, variables, ids, [gradient], [])


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("opcode", [name for name in EXACT if name not in ("select", "row_rsqrt")])
def test_each_instruction_gives_the_bits_of_stock(opcode, dtype):
    special = np.array([0.0, -0.0, 1.0, -1.0, 3.0, np.inf, -np.inf, np.nan, 0.3, -2.5, 1e-3, 100.0])
    grid = np.stack(np.meshgrid(special, special), -1).reshape(-1, 2)
    more = np.random.default_rng(0).standard_normal((2051 - len(grid), 2)) * 10
    a, b = np.concatenate([grid, more]).astype(dtype.as_numpy_dtype).T
    stock = STOCK.get(opcode) or getattr(tf.math, opcode)
    unary = opcode in UNARY
    wanted = tf.cast(stock(a) if unary else stock(a, b), dtype).numpy()
    for width in (1, 7):
        variables = [tf.Variable(x.reshape(-1, width)) for x in (a, b)]
        spec = Spec(
            (f"{opcode} s0" if unary else f"{opcode} s0 s1",), ("v0", "s1"), (Table((0, 1)),), num_row_gradients=0
        )
        oracle.run(spec, True, variables, [], [], [])
        assert bits(variables[0].numpy().reshape(-1)) == bits(wanted)


@st.composite
def programs(draw, num_states):
    """A random program that is valid, with all kinds of instructions, and results that may cross."""
    levels = {**{f"s{i}": 1 for i in range(num_states)}, "g0": 2, "g1": 2, "t0": 1, "p0": 0, "p1": 0}
    program = []
    for number in range(draw(st.integers(1, 8))):
        of_rows = [name for name in levels if levels[name] < 2]
        opcode = draw(
            st.sampled_from(
                [
                    *["scatter_add", "scatter_sub", "scatter_update", "segment_sum"] * 3,
                    *["touched_add", "touched_sub", "touched_update"],
                    *EXACT,
                ]
            )
        )
        anything = st.sampled_from(list(levels))
        if opcode == "segment_sum":
            operands, level = [draw(anything)], 1
        elif opcode.startswith("scatter"):
            operands, level = [draw(st.sampled_from(of_rows)), draw(anything)], 1
        elif opcode.startswith("touched"):
            operands, level = [draw(st.sampled_from(of_rows)) for _ in range(2)], 1
        else:
            count = 3 if opcode == "select" else 1 if opcode in UNARY else 2
            operands = [draw(anything) for _ in range(count)]
            level = max(levels[name] for name in operands)
        program.append(" ".join([opcode, *operands]))
        levels[f"v{number}"] = level
    of_rows = [name for name in levels if levels[name] < 2]
    return tuple(program), tuple(draw(st.sampled_from(of_rows)) for _ in range(num_states))


@st.composite
def calls(draw):
    """A random call: shared ids, several segments, columns, wraps, hot rows, empty tables."""
    dtype = draw(st.sampled_from(DTYPES))
    num_states = draw(st.integers(1, 3))
    program, results = draw(programs(num_states))
    ids, gradients, segments, tables, variables = [], [], [], [], []
    for t in range(draw(st.integers(1, 3))):
        rows, row = draw(st.sampled_from([1, 2, 7, 30, 190, 700])), draw(st.sampled_from([1, 2, 3, 5, 8, 33]))
        variables += [numbers((rows, row), dtype, seed=draw(st.integers(0, 9))) for _ in range(num_states)]
        gradients.append(numbers((rows, row), dtype, seed=t))
        states = range(t * num_states, (t + 1) * num_states)
        tables.append(Table(tuple(states), (0, 1), (len(gradients) - 1,)))
        for _ in range(draw(st.integers(0, 3))):
            batch, columns = draw(st.sampled_from([0, 1, 7, 40, 300])), draw(st.integers(1, 3))
            hot = draw(st.integers(1, rows))
            values = np.random.default_rng(len(ids)).integers(0, hot, (batch, columns))
            wrap = rows if draw(st.booleans()) else 0
            values = np.where(np.arange(columns) % 2, values - wrap, values)
            ids.append(values.astype(draw(st.sampled_from([np.int32, np.int64]))))
            if not ids[-1].size or draw(st.booleans()):
                gradients.append(numbers((*values.shape, row), dtype, seed=len(ids)))
                where = (len(gradients) - 1, 0, 0, 0)
            else:
                first = draw(st.integers(0, 4))
                gradients.append(numbers((batch, first + columns * row + 1), dtype, seed=len(ids)))
                where = (len(gradients) - 1, first, columns * row, gradients[-1].shape[1])
            column, taken = (-1, 0) if draw(st.booleans()) else (0, columns)
            segments.append(Segment(t, len(ids) - 1, (where, where), column, taken, wrap))
    scalars = [np.array(value, dtype.as_numpy_dtype) for value in (0.3, -1.7)]
    return (
        Spec(program, results, tuple(tables), tuple(segments), num_row_gradients=2),
        draw(st.booleans()),
        variables,
        ids,
        gradients,
        scalars,
    )


@settings(max_examples=400, deadline=None)
@given(calls())
def test_random_calls(call):
    check(*call)

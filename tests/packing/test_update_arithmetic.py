"""update_packing: what an optimizer computes becomes a program; what is no arithmetic on rows is read as it is."""

import pytest

from graph_passes.packing.update_packing import UpdatePacking
from tests.packing.test_update_packing import BASE, ONE, STEPS, check
from tests.support.lines import arg, concat, graph, read, scalar, variable, vector
from tests.support.rewrite import check_rewrite, graph_of, run
from tests.support.update_lines import Part, Segment, Table, number, op, scatter, segment_sum, unique, updated, write

SUMS = [
    *[variable("m", index=9), unique("u", "ids"), op("count", "Size", "u", "<>", "int32")],
    segment_sum("sums", "g1, u:1, count"),
]
GATHER = "r = {}Gather{} -> <?,4>"
TYPES = "{Taxis = int32, Tindices = int32, Tparams = float32, batch_dims = 0}"


def program(*lines: str) -> tuple[str, str]:
    """Instructions and results of the one pack that is made of some lines below BASE."""
    result = run(UpdatePacking(), graph_of(graph(BASE, *lines)))
    assert not result.report.declined
    (packed,) = result.report.packed
    node = result.graph.nodes[packed.node]
    return tuple("; ".join(item.decode() for item in node.attr(key)) for key in ("program", "results"))


def detail(*lines: str) -> str:
    """Why the write `a` of some lines below BASE is no arithmetic that is known."""
    report = check(list(lines), None, declined={"a": "update_arithmetic"})
    return report.declined[0].detail


@pytest.mark.parametrize(
    ("line", "instruction"),
    [
        (op("x", "AddV2", "sums, sums"), "add v0 v0"),
        (op("x", "Add", "sums, sums"), "add v0 v0"),
        (op("x", "Sub", "sums, sums"), "sub v0 v0"),
        (op("x", "Mul", "sums, sums"), "square v0"),
        (op("x", "RealDiv", "sums, rate"), "div v0 p0"),
        (op("x", "Div", "rate, sums"), "div p0 v0"),
        (op("x", "Maximum", "sums, rate"), "max v0 p0"),
        (op("x", "Minimum", "rate, sums"), "min p0 v0"),
        (op("x", "Pow", "sums, rate"), "pow v0 p0"),
        (op("x", "SquaredDifference", "sums, rate"), "squared_difference v0 p0"),
        (op("x", "DivNoNan", "sums, rate"), "div_no_nan v0 p0"),
        (op("x", "Neg", "sums"), "neg v0"),
        (op("x", "Square", "sums"), "square v0"),
        (op("x", "Sqrt", "sums"), "sqrt v0"),
        (op("x", "Rsqrt", "sums"), "unique_rsqrt v0"),
        (op("x", "Abs", "sums"), "abs v0"),
        (op("x", "Sign", "sums"), "sign v0"),
        (op("x", "Reciprocal", "sums"), "reciprocal v0"),
        (op("x", "Inv", "sums"), "reciprocal v0"),
        ("x = AddN(sums) {N = 1, T = float32} -> <?,4>", ""),
        ("x = AddN(sums, sums, sums) {N = 3, T = float32} -> <?,4>", "add v0 v0; add v0 v1"),
        (
            'x = _UnaryOpsComposition(sums) {T = float32, op_names = ["Square", "Sqrt", "Neg"]} -> <?,4>',
            "square v0; sqrt v1; neg v2",
        ),
    ],
)
def test_each_op_that_is_known(line: str, instruction: str) -> None:
    steps, _ = program(*SUMS, line, scatter("a", "Sub", "t1, u, x"))
    inner = "".join(f"{step}; " for step in instruction.split("; ") if step)
    assert steps == f"segment_sum g0; {inner}touched_sub s0 v{inner.count(';')}"


@pytest.mark.parametrize("test", ["Greater", "GreaterEqual", "Less", "LessEqual", "Equal", "NotEqual"])
@pytest.mark.parametrize("select", ["SelectV2", "Select"])
def test_comparisons_and_selections(test: str, select: str) -> None:
    lines = [
        *[*SUMS, f"c = {test}(sums, rate) {{T = float32}} -> <?,4>", op("n", "Neg", "sums")],
        f"x = {select}(c, n, sums) {{T = float32}} -> <?,4>",
    ]
    instruction = {"Greater": "greater", "Less": "less", "Equal": "equal", "NotEqual": "not_equal"}.get(
        test, {"GreaterEqual": "greater_equal", "LessEqual": "less_equal"}.get(test)
    )
    expected = f"segment_sum g0; {instruction} v0 p0; neg v0; select v1 v2 v0; touched_sub s0 v3"
    assert program(*lines, scatter("a", "Sub", "t1, u, x"))[0] == expected


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ([op("x", "Tanh", "sums")], "Nothing is known about the op Tanh of 'x'."),
        ([op("x", "Mul", "sums, row"), arg("row", "float32", "<4>", 10)], "'row' is broadcast."),
        ([op("x", "Mul", "sums, column"), arg("column", "float32", "<?,1>", 10)], "'column' is broadcast."),
        ([op("x", "Mul", "sums, some"), "some = _Arg() {T = float32, index = 10}"], "'some' is broadcast."),
        (
            [f"x = AddN({', '.join(['sums'] * 9)}) {{N = 9, T = float32}} -> <?,4>"],
            "'x' adds more than 8 tensors.",
        ),
        (  # AddN writes into the memory of `n`, and begins with it
            [op("n", "Neg", "sums"), "x = AddN(sums, sums, n) {N = 3, T = float32} -> <?,4>"],
            "'x' may add its tensors in another order.",
        ),
        (
            ['x = _UnaryOpsComposition(sums) {T = float32, op_names = ["Square", "Tanh"]} -> <?,4>'],
            "Nothing is known about Tanh in 'x'.",
        ),
        (
            [GATHER.format("Resource", "(m, u) {Tindices = int32, dtype = float32}"), op("x", "Mul", "r, sums")],
            "'r' gathers from another table.",
        ),
        (
            [scalar("one", 1), GATHER.format("", f"V2(d1, u, one) {TYPES}"), op("x", "Mul", "r, sums")],
            "'r' does not gather along axis 0.",
        ),
        ([op("x", "Mul", "sums, g1")], "Nothing is known about the op _Arg of 'g1'."),
    ],
)
def test_what_is_no_arithmetic_on_rows_of_distinct_ids(lines: list[str], sentence: str) -> None:
    assert detail(*SUMS, *lines, scatter("a", "Sub", "t1, u, x")) == sentence


def test_rows_of_a_gradient_that_is_no_arithmetic_are_read_as_they_are() -> None:
    lines = [op("x", "Tanh", "g1"), op("y", "Mul", "x, rate")]
    after = updated("t1, ids, x, rate", "mul p0 g0; scatter_sub s0 v0", "v1", ONE, [Segment()])
    check([*lines, scatter("a", "Sub", "t1, ids, y")], [*lines, after])


def test_the_product_of_two_gradients_stays_in_the_model() -> None:
    lines = [arg("g3", "float32", "<?,4>", 9), op("x", "Mul", "g1, g3"), op("y", "Mul", "x, rate")]
    after = updated("t1, ids, x, rate", "mul p0 g0; scatter_sub s0 v0", "v1", ONE, [Segment()])
    check([*lines, scatter("a", "Sub", "t1, ids, y")], [*lines, after])


def test_the_product_of_two_dense_gradients_keeps_no_ids() -> None:
    lines = [
        *[scalar("ten", 10), segment_sum("s1", "g1, ids, ten", "<10,4>"), segment_sum("s2", "g1, more, ten", "<10,4>")],
        *[op("x", "Mul", "s1, s2", "<10,4>"), read("r", "t1"), op("y", "Mul", "r, x", "<10,4>")],
        op("z", "Mul", "y, rate", "<10,4>"),
    ]
    table = Table("a", (0,), (0,), (0,))
    after = updated("t1, x, rate", "mul s0 t0; mul p0 v0; add s0 v1", "v2", [table])
    check([*lines, write("a", "Add", "t1, z")], [*lines, after])


def test_a_segment_sum_into_other_rows_than_those_of_the_table_is_a_table_gradient() -> None:
    lines = [arg("n", "int32", "<>", 9), segment_sum("s", "g1, ids, n", "<10,4>"), op("x", "Mul", "s, rate", "<10,4>")]
    table = [Table("a", (0,), (0,), (0,)), Table("b", (1,), (0,), (0,))]
    after = updated("t1, t3, s, rate", "mul p0 t0; sub s0 v0", "v1", table)
    both = [write("a", "Sub", "t1, x"), write("b", "Sub", "t3, x")]
    check([variable("t3", index=10), *lines, *both], [variable("t3", index=10), *lines, after])


def test_a_dense_gradient_must_have_the_shape_of_the_variable() -> None:
    assert detail(arg("x", "float32", "<1,4>", 9), write("a", "Sub", "t1, x")).startswith("The shape of 'x' is not")


def test_rows_of_the_table_itself_are_read_where_the_ids_are_its_own() -> None:
    rows = "r = ResourceGather(t1, {}) {{Tindices = int32, batch_dims = 0, dtype = float32}} -> <?,4>"
    lines = [rows.format("ids"), op("x", "Mul", "r, rate")]
    after = updated("t1, ids, rate", "mul s0 p0; scatter_sub s0 v0", "v1", ONE, [Segment(parts=())])
    check([*lines, scatter("a", "Sub", "t1, ids, x")], [*lines, after])
    lines = [rows.format("more"), op("x", "Mul", "r, rate")]
    after = updated("t1, ids, r, rate, ^r", "mul p0 g0; scatter_sub s0 v0", "v1", ONE, [Segment()])
    check([*lines, scatter("a", "Sub", "t1, ids, x")], [*lines, after.replace(", ^r", "")])


JOINED = [arg("g3", "float32", "<?,4>", 9), scalar("zero", 0), concat("both", "ids, more, zero", 2, "<?>", "int32")]
PARTS = [concat("gg", "g1, g3, zero", 2, "<?,4>"), op("x", "Mul", "gg, rate")]


def test_a_table_that_is_looked_up_twice_has_two_segments() -> None:
    lines = [*JOINED, *PARTS]
    segments = [Segment(0, 0), Segment(0, 1, [Part(1)])]
    after = updated("t1, ids, more, g1, g3, rate", "mul p0 g0; scatter_sub s0 v0", "v1", ONE, segments)
    check([*lines, scatter("a", "Sub", "t1, both, x")], [*lines, after])


def test_the_distinct_ids_of_two_lookups() -> None:
    lines = [
        *[*JOINED, PARTS[0], unique("u", "both"), op("count", "Size", "u", "<>", "int32")],
        *[segment_sum("sums", "gg, u:1, count"), op("x", "Mul", "sums, rate")],
    ]
    segments = [Segment(0, 0), Segment(0, 1, [Part(1)])]
    after = updated("t1, ids, more, g1, g3, rate", "segment_sum g0; mul v0 p0; touched_sub s0 v1", "v2", ONE, segments)
    check([*lines, scatter("a", "Sub", "t1, u, x")], [*lines, after])


@pytest.mark.parametrize("parts", ["g1, g3, g3, zero", ""])
def test_ids_are_read_as_a_whole_where_the_gradient_comes_in_other_parts(parts: str) -> None:
    gradient = concat("gg", parts, 3, "<?,4>") if parts else arg("gg", "float32", "<?,4>", 10)
    lines = [*JOINED, gradient, PARTS[1]]
    after = updated("t1, both, gg, rate", "mul p0 g0; scatter_sub s0 v0", "v1", ONE, [Segment()])
    check([*lines, scatter("a", "Sub", "t1, both, x")], [*lines, after])


def test_ids_through_casts_wraps_and_columns() -> None:
    lines = [
        *[scalar("zero", 0), scalar("ten", 10), "negative = Less(ids, zero) {T = int32} -> <?>"],
        *["added = AddV2(ids, ten) {T = int32} -> <?>", "wrapped = SelectV2(negative, added, ids) {T = int32} -> <?>"],
        *[arg("wide", "int64", "<?,3>", 9), vector("b", 0, 1), vector("s", -1, 1)],
        "column = Slice(wide, b, s) {Index = int32, T = int64} -> <?,1>",
        "narrow = Cast(column) {DstT = int32, SrcT = int64, Truncate = false} -> <?,1>",
    ]
    writes = [scatter("a", "Sub", "t1, wrapped, x1"), scatter("b_", "Sub", "t3, narrow, x1")]
    tables = [Table("a", (0,), (0,)), Table("b_", (1,), (0,))]
    segments = [Segment(0, 0, wrap=10), Segment(1, 1, column=1, columns=1, narrow=True)]
    after = updated(
        "t1, t3, ids, wide, g1, rate",
        "mul p0 g0; scatter_sub s0 v0",
        "v1",
        tables,
        segments,
        ids=["int32", "int64"],
    )
    base = [variable("t3", index=10), *lines, STEPS[0]]
    check([*base, *writes], [*base, after])


def test_gradients_are_read_in_place_from_the_gradient_of_a_concatenation() -> None:
    lines = [
        *[arg("g", "float32", "<?,12>", 9), vector("b1", 0, 0), vector("s1", -1, 4), vector("b2", 0, 4)],
        *[vector("s2", -1, 8), "y1 = Slice(g, b1, s1) {Index = int32, T = float32} -> <?,4>"],
        "y2 = Slice(g, b2, s2) {Index = int32, T = float32} -> <?,8>",
        *[op("z1", "Mul", "y1, rate"), op("z2", "Mul", "y2, rate", "<?,8>")],
    ]
    segments = [Segment(0, 0, [Part(0, 0, 4, 12)]), Segment(1, 1, [Part(0, 4, 8, 12)])]
    tables = [Table("a", (0,), (0,)), Table("b", (1,), (0,))]
    after = updated("t1, t2, ids, more, g, rate", "mul p0 g0; scatter_sub s0 v0", "v1", tables, segments)
    check([*lines, scatter("a", "Sub", "t1, ids, z1"), scatter("b", "Sub", "t2, more, z2")], [*lines, after])


def test_a_number_in_a_program_is_an_input_like_any_other() -> None:
    lines = [number("half", 0.5), op("x", "Mul", "g1, half")]
    after = updated("t1, ids, g1, half", "mul p0 g0; scatter_sub s0 v0", "v1", ONE, [Segment()])
    check([*lines, scatter("a", "Sub", "t1, ids, x")], [*lines, after])


@pytest.mark.parametrize("kind", ["Add", "Sub", "Update"])
def test_a_scatter_that_takes_coordinates_of_rows(kind: str) -> None:
    coordinates = ["rows = ExpandDims(ids, one) {T = int32, Tdim = int32} -> <?,1>", scalar("one", 1)]
    after = updated("t1, ids, g1, rate", f"mul p0 g0; scatter_{kind.lower()} s0 v0", "v1", ONE, [Segment()])
    line = f"a = ResourceScatterNd{kind}(t1, rows, x1) {{T = float32, Tindices = int32}}"
    check([*coordinates, STEPS[0], line], [*coordinates, STEPS[0], after])


@pytest.mark.parametrize("shape", ["<?,2>", "<?,?>"])
def test_coordinates_of_elements_are_no_rows(shape: str) -> None:
    line = "a = ResourceScatterNdAdd(t1, xy, v) {T = float32, Tindices = int32}"
    lines = [arg("xy", "int32", shape, 9), arg("v", "float32", "<?>", 10), line]
    assert detail(*lines) == "Its coordinates name elements, not rows."


DECAY = [
    *[variable("m", index=9), scalar("ten", 10), segment_sum("s", "g1, ids, ten", "<10,4>"), read("r", "m")],
    *[op("old", "Mul", "r, rate", "<10,4>"), op("new", "AddV2", "old, s", "<10,4>"), write("b", "", "m, new")],
    write("a", "Sub", "t1, new, ^b"),
]


@pytest.mark.parametrize("row_only", [False, True])
def test_row_only_leaves_rows_alone_that_no_id_names(row_only: bool) -> None:
    after = updated(
        "m, t1, ids, g1, rate",
        "segment_sum g0; mul s0 p0; add v0 v1; sub s1 v2",
        "v2, v3",
        [Table("a", (0, 1), (0,))],
        [Segment()],
        sparse=row_only,
    )
    lines = [line for line in DECAY if not line.startswith(("a =", "b ="))]
    check_rewrite(UpdatePacking(row_only=row_only), graph(BASE, *DECAY), graph(BASE, *lines, after))


def test_row_only_updates_all_rows_where_a_regularizer_has_a_gradient_for_them() -> None:
    lines = [*DECAY[:-2], op("more_", "AddV2", "new, d1", "<10,4>"), write("b", "", "m, more_"), DECAY[-1]]
    program = "segment_sum g0; mul s0 p0; add v0 v1; add v2 t0; sub s1 v2"
    segment = Segment(parts=[Part(1)])
    after = updated("m, t1, ids, d1, g1, rate", program, "v3, v4", [Table("a", (0, 1), (0,), (0,))], [segment])
    kept = [line for line in lines if not line.startswith(("a =", "b ="))]
    check_rewrite(UpdatePacking(row_only=True), graph(BASE, *lines), graph(BASE, *kept, after))


def test_a_fed_tensor_is_read_as_it_is() -> None:
    after = updated("t1, ids, x1", "scatter_sub s0 g0", "v0", [Table("a")], [Segment()])
    check([STEPS[0], scatter("a", "Sub", "t1, ids, x1")], [STEPS[0], after], feeds=["x1"])

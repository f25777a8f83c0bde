"""update_packing: which writes go into one op, and what that op is told to do."""

import pytest

from graph_passes.errors import ConfigError
from graph_passes.packing.update_packing import UpdatePacking
from tests.support.lines import arg, graph, read, scalar, variable
from tests.support.rewrite import check_rewrite
from tests.support.update_lines import (
    PACK,
    Part,
    Segment,
    Table,
    number,
    op,
    scatter,
    segment_sum,
    unique,
    updated,
    write,
)

BASE = "\n".join(
    [
        *[variable("t1"), variable("t2", "<20,8>", index=1), arg("ids", index=2), arg("more", index=3)],
        *[arg("g1", "float32", "<?,4>", 4), arg("g2", "float32", "<?,8>", 5), arg("rate", "float32", "<>", 6)],
        *[arg("d1", "float32", "<10,4>", 7), arg("d2", "float32", "<20,8>", 8)],
    ]
)
STEPS = [op("x1", "Mul", "g1, rate"), op("x2", "Mul", "g2, rate", "<?,8>")]
A, B = scatter("a", "Sub", "t1, ids, x1"), scatter("b", "Sub", "t2, more, x2")
SGD = ("mul p0 g0; scatter_sub s0 v0", "v1")
ONE = [Table("a", (0,), (0,))]
TWO = [Table("a", (0,), (0,)), Table("b", (1,), (0,))]
SEGMENTS = [Segment(0, 0), Segment(1, 1, [Part(1)])]


def check(before: list[str], after: list[str] | None, limit: int | None = None, base: str = BASE, **options):
    """`check_rewrite` of lines that stand below BASE."""
    keep = {key: options.pop(key) for key in ("feeds", "fetches", "preserve") if key in options}
    after_text = None if after is None else graph(base, *after, **keep)
    return check_rewrite(UpdatePacking(limit), graph(base, *before, **keep), after_text, **options)


def test_updates_of_tables_of_different_shapes_become_one_op() -> None:
    report = check([*STEPS, A, B], [*STEPS, updated("t1, t2, ids, more, g1, g2, rate", *SGD, TWO, SEGMENTS)])
    assert [(item.node, item.members, item.absorbed) for item in report.packed] == [(PACK + "a", ("a", "b"), ())]


def test_a_lone_sparse_update_is_packed() -> None:
    check([STEPS[0], A], [STEPS[0], updated("t1, ids, g1, rate", *SGD, ONE, [Segment()])])


@pytest.mark.parametrize("kind", ["Add", "Sub", "Update"])
def test_a_scatter_applies_each_id_in_turn(kind: str) -> None:
    line = scatter("a", kind, "t1, ids, x1")
    program = f"mul p0 g0; scatter_{kind.lower()} s0 v0"
    if kind == "Update":  # the old rows have no part in the new ones, yet rows without ids keep them
        program = "mul p0 g0; scatter_update s0 v0"
    check([STEPS[0], line], [STEPS[0], updated("t1, ids, g1, rate", program, "v1", ONE, [Segment()])])


@pytest.mark.parametrize("kind", ["Add", "Sub", "Update"])
def test_a_scatter_of_sums_at_distinct_ids_changes_touched_rows(kind: str) -> None:
    sums = [
        unique("u", "ids"),
        op("count", "Size", "u", "<>", "int32"),
        segment_sum("sums", "g1, u:1, count"),
        op("x", "Mul", "sums, rate"),
    ]
    program = f"segment_sum g0; mul v0 p0; touched_{kind.lower()} s0 v1"
    check(
        [*sums, scatter("a", kind, "t1, u, x")],
        [*sums, updated("t1, ids, g1, rate", program, "v2", ONE, [Segment()])],
    )


def test_slots_are_gathered_at_distinct_ids() -> None:
    lines = [
        *[variable("m", index=9), unique("u", "ids"), op("count", "Size", "u", "<>", "int32")],
        segment_sum("sums", "g1, u:1, count"),
        "rows = ResourceGather(m, u) {Tindices = int32, batch_dims = 0, dtype = float32} -> <?,4>",
        *[op("old", "Mul", "rows, rate"), op("new", "AddV2", "old, sums"), scatter("b", "Update", "m, u, new")],
        "fresh = ResourceGather(m, u, ^b) {Tindices = int32, batch_dims = 0, dtype = float32} -> <?,4>",
        *[op("x", "Mul", "fresh, rate"), scatter("a", "Sub", "t1, u, x")],
    ]
    program = "segment_sum g0; mul s0 p0; add v0 v1; touched_update s0 v2; mul v3 p0; touched_sub s1 v4"
    check(
        lines,
        [
            *[line.replace("^b", f"^{PACK}a") for line in lines if not line.startswith(("a =", "b ="))],
            updated("m, t1, ids, g1, rate", program, "v3, v5", [Table("a", (0, 1), (0,))], [Segment()]),
        ],
    )


@pytest.mark.parametrize(("kind", "step"), [("Add", "add"), ("Sub", "sub")])
def test_dense_updates_of_many_variables_become_one_op(kind: str, step: str) -> None:
    steps = [op("x1", "Mul", "d1, rate", "<10,4>"), op("x2", "Mul", "d2, rate", "<20,8>")]
    check(
        [*steps, write("a", kind, "t1, x1"), write("b", kind, "t2, x2")],
        [
            *steps,
            updated(
                "t1, t2, d1, d2, rate",
                f"mul p0 t0; {step} s0 v0",
                "v1",
                [Table("a", (0,), (0,), (0,)), Table("b", (1,), (0,), (1,))],
            ),
        ],
    )


def test_an_assignment_of_what_was_read_is_an_update() -> None:
    lines = [
        *[read("r1", "t1"), op("x1", "Sub", "r1, d1", "<10,4>"), write("a", "", "t1, x1")],
        *[read("r2", "t2", shape="<20,8>"), op("x2", "Sub", "r2, d2", "<20,8>"), write("b", "", "t2, x2")],
    ]
    tables = [Table("a", (0,), (), (0,)), Table("b", (1,), (), (1,))]
    after = [line for line in lines if not line.startswith(("a =", "b ="))]
    check(lines, [*after, updated("t1, t2, d1, d2", "sub s0 t0", "v0", tables)])


def test_a_gradient_made_dense_is_summed_by_row_instead() -> None:
    lines = [
        scalar("rows", 10),
        *[segment_sum("sums", "g1, ids, rows", "<10,4>"), read("r", "t1"), op("decay", "Mul", "r, rate", "<10,4>")],
        *[op("x", "AddV2", "sums, decay", "<10,4>"), write("a", "Sub", "t1, x")],
    ]
    check(
        lines,
        [
            *lines[:-1],
            updated("t1, ids, g1, rate", "segment_sum g0; mul s0 p0; add v0 v1; sub s0 v2", "v3", ONE, [Segment()]),
        ],
    )


def test_a_number_of_a_rule_becomes_a_constant() -> None:
    apply = "{n} = ResourceApplyAdaMax({v}, {v}m, {v}v, rate, rate, rate, rate, rate, {g}) {{T = float32}}"
    slots = [variable(f"{table}{slot}", shape, index=9) for table, shape in SHAPES for slot in "mv"]
    lines = [apply.format(n="a", v="t1", g="d1"), apply.format(n="b", v="t2", g="d2")]
    program = (
        "sub p0 p1; sub t0 s0; mul v0 v1; add s0 v2; mul s1 p1; abs t0; max v4 v5; div p1 v0; add v6 p1; div v3 v8; "
        "mul v7 v9; sub s2 v10"
    )
    check(
        [*slots, *lines],
        [
            *slots,
            f"{PACK}a/1 = Const(^rate) {{dtype = float32, value = float32[](1.0)}}",
            updated(
                f"t1m, t1v, t1, t2m, t2v, t2, d1, d2, {PACK}a/1, rate",
                program,
                "v3, v6, v11",
                [Table("a", (0, 1, 2), (0, 1), (0,)), Table("b", (3, 4, 5), (0, 1), (1,))],
            ),
        ],
    )


SHAPES = (("t1", "<10,4>"), ("t2", "<20,8>"))


def test_preserved_writes_become_no_ops_and_what_waits_for_a_write_waits_for_the_pack() -> None:
    waits = ["read = ReadVariableOp(t2, ^b) {dtype = float32} -> <20,8>", "both = NoOp(^a, ^b)"]
    report = check(
        [*STEPS, A, B, *waits],
        [
            *STEPS,
            updated("t1, t2, ids, more, g1, g2, rate", *SGD, TWO, SEGMENTS),
            f"a = NoOp(^{PACK}a)",
            waits[0].replace("^b", f"^{PACK}a"),
            f"both = NoOp(^a, ^{PACK}a)",
        ],
        preserve=["a"],
        fetches=["read"],
    )
    assert report.packed[0].members == ("a", "b")


def test_a_pack_waits_for_what_its_writes_wait_for() -> None:
    check(
        [*STEPS, "n = NoOp(^more)", A[: A.index(")")] + ", ^n" + A[A.index(")") :], B],
        [*STEPS, "n = NoOp(^more)", updated("t1, t2, ids, more, g1, g2, rate, ^n", *SGD, TWO, SEGMENTS)],
    )


def test_a_group_larger_than_the_limit_is_cut() -> None:
    names = "abcde"
    more = [variable(f"t_{name}", index=9) for name in names]
    lines = [scatter(name, "Sub", f"t_{name}, ids, x1") for name in names]
    packs = [
        updated(f"t_{x}, t_{y}, ids, g1, rate", *SGD, [Table(x, (0,), (0,)), Table(y, (1,), (0,))], two)
        for (x, y), two in (("ab", [Segment(0), Segment(1)]), ("cd", [Segment(0), Segment(1)]))
    ]
    rest = updated("t_e, ids, g1, rate", *SGD, [Table("e", (0,), (0,))], [Segment()])
    check([*more, STEPS[0], *lines], [*more, STEPS[0], *packs, rest], limit=2)
    with pytest.raises(ConfigError, match=r"^`max_group_size` must be >= 2. Received: `max_group_size=1`.$"):
        UpdatePacking(1)


def test_fuel_limits_the_number_of_packs() -> None:
    check([*STEPS, A, B], None, fuel=0, declined={"a": "out_of_fuel", "b": "out_of_fuel"})
    other = scatter("b", "Add", "t2, more, x2")
    check(
        [*STEPS, A, other],
        [*STEPS, updated("t1, ids, g1, rate", *SGD, ONE, [Segment()]), other],
        fuel=1,
        declined={"b": "out_of_fuel"},
    )


def test_the_name_of_a_pack_tells_the_common_scope_and_is_new() -> None:
    taken = arg("sgd/picasso/update_packing/x/a", "float32", index=9)
    lines = [A.replace("a =", "sgd/x/a =", 1), B.replace("b =", "sgd/y/b =", 1)]
    tables = [Table("sgd/x/a", (0,), (0,)), Table("sgd/y/b", (1,), (0,))]
    name = "sgd/picasso/update_packing/x/a_1"
    pack = updated("t1, t2, ids, more, g1, g2, rate", *SGD, tables, SEGMENTS, name=name)
    check([taken, *STEPS, *lines], [taken, *STEPS, pack])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_other_dtypes_of_rows_are_packed_among_themselves(dtype: str) -> None:
    other = [
        *[variable("o", dtype=dtype, index=9), arg("go", dtype, "<?,4>", 10), arg("ro", dtype, "<>", 11)],
        op("xo", "Mul", "go, ro", dtype=dtype),
    ]
    check(
        [*other, STEPS[0], A, scatter("c", "Sub", "o, ids, xo", dtype)],
        [
            *[*other, STEPS[0], updated("t1, ids, g1, rate", *SGD, ONE, [Segment()])],
            updated("o, ids, go, ro", *SGD, [Table("c", (0,), (0,))], [Segment()], dtype=dtype),
        ],
    )


def test_devices_and_programs_are_kept_apart() -> None:
    place = "/device:CPU:1"
    lines = [A, B.replace("}", f"}} @ {place}"), scatter("c", "Add", "t3, ids, x1")]
    check(
        [variable("t3", index=9), *STEPS, *lines],
        [
            *[variable("t3", index=9), *STEPS, updated("t1, ids, g1, rate", *SGD, ONE, [Segment()])],
            updated("t2, more, g2, rate", *SGD, [Table("b", (0,), (0,))], [Segment()], device=place),
            updated("t3, ids, g1, rate", SGD[0].replace("sub", "add"), "v1", [Table("c", (0,), (0,))], [Segment()]),
        ],
    )


def test_scalars_and_integers_are_none_of_its_business() -> None:
    counter = [variable("n", "<>", "int64", 9), arg("one", "int64", "<>", 10), write("c", "Add", "n, one", "int64")]
    metric = [variable("total", "<>", index=11), write("d", "Add", "total, rate")]
    table = [variable("i", dtype="int64", index=12), arg("gi", "int64", "<?,4>", 13)]
    check([*counter, *metric, *table, scatter("e", "Add", "i, ids, gi", "int64")], None)


def test_a_value_that_replaces_a_variable_is_no_candidate() -> None:
    check([write("a", "", "t1, d1")], None)


def test_a_scalar_can_be_scattered() -> None:
    check(
        [number("half", 0.5), scatter("a", "Add", "t1, ids, half")],
        [number("half", 0.5), updated("t1, ids, half", "scatter_add s0 p0", "v0", ONE, [Segment(parts=())])],
    )

"""update_packing: several writes of one variable, reads before, between and after them, and writes by others."""

import pytest

from graph_passes.packing.update_packing import UpdatePacking
from tests.packing.test_update_packing import ONE, SGD, STEPS, A, B, check
from tests.support.lines import arg, graph, lookup, read, variable
from tests.support.rewrite import graph_of, run
from tests.support.update_lines import PACK, Part, Segment, Table, op, scatter, updated, write

ALONE = updated("t1, ids, g1, rate", *SGD, ONE, [Segment()])
MOMENT = [variable("m", index=9), read("r0", "m"), op("old", "Mul", "r0, rate", "<10,4>")]
SUM = op("new", "AddV2", "old, d1", "<10,4>")
ACCUMULATE = "mul s0 p0; add t0 v0; "
STATES = [Table("a", (0, 1), (0,), (0,))]


def waiting(line: str, *names: str) -> str:
    """The same node, waiting for more."""
    inputs, rest = line.split(")", 1)
    return inputs + "".join(f", ^{name}" for name in names) + ")" + rest


def without(lines: list[str], *names: str) -> list[str]:
    return [line for line in lines if line.split(" ")[0] not in names]


def test_momentum_reads_its_slot_before_and_after_it_is_written() -> None:
    lines = [*MOMENT, SUM, write("w", "", "m, new"), read("r1", "m, ^w"), op("x", "Mul", "r1, rate", "<10,4>")]
    program = ACCUMULATE + "mul v1 p0; sub s1 v2"
    check(
        [*lines, write("a", "Sub", "t1, x")],
        [
            *without(lines, "w", "r1"),
            read("r1", f"m, ^{PACK}a"),
            updated("m, t1, d1, rate", program, "v1, v3", STATES),
        ],
    )


def test_nesterov_reads_both_versions_of_its_slot() -> None:
    lines = [
        *[*MOMENT, SUM, write("w", "", "m, new"), read("r1", "m, ^w"), op("x", "Mul", "r1, rate", "<10,4>")],
        *[op("y", "Sub", "x, r0", "<10,4>"), write("a", "Add", "t1, y")],
    ]
    program = ACCUMULATE + "mul v1 p0; sub v2 s0; add s1 v3"
    check(
        lines,
        [
            *without(lines, "w", "r1", "a"),
            read("r1", f"m, ^{PACK}a"),
            updated("m, t1, d1, rate", program, "v1, v4", STATES),
        ],
    )


def test_a_value_that_was_not_read_again_is_the_same_value() -> None:
    """As Keras 3 writes it: the new slot is used as it was computed, not as it was stored."""
    lines = [*MOMENT, SUM, write("w", "", "m, new"), write("x", "Sub", "t1, new")]
    after = updated("m, t1, d1, rate", ACCUMULATE + "sub s1 v1", "v1, v2", [Table("x", (0, 1), (0,), (0,))])
    check(lines, [*without(lines, "w", "x"), after])


def test_two_writes_in_a_row_are_two_steps_of_one_program() -> None:
    second = scatter("b", "Add", "t1, ids, g1, ^a")
    program = "mul p0 g0; scatter_sub s0 v0; scatter_add v1 g0"
    table = [Table("b", (0,), (0,))]
    check([STEPS[0], A, second], [STEPS[0], updated("t1, ids, g1, rate", program, "v2", table, [Segment()])])


def test_a_second_write_of_other_rows_follows_the_first() -> None:
    second = scatter("b", "Add", "t1, more, g1, ^a")
    after = updated(f"t1, more, g1, ^{PACK}a", "scatter_add s0 g0", "v0", [Table("b")], [Segment()])
    check([STEPS[0], A, second], [STEPS[0], ALONE, after])


def test_two_writes_in_no_order_stay() -> None:
    second = scatter("b", "Add", "t1, ids, g1")
    check([STEPS[0], A, second], None, declined={"a": "unordered_write", "b": "unordered_write"})


def test_a_reader_before_the_update_stays_before_it() -> None:
    reader = read("r", "t1")
    check([STEPS[0], reader, A], [STEPS[0], reader, ALONE.replace(", rate)", ", rate, ^r)")], fetches=["r"])


def test_a_reader_that_nobody_reads_is_not_waited_for() -> None:
    check([STEPS[0], read("r", "t1"), A], [STEPS[0], read("r", "t1"), ALONE])


def test_a_reader_after_the_update_waits_for_the_pack() -> None:
    check([STEPS[0], read("r", "t1, ^a"), A], [STEPS[0], read("r", f"t1, ^{PACK}a"), ALONE], fetches=["r"])


def test_a_reader_between_two_updates_keeps_them_apart() -> None:
    second = scatter("b", "Add", "t1, ids, g1, ^r")
    after = updated("t1, ids, g1, ^r", "scatter_add s0 g0", "v0", [Table("b")], [Segment()])
    check(
        [STEPS[0], A, read("r", "t1, ^a"), second],
        [STEPS[0], ALONE, read("r", f"t1, ^{PACK}a"), after],
        fetches=["r"],
    )


def test_a_reader_that_may_come_before_or_after_the_second_update() -> None:
    second = scatter("b", "Add", "t1, ids, g1, ^a")
    check(
        [STEPS[0], A, read("r", "t1, ^a"), second],
        None,
        fetches=["r"],
        declined={"a": "read_between_updates", "b": "read_between_updates"},
    )


def test_what_a_declined_update_reads_is_read_after_all() -> None:
    """`a` is declined, since nothing orders w2 against it; so r is needed, in the middle of the update of m."""
    lines = [
        *[variable("m", index=9), scatter("w1", "Add", "m, ids, g1"), lookup("r", "m, more, ^w1")],
        *[op("x", "Mul", "r, rate"), scatter("a", "Sub", "t1, more, x"), scatter("w2", "Add", "m, ids, g1, ^w1")],
    ]
    between = dict.fromkeys(("w1", "w2"), "read_between_updates")
    check(lines, None, declined={"a": "unordered_write", **between})


def test_a_write_by_somebody_else_comes_before_or_after() -> None:
    whole = write("w", "", "t1, d1")
    check([STEPS[0], A, waiting(whole, "a")], [STEPS[0], ALONE, waiting(whole, PACK + "a")])
    check([STEPS[0], waiting(A, "w"), whole], [STEPS[0], ALONE.replace(", rate)", ", rate, ^w)"), whole])
    check([STEPS[0], A, whole], None, declined={"a": "unordered_write"})


@pytest.mark.parametrize("ordered", [True, False])
def test_a_training_op_that_no_rule_describes_is_a_write_by_somebody_else(ordered: bool) -> None:
    other = "w = ResourceApplyProximalGradientDescent(t1, rate, rate, rate, d1) {T = float32}"
    unknown = {"w": "update_arithmetic"}
    if ordered:
        check([STEPS[0], A, waiting(other, "a")], [STEPS[0], ALONE, waiting(other, PACK + "a")], declined=unknown)
    else:
        check([STEPS[0], A, other], None, declined={"a": "unordered_write", **unknown})


def test_two_updates_in_one_step_where_the_second_gradient_depends_on_the_first_update() -> None:
    """Nested tapes: an inner step, then a lookup in the new table, then an outer step. Tables pack by level."""
    lines, after, names = [], [], ("t1", "t3")
    for index, table in enumerate(names):
        lines += [scatter(f"in_{table}", "Sub", f"{table}, ids, x1")]
        lines += [lookup(f"e_{table}", f"{table}, ids, ^in_{table}")]
        lines += [op(f"f_{table}", "Tanh", f"e_{table}"), op(f"h_{table}", "Mul", f"f_{table}, rate")]
        lines += [scatter(f"out_{table}", "Sub", f"{table}, ids, h_{table}")]
        after += [line.replace(f"^in_{table}", f"^{PACK}in_t1") for line in lines[5 * index + 1 : 5 * index + 4]]
    tables = [[Table(f"{step}_{name}", (i,), (0,)) for i, name in enumerate(names)] for step in ("in", "out")]
    segments = [Segment(0, 0, [Part(0)]), Segment(1, 0, [Part(1)])]
    check(
        [variable("t3", index=9), STEPS[0], *lines],
        [
            *[variable("t3", index=9), STEPS[0], *after],
            updated("t1, t3, ids, g1, rate", *SGD, tables[0], [Segment(0), Segment(1)]),
            updated("t1, t3, ids, f_t1, f_t3, rate, ^e_t1, ^e_t3", *SGD, tables[1], segments),
        ],
    )


def test_rows_that_the_first_update_left_are_a_version_of_the_state() -> None:
    lines = [STEPS[0], A, lookup("e", "t1, ids, ^a"), op("h", "Mul", "e, rate"), scatter("b", "Sub", "t1, ids, h")]
    program = "mul p0 g0; scatter_sub s0 v0; mul v1 p0; scatter_sub v1 v2"
    table = [Table("b", (0,), (0,))]
    check(
        lines,
        [
            *without(lines, "a", "e", "b"),
            lookup("e", f"t1, ids, ^{PACK}b"),
            updated("t1, ids, g1, rate", program, "v3", table, [Segment()]),
        ],
    )


def test_a_reader_that_waits_for_half_of_an_update_would_close_a_cycle() -> None:
    """r waits for the slot, and the table is not written before r: as one op the update would wait for itself."""
    lines = [*MOMENT, SUM, write("w", "", "m, new"), write("a", "Sub", "t1, new"), read("r", "t1, ^w")]
    check(lines, None, fetches=["r"], declined={"a": "would_form_cycle", "w": "would_form_cycle"})


def test_two_updates_that_wait_for_each_other_stay() -> None:
    lines = []
    for one, other in ("12", "21"):
        lines += [variable(f"m{one}", index=9), read(f"r{one}", f"m{one}")]
        lines += [op(f"x{one}_", "Mul", f"r{one}, d1", "<10,4>")]
        lines += [write(f"w{one}", "", f"m{one}, x{one}_"), write(f"a{one}", "Add", f"v{one}, x{one}_, ^w{other}")]
        lines += [variable(f"v{one}", index=10)]
    check(lines, None, declined=dict.fromkeys(("a1", "a2", "w1", "w2"), "would_form_cycle"))


def test_updates_that_wait_for_each_other_in_one_direction_are_packs_of_their_own() -> None:
    check(
        [*STEPS, A, waiting(B, "a")],
        [
            *[*STEPS, ALONE],
            updated(f"t2, more, g2, rate, ^{PACK}a", *SGD, [Table("b", (0,), (0,))], [Segment()]),
        ],
    )


def test_two_variables_in_one_handle_are_one_variable() -> None:
    lines = ["same = Identity(t1) {T = resource}", STEPS[0], A, scatter("b", "Sub", "same, ids, x1")]
    check(lines, None, declined={"a": "unordered_write", "b": "unordered_write"})


def test_variables_that_share_another_one_are_one_table() -> None:
    lines = [arg("g", "float32", "<10,4>"), *[variable(name, index=i) for i, name in enumerate(("a", "b", "other"))]]
    for name in ("a", "b"):
        lines += [read(f"{name}_read", name), read(f"{name}_other", "other")]
        lines += [op(f"{name}_sum", "AddV2", f"g, {name}_other", "<10,4>")]
        lines += [op(f"{name}_step", "Mul", f"{name}_sum, {name}_read", "<10,4>")]
        lines += [f"{name}_write = AssignSubVariableOp({name}, {name}_step) {{dtype = float32}}"]
    lines += ["other_write = AssignSubVariableOp(other, g, ^a_write, ^b_write) {dtype = float32}"]
    (packed,) = run(UpdatePacking(), graph_of(graph(*lines))).report.packed
    assert set(packed.members) == {"a_write", "b_write", "other_write"}


def test_a_variable_that_two_tables_read_keeps_the_second_out() -> None:
    lines = [variable(name, index=i) for i, name in enumerate(("a", "b", "other"))]
    for name in ("a", "b", "other"):
        lines += [arg(f"{name}_ids", index=5), arg(f"{name}_g", "float32", "<?,4>", 6)]
        lines += [
            lookup(f"{name}_rows", f"other, {name}_ids"),
            op(f"{name}_step", "Mul", f"{name}_g, {name}_rows", "<?,4>"),
        ]
    lines += [f"{name}_write = {SCATTER.format(name)}" for name in ("a", "b")]
    lines += ["other_write = " + SCATTER.format("other").replace(")", ", ^a_write, ^b_write)", 1)]
    report = run(UpdatePacking(), graph_of(graph(*lines))).report
    assert [item.members for item in report.packed] == [("a_write",), ("other_write",)]
    assert [(item.node, item.code) for item in report.declined] == [("b_write", "shared_variable")]


SCATTER = "ResourceScatterSub({0}, {0}_ids, {0}_step) {{Tindices = int32, dtype = float32}}"

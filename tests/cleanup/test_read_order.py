"""canonicalize keeps the order of a variable's reads and writes."""

import pytest

from graph_passes.cleanup.canonicalize import Canonicalize
from tests.cleanup.test_canonicalize import BASE, check
from tests.support.lines import assign, canonical, gather, graph, identity, read, scatter, variable
from tests.support.rewrite import graph_of, run

READ, ROWS = read("read", "t"), gather("rows", "read, ids, axis")


def test_a_write_that_needs_the_rows_needs_no_edge() -> None:
    write = "\n".join(["delta = Neg(rows) {T = float32} -> <?,4>", scatter("w", "t, ids, delta, ^read")])
    check(
        [READ, ROWS, write],
        [canonical("rows", "t, ids"), write.replace("^read", "^rows")],
        preserve=["w"],
    )


def test_a_write_without_a_path_from_the_gather_waits_for_it() -> None:
    check(
        [READ, ROWS, assign("w", "t, x, ^read")],
        [canonical("rows", "t, ids"), assign("w", "t, x, ^rows")],
        fetches=["rows"],
        preserve=["w"],
    )


def test_a_write_that_follows_another_reader_waits_for_the_gather() -> None:
    sum_ = "sum = Neg(read) {T = float32} -> <10,4>"
    check(
        [READ, ROWS, sum_, assign("w", "t, sum")],
        [READ, canonical("rows", "t, ids"), sum_, assign("w", "t, sum, ^rows")],
        fetches=["rows"],
        preserve=["w"],
        notes=["read"],
    )


def test_a_write_behind_something_that_waits_for_the_read_needs_one_edge_only() -> None:
    wait = "wait = NoOp(^{})"
    check(
        [READ, ROWS, "sum = Neg(read) {T = float32} -> <10,4>", wait.format("read"), assign("w", "t, x, ^wait")],
        [
            *[READ, canonical("rows", "t, ids"), "sum = Neg(read) {T = float32} -> <10,4>"],
            *["wait = NoOp(^read, ^rows)", assign("w", "t, x, ^wait")],
        ],
        fetches=["rows", "sum"],
        preserve=["w"],
        notes=["read"],
    )


def test_a_read_that_waits_for_a_write_hands_the_wait_to_the_gather() -> None:
    check(
        [assign("w", "t, x"), read("read", "t, ^w"), gather("rows", "read, ids, axis")],
        [assign("w", "t, x"), canonical("rows", "t, ids, ^w")],
        fetches=["rows"],
    )


def test_control_edges_of_the_gather_stay_and_come_first() -> None:
    check(
        [
            *["w1 = NoOp()", assign("w2", "t, x"), read("read", "t, ^w2, ^w1")],
            gather("rows", "read, ids, axis, ^w1"),
        ],
        ["w1 = NoOp()", assign("w2", "t, x"), canonical("rows", "t, ids, ^w1, ^w2")],
        fetches=["rows"],
    )


def test_nodes_that_waited_for_the_read_wait_for_each_gather() -> None:
    check(
        [READ, gather("a", "read, ids, axis"), gather("b", "read, ids, axis"), "n = NoOp(^read)"],
        [canonical("a", "t, ids"), canonical("b", "t, ids"), "n = NoOp(^a, ^b)"],
        fetches=["a", "b"],
    )


def test_ids_that_depend_on_a_later_write_are_declined() -> None:
    value = "value = ReadVariableOp(u, ^w) {dtype = int32} -> <?>"
    lines = [variable("u", "<?>", "int32", index=3), assign("w", "t, x, ^read"), value]
    check(
        [READ, *lines, gather("rows", "read, value, axis")],
        None,
        fetches=["rows"],
        declined={"rows": "ids_depend_on_write"},
    )


def test_a_write_that_nothing_orders_is_left_to_race() -> None:
    check(
        [READ, ROWS, assign("w", "t, x")], None, fetches=["rows"], preserve=["w"], declined={"rows": "unordered_write"}
    )


def test_a_write_of_another_variable_does_not_matter() -> None:
    write = "\n".join([variable("u", index=3), assign("w", "u, x")])
    check([READ, ROWS, write], [write, canonical("rows", "t, ids")], fetches=["rows"], preserve=["w"])


def test_a_call_that_gets_the_handle_counts_as_a_write() -> None:
    call = "call = VariableShape(t) {out_type = int32} -> <2>"  # a reader: does not count
    check([READ, ROWS, call], [call, canonical("rows", "t, ids")], fetches=["rows", "call"])
    call = "call = _Retval(t) {T = resource, index = 0}"
    check([READ, ROWS, call], None, fetches=["rows"], declined={"rows": "unordered_write"})


def test_a_write_under_another_name_of_the_variable_counts() -> None:
    alias = identity("alias", "t", "resource")
    check(
        [alias, READ, ROWS, assign("w", "alias, x")],
        None,
        fetches=["rows"],
        preserve=["w"],
        declined={"rows": "unordered_write"},
    )


def test_edges_that_close_a_cycle_together_are_not_added() -> None:
    lines = [
        *[variable("u", index=3), READ, read("other", "u")],
        *["late = Neg(ids, ^read) {T = int32} -> <?>", "later = Neg(ids, ^other) {T = int32} -> <?>"],
        *[gather("a", "read, later, axis"), gather("b", "other, late, axis")],
    ]
    check(lines, None, fetches=["a", "b"], declined={"a": "would_form_cycle", "b": "would_form_cycle"})


SWITCHED = """
p = _Arg() {T = bool, index = 4} -> <>
st = Switch(t, p) {T = resource} -> <>, <>
sids = Switch(ids, p) {T = int32} -> <?>, <?>
"""


def test_a_write_behind_the_branch_waits_for_what_waited_for_the_read() -> None:
    merge = "\n".join(
        [
            *["done = Merge(no, yes) {N = 2, T = int32} -> <?>, <>", "no = Identity(sids) {T = int32} -> <?>"],
            *["yes = Identity(sids:1, ^%s) {T = int32} -> <?>", assign("w", "t, x, ^done")],
        ]
    )
    check(
        [SWITCHED, read("read", "st:1"), gather("rows", "read, sids:1, axis"), merge % "read"],
        [SWITCHED, canonical("rows", "st:1, sids:1"), merge % "rows"],
        fetches=["rows"],
        preserve=["w"],
    )


def test_no_edge_leads_from_a_branch_to_a_write_behind_it() -> None:
    lines = [
        *[SWITCHED, read("read", "st:1"), "sum = Neg(read) {T = float32} -> <10,4>"],
        *["no = Identity(x, ^sids) {T = float32}", "done = Merge(x, sum) {N = 2, T = float32} -> <10,4>, <>"],
        *[gather("rows", "read, sids:1, axis"), assign("w", "t, done")],
    ]
    check(lines, None, fetches=["rows"], preserve=["w"], declined={"rows": "write_in_other_control_flow"})


def test_a_read_outside_of_the_branch_of_the_gather_is_declined() -> None:
    lines = [SWITCHED, READ, gather("rows", "read, sids:1, axis")]
    check(lines, None, fetches=["rows"], declined={"rows": "other_control_flow"})


def enter(name: str, source: str, dtype: str, constant: bool = True) -> str:
    attrs = f'T = {dtype}, frame_name = "f", is_constant = {str(constant).lower()}, parallel_iterations = 10'
    return f"{name} = Enter({source}) {{{attrs}}}"


LOOP = "\n".join(
    [
        *[enter("et", "t", "resource"), enter("ex", "x", "float32"), enter("eids", "ids", "int32")],
        *[enter("ea", "axis", "int32"), "first = Const() {dtype = int32, value = int32[](0)} -> <>"],
        "i = Merge(ei, next) {N = 2, T = int32} -> <>, <>",
        *["three = Const(^i) {dtype = int32, value = int32[](3)} -> <>", "go = LoopCond(on) -> <>"],
        *["on = Less(i, three) {T = int32} -> <>", "si = Switch(i, go) {T = int32} -> <>, <>"],
        *["body = Identity(si:1) {T = int32} -> <>", "end = Exit(si) {T = int32} -> <>"],
        "zero = Const(^body) {dtype = int32, value = int32[](0)} -> <>",
    ]
)
INSIDE = [gather("rows", "read, eids, zero"), "out = Exit(rows) {T = float32}"]


def test_in_a_loop_the_next_write_waits_for_the_gather_through_the_next_iteration() -> None:
    start = enter("ei", "first", "int32", constant=False)
    write = assign("w", "et, ex, ^body")
    step = "next = NextIteration(body, ^{}) {{T = int32}} -> <>"
    sum_ = "\n".join(["sum = Neg(read) {T = float32} -> <10,4>", "total = Exit(sum) {T = float32}"])
    check(
        [start, LOOP, write, read("read", "et, ^w"), *INSIDE, step.format("read")],
        [start, LOOP, write, canonical("rows", "et, eids, ^w"), INSIDE[1], step.format("rows")],
        fetches=["out", "end"],
    )
    check(
        [start, LOOP, write, read("read", "et, ^w"), *INSIDE, sum_, step.format("read")],
        [
            *[start, LOOP, write, read("read", "et, ^w"), canonical("rows", "et, eids, ^w"), INSIDE[1], sum_],
            "next = NextIteration(body, ^read, ^rows) {T = int32} -> <>",
        ],
        fetches=["out", "end", "total"],
        notes=["read"],
    )


def test_a_write_in_a_later_loop_waits_at_its_entrance() -> None:
    start = enter("ei", "first, ^%s", "int32", constant=False)
    step = "next = NextIteration(body, ^w) {T = int32} -> <>"
    lines = [LOOP, assign("w", "et, ex, ^body"), step]
    check(
        [READ, ROWS, start % "read", *lines],
        [canonical("rows", "t, ids"), start % "rows", *lines],
        fetches=["rows", "end"],
    )


def test_a_write_in_a_later_loop_that_no_entrance_leads_to_is_declined() -> None:
    start = enter("ei", "first", "int32", constant=False)
    sum_ = "\n".join(["sum = Neg(read) {T = float32} -> <10,4>", enter("esum", "sum", "float32")])
    step = "next = NextIteration(body, ^w) {T = int32} -> <>"
    check(
        [start, LOOP, READ, ROWS, sum_, assign("w", "et, esum, ^body"), step],
        None,
        fetches=["rows", "end"],
        declined={"rows": "write_in_other_control_flow"},
    )


@pytest.mark.timeout(60)
def test_layers_of_reads_that_wait_for_each_other_take_no_time() -> None:
    layers = 60
    lines = []
    for layer in range(layers):
        waits = "" if not layer else f", ^read{layer - 1}_0, ^read{layer - 1}_1"
        lines += [read(f"read{layer}_{side}", "t" + waits) for side in (0, 1)]
        lines += [gather(f"rows{layer}_{side}", f"read{layer}_{side}, ids, axis") for side in (0, 1)]
    fetches = [f"rows{layer}_{side}" for layer in range(layers) for side in (0, 1)]
    result = run(Canonicalize(), graph_of(graph(BASE, *lines, fetches=fetches)))
    assert len(result.report.rewritten) == 2 * layers
    assert not result.graph.of("ReadVariableOp")


def test_ids_from_python_code_that_follows_the_read_may_follow_a_write() -> None:
    code = 'code = EagerPyFunc(ids, ^read) {Tin = [int32], Tout = [int32], token = "t", is_async = false} -> <?>'
    check(
        [READ, code, gather("rows", "read, code, axis")],
        None,
        fetches=["rows"],
        declined={"rows": "ids_depend_on_write"},
    )

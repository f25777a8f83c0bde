"""dead_nodes: what nothing reads goes, what has an effect or is referred to from outside stays."""

from graph_passes.cleanup.dead_nodes import DeadNodes
from tests.support.lines import arg, assign, graph, lookup, read, variable
from tests.support.rewrite import check_rewrite

BASE = "\n".join([variable("t"), arg("ids"), arg("x", "float32", "<10,4>")])


def check(before: list[str], after: list[str] | None, **keep):
    after_text = None if after is None else graph(BASE, *after, **keep)
    return check_rewrite(DeadNodes(), graph(BASE, *before, **keep), after_text)


def test_a_chain_goes_as_a_whole_and_is_reported_by_name() -> None:
    kept = "out = Neg(x) {T = float32}"
    chain = ["a = Neg(x) {T = float32}", "b = AddV2(a, a) {T = float32}", "c = Neg(b, ^a) {T = float32}"]
    report = check([kept, *chain], [kept], fetches=["out"])
    assert report.rewritten == ["a", "b", "c"]


def test_reads_and_lookups_without_a_reader_go() -> None:
    check([read("read", "t"), lookup("rows", "t, ids")], [], fetches=["x"])


def test_writes_random_ops_and_unknown_functions_stay() -> None:
    random = "r = RandomUniform(n) {T = int32, dtype = float32, seed = 0, seed2 = 0}"
    check(["n = Const() {dtype = int32, value = int32[1](2)}", random, assign("w", "t, x")], None, fetches=["x"])


def test_arguments_results_placeholders_and_no_ops_stay() -> None:
    check(["result = _Retval(x) {T = float32, index = 0}", "n = NoOp()", "p = Placeholder() {dtype = float32}"], None)


def test_fed_fetched_and_preserved_nodes_stay() -> None:
    lines = [f"{name} = Neg(x) {{T = float32}}" for name in ("fed", "fetched", "preserved")]
    check(lines, None, feeds=["fed"], fetches=["fetched:0"], preserve=["preserved"])


def test_what_waits_for_a_node_that_goes_waits_for_what_it_needed() -> None:
    random = "r = RandomUniform(shape) {T = int32, dtype = float32, seed = 0, seed2 = 0} -> <2>"
    shape = "shape = Const(^x) {dtype = int32, value = int32[1](2)} -> <1>"
    lines = [shape, random, "a = Neg(r) {T = float32} -> <2>", "b = Square(a) {T = float32} -> <2>", "n = NoOp(^b)"]
    check(lines, [shape, random, "n = NoOp(^r)"], fetches=["n"])
    check(["a = Neg(x) {T = float32}", "n = NoOp(^a)"], ["n = NoOp()"], fetches=["n"])


def test_a_sum_that_tensorflow_made_in_place_stays() -> None:
    """TensorFlow's memory optimizer writes an AddN so; only control edges tell that the additions come first."""
    lines = [
        'v = TemporaryVariable() {dtype = float32, shape = <10,4>, var_name = "v"} -> <10,4>',
        "zeros = Const() {dtype = float32, value = float32[](0.0)} -> <>",
        "start = Assign(v, zeros) {T = float32, use_locking = false, validate_shape = false} -> <10,4>",
        "add = AssignAdd(start, x) {T = float32, use_locking = true} -> <10,4>",
        'sum = DestroyTemporaryVariable(start, ^add) {T = float32, var_name = "v"} -> <10,4>',
    ]
    check(lines, None, fetches=["sum"])


def test_a_check_that_something_waits_for_stays() -> None:
    check(['c = CheckNumerics(x) {T = float32, message = "m"} -> <10,4>', "n = NoOp(^c)"], None, fetches=["n"])


def test_beside_branches_what_something_waits_for_stays() -> None:
    """What waits for a node in a branch is off with it."""
    lines = [
        "p = _Arg() {T = bool, index = 4} -> <>",
        "s = Switch(x, p) {T = float32} -> <10,4>, <10,4>",
        "pivot = Identity(s:1) {T = float32} -> <10,4>",
        "n = NoOp(^pivot)",
        "c = Cast(pivot) {DstT = int32, SrcT = float32, Truncate = false} -> <10,4>",
        lookup("u", "t, c"),
        "m = NoOp(^u)",
    ]
    check(lines, None, fetches=["n", "m"])


def test_one_unused_output_of_a_used_node_is_no_reason_to_go() -> None:
    lines = ["parts = Unpack(x) {T = float32, axis = 1, num = 4}", "out = Neg(parts:3) {T = float32}"]
    check(lines, None, fetches=["out"])


def test_an_empty_graph_stays_empty() -> None:
    check_rewrite(DeadNodes(), graph(), None)


CAST = "c = Cast(wide) {DstT = int32, SrcT = int64, Truncate = false}"
WIDE = arg("wide", "int64", index=3)


def test_what_waits_for_a_read_that_goes_waits_for_what_the_read_waited_for() -> None:
    check(
        [assign("w", "t, x"), read("r", "t, ^w"), "n = NoOp(^r)", "both = NoOp(^r, ^w)"],
        [assign("w", "t, x"), "n = NoOp(^w)", "both = NoOp(^w)"],
        fetches=["n", "both"],
    )


def test_reads_that_wait_for_each_other_go_together() -> None:
    check(
        [assign("w", "t, x"), read("r", "t, ^w"), read("s", "t, ^r"), lookup("u", "t, ids, ^s"), "n = NoOp(^u)"],
        [assign("w", "t, x"), "n = NoOp(^w)"],
        fetches=["n"],
    )


def test_a_write_waits_for_no_read_that_nobody_reads() -> None:
    check([read("r", "t"), assign("w", "t, x, ^r")], [assign("w", "t, x")], fetches=["x"])


def test_a_read_that_is_only_a_control_output_becomes_a_no_op() -> None:
    result = "result = _Retval(x) {T = float32, index = 0}"
    check(
        [result, assign("w", "t, x"), read("r", "t, ^w"), "n = NoOp(^r)"],
        [result, assign("w", "t, x"), "r = NoOp(^w)", "n = NoOp(^r)"],
        preserve=["r", "n"],
    )


def test_a_preserved_read_that_somebody_may_fetch_stays() -> None:
    text = graph("p = Placeholder() {dtype = resource}", read("r", "p"), preserve=["r"])
    check_rewrite(DeadNodes(), text, None)


def test_what_waited_for_a_lookup_waits_for_what_its_ids_came_from() -> None:
    """A read of the ids' table that others use, say: a write that waited for the lookup still comes after it."""
    row = "r = ReadVariableOp(t) {dtype = float32} -> <10,4>"
    ids = [
        "a = ArgMax(r, axis) {T = float32, Tidx = int32, output_type = int32} -> <10>",
        "axis = Const() {dtype = int32, value = int32[](1)} -> <>",
    ]
    used = "y = Neg(r) {T = float32} -> <10,4>"
    check(
        [row, *ids, used, lookup("u", "t, a"), "n = NoOp(^u)"],
        [row, used, "n = NoOp(^r)"],
        fetches=["n", "y"],
    )


def test_what_waited_for_a_lookup_need_not_wait_for_arguments() -> None:
    check([WIDE, CAST, lookup("u", "t, c"), "n = NoOp(^u)"], [WIDE, "n = NoOp()"], fetches=["n"])


def test_a_preserved_lookup_becomes_something_to_wait_for() -> None:
    result = "result = _Retval(x) {T = float32, index = 0}"
    check([WIDE, CAST, result, lookup("u", "t, c")], [WIDE, result, "u = NoOp()"], preserve=["u"])


def test_a_lookup_that_nothing_waits_for_goes_with_its_ids() -> None:
    check([WIDE, CAST, lookup("u", "t, c")], [WIDE], fetches=["x"])

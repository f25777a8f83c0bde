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


def test_a_node_that_something_waits_for_stays() -> None:
    check(["a = Neg(x) {T = float32}", "n = NoOp(^a)"], None, fetches=["n"])


def test_one_unused_output_of_a_used_node_is_no_reason_to_go() -> None:
    lines = ["parts = Unpack(x) {T = float32, axis = 1, num = 4}", "out = Neg(parts:3) {T = float32}"]
    check(lines, None, fetches=["out"])


def test_an_empty_graph_stays_empty() -> None:
    check_rewrite(DeadNodes(), graph(), None)

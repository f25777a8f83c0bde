"""xla_close: what goes into a region, what stays outside, and how the border is drawn."""

from collections import Counter

import pytest

from graph_passes.compilation.xla_close import XlaClose
from graph_passes.ir import Graph, Node, control_outputs, function_nodes
from tests.support.lines import arg, graph, lookup, read, scalar, scatter, variable
from tests.support.rewrite import check_rewrite, graph_of, run, shuffled

OPENED = "opened = NoOp() {_picasso_opened = true}"
BASE = [
    *[OPENED, variable("table"), arg("ids", shape="<8>"), arg("x", "float32", "<8,4>"), variable("kernel", "<4,4>")],
    lookup("rows", "table, ids", "<8,4>"),
]


def product(name: str, left: str, right: str = "x", controls: str = "") -> str:
    attrs = "T = float32, transpose_a = false, transpose_b = true"
    return f"{name} = MatMul({left}, {right}{controls}) {{{attrs}}} -> <8,8>"


def unary(op: str, name: str, source: str, shape: str = "<8,8>", dtype: str = "float32", device: str = "") -> str:
    place = f" @ {device}" if device else ""
    return f"{name} = {op}({source}) {{T = {dtype}}}{place} -> {shape}"


def out(source: str, index: int = 0, dtype: str = "float32") -> str:
    return f"out{index} = _Retval({source}) {{T = {dtype}, index = {index}}}"


DENSE = [product("p1", "rows"), product("p2", "x", "rows")]


def closed(*lines: str, base: list[str] | None = None, weight: int = 16, **keep) -> Graph:
    return run(XlaClose(weight), graph_of(graph(*(BASE if base is None else base), *lines, **keep))).graph


def calls(result: Graph) -> list[Node]:
    return result.of("StatefulPartitionedCall")


def inside(result: Graph, number: int = 0) -> Counter:
    """How many nodes of each op are in a call's function, arguments and results aside."""
    functions = result.functions
    nodes = function_nodes(functions[calls(result)[number].attr("f").name], functions).values()
    return Counter(node.op for node in nodes if node.op not in ("_Arg", "_Retval"))


def test_a_graph_that_was_not_opened_stays() -> None:
    check_rewrite(XlaClose(), graph(*BASE[1:], *DENSE, out("p1"), out("p2", 1)), None)


def test_the_mark_goes_even_when_nothing_is_worth_it() -> None:
    report = check_rewrite(
        XlaClose(),
        graph(*BASE, out("rows")),
        graph("opened = NoOp()", *BASE[1:], out("rows")),
        declined={"opened": "nothing_to_compile"},
    )
    assert report.rewritten == []


def test_fuel_limits_it() -> None:
    text = graph(*BASE, *DENSE, out("p1"), out("p2", 1))
    after = graph("opened = NoOp()", *BASE[1:], *DENSE, out("p1"), out("p2", 1))
    check_rewrite(XlaClose(), text, after, declined={"p1": "out_of_fuel"}, fuel=0)


def test_what_two_results_need_is_one_call_with_the_tensors_that_cross_its_border() -> None:
    result = closed(*DENSE, unary("Neg", "n", "p1"), out("n"), out("p2", 1))
    (call,) = calls(result)
    assert [str(ref) for ref in call.inputs] == ["rows", "x"]
    assert [str(result.nodes[name].inputs[0]) for name in ("out0", "out1")] == [f"{call.name}", f"{call.name}:1"]
    assert [shape.dims for shape in call.attr("_output_shapes")] == [(8, 8), (8, 8)]
    assert inside(result) == {"MatMul": 2, "Neg": 1}


def test_a_lookup_in_between_makes_two_calls() -> None:
    between = [
        *["best = ArgMax(p1, axis) {T = float32, Tidx = int32, output_type = int32} -> <8>", scalar("axis", 1)],
        *[lookup("more", "table, best", "<8,4>"), product("p3", "more"), product("p4", "more", "more")],
    ]
    result = closed(*DENSE, *between, out("p2"), out("p3", 1), out("p4", 2))
    assert len(calls(result)) == 2
    assert sum(inside(result, number)["MatMul"] for number in (0, 1)) == 4
    assert sorted(inside(result, number)["ArgMax"] for number in (0, 1)) == [0, 1]
    assert "axis" not in result.nodes


def test_constants_are_copied_and_stay_where_something_outside_reads_them() -> None:
    lines = [scalar("axis", 1), "s = Sum(p1, axis) {T = float32, Tidx = int32, keep_dims = false} -> <8>"]
    result = closed(*DENSE, *lines, out("s"), out("p2", 1), out("axis", 2, "int32"))
    assert inside(result)["Const"] == 1
    assert "axis" in result.nodes
    assert "axis" not in [ref.node for ref in calls(result)[0].inputs]


def test_the_call_waits_and_is_waited_for() -> None:
    lines = [
        *[
            "before = AsString(x) {T = float32}",
            "write = AssignSubVariableOp(kernel, p1, ^before, ^read) {dtype = float32}",
        ],
        *[read("read", "kernel"), product("p3", "rows", "read"), scatter("after", "table, ids, p3, ^write")],
    ]
    result = closed(*DENSE, *lines, out("p2"), preserve=["write", "read"])
    (call,) = calls(result)
    assert call.controls == ("before",)
    assert result.nodes["after"].controls == (call.name,)
    assert (result.nodes["write"].op, result.nodes["write"].controls) == ("NoOp", (call.name,))
    assert result.nodes["read"].op == "NoOp"
    function = result.functions[call.attr("f").name]
    assert control_outputs(function) == ["read", "write"]
    assert function_nodes(function, result.functions)["write"].controls == ("read",)


OUTSIDE = {
    "an update of rows": [scatter("n", "table, ids, p1")],
    "a string": ["n = AsString(p1) {T = float32} -> <8,8>", out("n", 2, "string")],
    "a result of unknown size": [
        *["w = Where(p1) {T = float32} -> <?,2>", unary("Neg", "n", "w", "<?,2>", "int64"), out("n", 2, "int64")],
    ],
    "what another device does": [unary("Neg", "n", "p1", device="/device:GPU:0"), out("n", 2)],
    "a branch": [
        *["flag = Placeholder() {dtype = bool} -> <>", "s = Switch(p1, flag) {T = float32} -> <8,8>, <8,8>"],
        *[unary("Neg", "n", "s"), "m = Merge(n, s:1) {N = 2, T = float32} -> <8,8>, <>", out("m", 2)],
    ],
    "a list": [
        *["shape = Const() {dtype = int32, value = int32[1](8)} -> <1>"],
        *["n = TensorListFromTensor(p1, shape) {element_dtype = float32, shape_type = int32} -> <>"],
        *[out("n", 2, "variant")],
    ],
}


@pytest.mark.parametrize("kind", OUTSIDE)
def test_what_xla_cannot_take_stays(kind: str) -> None:
    result = closed(*DENSE, *OUTSIDE[kind], out("p1"), out("p2", 1))
    assert inside(result) == {"MatMul": 2}
    assert "n" in result.nodes


def test_a_list_that_stays_inside_goes_along() -> None:
    lines = [
        "shape = Const() {dtype = int32, value = int32[1](8)} -> <1>",
        "l = TensorListFromTensor(p1, shape) {element_dtype = float32, shape_type = int32} -> <>",
        "n = TensorListStack(l, shape) {element_dtype = float32, num_elements = 8} -> <8,8>",
    ]
    result = closed(*DENSE, *lines, out("n"), out("p2", 1))
    assert inside(result) == {"MatMul": 2, "Const": 1, "TensorListFromTensor": 1, "TensorListStack": 1}


def test_a_list_that_two_regions_would_share_stays_outside_with_what_uses_it() -> None:
    stack = "element_dtype = float32, num_elements = 8"
    lines = [
        "shape = Const() {dtype = int32, value = int32[1](8)} -> <1>",
        "l = TensorListFromTensor(p1, shape) {element_dtype = float32, shape_type = int32} -> <>",
        f"first = TensorListStack(l, shape) {{{stack}}} -> <8,8>",
        *["best = ArgMax(first, axis) {T = float32, Tidx = int32, output_type = int32} -> <8>", scalar("axis", 1)],
        *[lookup("more", "table, best", "<8,4>"), f"second = TensorListStack(l, shape, ^more) {{{stack}}} -> <8,8>"],
        *[product("p3", "more"), product("p4", "more", "more"), "sum = AddV2(p3, second) {T = float32} -> <8,8>"],
    ]
    result = closed(*DENSE, *lines, out("sum"), out("p4", 1), out("p2", 2))
    assert len(calls(result)) == 3  # the arg max is worth one of its own
    ops = inside(result, 0) + inside(result, 1) + inside(result, 2)
    assert ops["MatMul"] == 4
    assert not any(op.startswith("TensorList") for op in ops)
    assert {"l", "first", "second"} <= result.nodes.keys()


def test_an_unknown_batch_is_no_unknown_size() -> None:
    base = [line.replace("<8>", "<?>").replace("<8,4>", "<?,4>") for line in BASE]
    result = closed(*[line.replace("<8,8>", "<?,?>") for line in DENSE], out("p1"), out("p2", 1), base=base)
    assert inside(result) == {"MatMul": 2}


def test_a_conditional_goes_along_with_its_functions() -> None:
    branch = "\nx = _Arg() {T = float32, index = 0}\nn = Neg(x) {T = float32}"
    branch += "\nr_RetVal = _Retval(n) {T = float32, index = 0}"
    types = "Tcond = bool, Tin = [float32], Tout = [float32]"
    lines = [
        scalar("zero", 0),
        "less = Less(zero, zero) {T = int32} -> <>",
        f"c = StatelessIf(less, p1) {{{types}, then_branch = @yes, else_branch = @no}} -> <8,8>",
    ]
    text = graph(*BASE, *DENSE, *lines, out("c"), out("p2", 1))
    functions = f"\nfunction @yes(){branch}\nfunction @no(){branch}"
    result = run(XlaClose(), graph_of(text + functions)).graph
    assert inside(result)["StatelessIf"] == 1
    other = run(XlaClose(), graph_of(text + functions.replace("n = Neg", "n = Abs"))).graph
    assert calls(result)[0].attr("f") != calls(other)[0].attr("f"), "what XLA compiled is kept by name"


def test_fed_and_fetched_nodes_stay_as_they_are() -> None:
    result = closed(
        *DENSE, unary("Neg", "n", "p1"), product("p3", "n"), fetches=["n", "p3"], base=[OPENED, *_session()]
    )
    assert [result.nodes[name].op for name in ("n", "p3")] == ["Neg", "MatMul"]


def _session() -> list[str]:
    """Inputs as a session has them; without arguments, nodes are fetched by name."""
    return ["rows = Placeholder() {dtype = float32} -> <8,4>", "x = Placeholder() {dtype = float32} -> <8,4>"]


def test_the_result_does_not_depend_on_the_order_of_nodes() -> None:
    before = graph_of(graph(*BASE, *DENSE, unary("Neg", "n", "p1"), unary("Exp", "e", "p2"), out("n"), out("e", 1)))
    names = {calls(run(XlaClose(), shuffled(before, seed)).graph)[0].attr("f") for seed in range(5)}
    assert len(names) == 1

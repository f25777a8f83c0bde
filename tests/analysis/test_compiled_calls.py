"""Which compiled calls hold embeddings."""

import pytest

from graph_passes.analysis.compiled_calls import compiled_lookups, opened_marker
from graph_passes.ir import parse_graph
from tests.support.lines import gather, graph, lookup, read, scalar

CALL = "call = PartitionedCall() {Tin = [], Tout = [], _XlaMustCompile = true, f = @step}"
ARGS = "t = _Arg() {T = resource, index = 0}\nids = _Arg() {T = int32, index = 1}\nx = _Arg() {T = float32, index = 2}"
AXIS = scalar("axis", 0)
BODIES = {
    "a row gather": [lookup("rows", "t, ids")],
    "a read and a gather": [read("r", "t"), AXIS, gather("rows", "r, ids, axis")],
    "a read that is cast": [
        *[read("r", "t"), "c = Cast(i) {DstT = float64, SrcT = float32}", "i = Identity(r) {T = float32}"],
        *[AXIS, gather("rows", "c, ids, axis", dtype="float64")],
    ],
    "an update of rows": ["n = ResourceScatterSub(t, ids, x) {Tindices = int32, dtype = float32}"],
    "a hash table": ["n = LookupTableFindV2(t, ids, x) {Tin = int32, Tout = float32}"],
}
OTHERS = {
    "a gather from a computed tensor": [AXIS, gather("rows", "x, ids, axis")],
    "a gather from a sum": [
        *[read("r", "t"), "s = AddV2(r, x) {T = float32}", AXIS, gather("rows", "s, ids, axis")],
    ],
    "a dense update": ["n = AssignSubVariableOp(t, x) {dtype = float32}"],
}


def found(body: list[str], call: str = CALL, name: str = "step") -> list[str]:
    return [
        node.name
        for node in compiled_lookups(parse_graph("\n".join([graph(call), f"function @{name}()", ARGS, *body])))
    ]


@pytest.mark.parametrize("kind", BODIES)
def test_calls_that_hold_embeddings_are_found(kind: str) -> None:
    assert found(BODIES[kind]) == ["call"]
    assert found(BODIES[kind], CALL.replace("true", "false")) == []


@pytest.mark.parametrize("kind", OTHERS)
def test_other_calls_are_not(kind: str) -> None:
    assert found(OTHERS[kind]) == []


def test_functions_inside_count() -> None:
    inner = "function @step()\nn = PartitionedCall() {Tin = [], Tout = [], f = @inner}\nfunction @inner()"
    assert found(BODIES["a row gather"], f"{CALL}\n{inner}", name="innermost") == []
    assert found(BODIES["a row gather"], CALL + "\n" + inner.removesuffix("\nfunction @inner()"), name="inner") == [
        "call"
    ]


def test_the_marker_is_a_no_op_with_the_attribute() -> None:
    assert opened_marker(parse_graph(graph("n = NoOp()"))) is None
    marker = opened_marker(parse_graph(graph("n = NoOp()", "m = NoOp() {_picasso_opened = true}")))
    assert marker is not None
    assert marker.name == "m"

"""The verifier: each invariant is broken by itself, and the message gives its number and the node."""

import pytest
from tensorflow.core.framework import graph_pb2

from graph_passes.errors import VerifyError
from graph_passes.ir import Graph, parse_graph, verify, verify_graph_def, verify_rewrite
from tests.support.lines import arg, assign, graph, read, variable

CONST = "c = Const() {dtype = float32, value = float32[](1.0)}"
BASE = "\n".join([variable("t"), arg("x", "float32"), CONST])


def broken(invariant: str, node: str, *lines: str) -> str:
    """The message about a graph that breaks one invariant."""
    with pytest.raises(VerifyError) as error:
        verify(parse_graph(graph(*lines)))
    return checked(error.value, invariant, node)


def broken_rewrite(invariant: str, node: str, before: str | Graph, after: str | Graph, **options) -> str:
    """The message about a rewrite that breaks one invariant."""
    old, new = (parse_graph(side) if isinstance(side, str) else side for side in (before, after))
    verify(old)
    with pytest.raises(VerifyError) as error:
        verify_rewrite(old, new, **options)
    return checked(error.value, invariant, node)


def checked(error: VerifyError, invariant: str, node: str) -> str:
    assert (error.invariant, error.node) == (invariant, node)
    assert str(error).startswith(f"{invariant} broken at '{node}': ")
    return str(error)


def graph_def(*nodes: tuple[str, list[str]]) -> graph_pb2.GraphDef:
    result = graph_pb2.GraphDef()
    for name, inputs in nodes:
        result.node.add(name=name, op="NoOp", input=inputs)
    return result


def test_a_sound_graph_and_a_graph_that_did_not_change_pass() -> None:
    sound = parse_graph(
        graph(BASE, read("r", "t"), assign("w", "t, c, ^r"), feeds=["x"], fetches=["r"], preserve=["w"])
    )
    verify(sound)
    verify_rewrite(sound, sound)
    verify_graph_def(sound.to_graph_def())


def test_i1_names_are_unique() -> None:
    with pytest.raises(VerifyError) as error:
        verify_graph_def(graph_def(("a", []), ("a", [])))
    assert "2 nodes have this name." in checked(error.value, "I1", "a")


def test_i2_inputs_name_an_existing_node_and_port() -> None:
    assert "its input 'gone' does not exist." in broken("I2", "n", BASE, "n = Neg(gone) {T = float32}")
    assert "asks for port 1 of 1." in broken("I2", "n", BASE, "n = Neg(c:1) {T = float32}")
    assert "its control input 'gone' does not exist." in broken("I2", "n", BASE, "n = Neg(c, ^gone) {T = float32}")


def test_i3_only_loops_may_be_cyclic() -> None:
    lines = ["a = Neg(b) {T = float32}", "b = Neg(a) {T = float32}"]
    assert "cycle" in broken("I3", "a", BASE, *lines)
    loop = ["m = Merge(c, n) {N = 2, T = float32}", "n = NextIteration(m) {T = float32}"]
    verify(parse_graph(graph(BASE, *loop)))


def test_i4_ops_arity_and_types_agree_with_the_op_def() -> None:
    assert "its op 'NoSuchOp' is not registered and is no function" in broken("I4", "n", "n = NoSuchOp()")
    assert "it has 2 inputs, its OpDef wants 1." in broken("I4", "n", BASE, "n = Neg(c, c) {T = float32}")
    assert "input 0 is float32, its OpDef wants int32." in broken("I4", "n", BASE, "n = Neg(c) {T = int32}")
    assert "an attribute that gives its arity or types is missing." in broken("I4", "n", BASE, "n = Neg(c)")
    assert "it has 1 inputs, its OpDef wants 2." in broken("I4", "n", BASE, "n = AddN(c) {N = 2, T = float32}")


def test_i4_lets_a_function_of_the_library_be_called_by_name_and_a_reference_be_read_as_a_value() -> None:
    called = parse_graph(
        "n = my_function()\nv = VariableV2() {dtype = float32, shape = <>}\ni = Identity(v) {T = float32}"
    )
    called.library.function.add().signature.name = "my_function"
    verify(called)


def test_i5_control_inputs_come_last_and_once() -> None:
    with pytest.raises(VerifyError) as error:
        verify_graph_def(graph_def(("a", []), ("b", ["^a", "a"])))
    assert "a data input follows a control input" in checked(error.value, "I5", "b")
    with pytest.raises(VerifyError) as error:
        verify_graph_def(graph_def(("a", []), ("b", ["^a", "^a"])))
    assert "a control input is repeated" in checked(error.value, "I5", "b")


def test_i6_preserved_nodes_stay_and_those_that_are_read_keep_their_signature() -> None:
    before = graph(BASE, "n = Neg(c) {T = float32}", fetches=["n"])
    assert "it is gone." in broken_rewrite("I6", "n", before, graph(BASE, fetches=["n"]))
    other = graph(BASE, "n = Shape(c) {T = float32, out_type = int32}", fetches=["n"])
    assert "its outputs were ['float32'] and are ['int32']." in broken_rewrite("I6", "n", before, other)
    more = graph(BASE, "n = Split(a, c) {T = float32, num_split = 2}", "a = Shape(c) {T = float32}", fetches=["n"])
    verify_rewrite(parse_graph(before), parse_graph(more))


def test_i6_lets_a_control_output_go_when_another_waits_for_the_same() -> None:
    keep = {"fetches": ["c"], "preserve": ["m", "n"]}
    writes = [assign("w", "t, c"), assign("v", "t, c, ^w")]
    before = graph(BASE, *writes, "m = NoOp(^w)", "n = NoOp(^v)", **keep)
    verify_rewrite(parse_graph(before), parse_graph(graph(BASE, *writes, "m = NoOp(^w, ^v)", **keep)))
    lost = broken_rewrite("I6", "n", before, graph(BASE, *writes, "m = NoOp(^w)", **keep))
    assert "it waited for 'v', which no control output waits for any more." in lost


def test_i6_lets_a_control_output_lose_its_outputs_and_a_pruned_name_be_absent() -> None:
    before = graph(BASE, read("r", "t"), fetches=["c"], preserve=["r", "pruned"])
    verify_rewrite(parse_graph(before), parse_graph(graph(BASE, "r = NoOp()", fetches=["c"], preserve=["r", "pruned"])))
    in_session = before.replace("_Arg() {T = resource,", "VarHandleOp() {dtype = float32, shape = <10,4>,")
    in_session = in_session.replace("_Arg() {T = float32, index = 0}", "Placeholder() {dtype = float32}")
    after = in_session.replace(read("r", "t"), "r = NoOp()")
    assert "its outputs were ['float32'] and are []." in broken_rewrite("I6", "r", in_session, after)


def test_i7_effects_are_neither_dropped_nor_added_nor_replaced() -> None:
    write = assign("w", "t, c")
    dropped = broken_rewrite("I7", "w", graph(BASE, write), graph(BASE))
    assert "a stateful AssignVariableOp was dropped" in dropped
    assert "was added" in broken_rewrite("I7", "w", graph(BASE), graph(BASE, write))
    assert "was dropped" in broken_rewrite("I7", "w", graph(BASE, write), graph(BASE, "w = NoOp()"))
    verify_rewrite(parse_graph(graph(BASE, write)), parse_graph(graph(BASE)), may_touch=["w"])
    verify_rewrite(parse_graph(graph(BASE, read("r", "t"))), parse_graph(graph(BASE)))


def test_i8_colocation_does_not_name_a_node_that_is_gone() -> None:
    placed = 'n = Neg(c) {T = float32, _class = ["loc:@a"]}'
    before, after = graph(BASE, "a = NoOp()", placed), graph(BASE, placed)
    assert "it is colocated with 'a', which is gone." in broken_rewrite("I8", "n", before, after)
    verify_rewrite(parse_graph(after), parse_graph(after))  # it never was: inlining leaves such names


def test_i9_called_functions_exist() -> None:
    call = "n = PartitionedCall(c) {Tin = [float32], Tout = [float32], f = @f}"
    assert "it calls 'f', which is not in the library." in broken("I9", "n", BASE, call)
    case = "n = Case(i, c) {Tin = [float32], Tout = [float32], branches = [@f, @g], output_shapes = []}"
    index = "i = Const() {dtype = int32, value = int32[](0)}"
    half = parse_graph(graph(BASE, index, case))
    half.library.function.add().signature.name = "f"
    with pytest.raises(VerifyError, match="it calls 'g'"):
        verify(half)


def test_i10_functions_and_versions_stay() -> None:
    before, after = (parse_graph(graph(BASE)) for _ in range(2))
    after.versions.producer = 7
    assert "the versions changed." in broken_rewrite("I10", "", before, after)
    after = parse_graph(graph(BASE))
    after.library.function.add().signature.name = "new"
    assert "this function was added and the pass does not say so." in broken_rewrite("I10", "new", before, after)


@pytest.mark.parametrize("device", ["garbage", "/device:CPU:x", "/job:a/task:b"])
def test_i11_devices_parse(device: str) -> None:
    assert f"its device '{device}' does not parse." in broken("I11", "n", f"n = NoOp() @ {device}")


def test_i12_a_fed_tensor_is_not_bypassed() -> None:
    lines = ["n = Neg(x) {T = float32}", "m = Neg(n) {T = float32}"]
    before = graph(BASE, *lines, feeds=["n"], fetches=["m"])
    after = graph(BASE, lines[0], "m = Neg(c) {T = float32}", feeds=["n"], fetches=["m"])
    assert "it is fed and was read, and nothing reads it any more." in broken_rewrite("I12", "n", before, after)


def test_a_message_shows_the_nodes_around() -> None:
    message = broken("I4", "n", BASE, "n = Neg(c) {T = int32}", "m = Neg(n) {T = int32}")
    assert message.splitlines()[1:] == [
        f"    {line}" for line in (CONST, "n = Neg(c) {T = int32}", "m = Neg(n) {T = int32}")
    ]

"""The view of a graph: order, uses, kept nodes, dtypes, and the way from and to a GraphDef."""

import pytest
import tensorflow as tf
from tensorflow.core.framework import graph_pb2

from graph_passes.errors import GraphError
from graph_passes.ir import CONTROL, DType, Graph, Node, Shape, TensorRef, Use, parse_graph, parse_ref
from graph_passes.ir.op_defs import can_drop, has_kernel, is_stateful
from tests.support.rewrite import graph_of, shuffled

LOOP = """
    start = Const() {dtype = int32, value = int32[](0)}
    enter = Enter(start) {T = int32, frame_name = "f"}
    merge = Merge(enter, next) {N = 2, T = int32}
    less = Less(merge, merge) {T = int32}
    cond = LoopCond(less)
    switch = Switch(merge, cond) {T = int32}
    next = NextIteration(switch:1) {T = int32}
    exit = Exit(switch) {T = int32}
"""


def names(nodes: list[Node]) -> list[str]:
    return [node.name for node in nodes]


def test_canonical_order_is_the_first_by_name_whatever_the_order_of_nodes() -> None:
    graph = parse_graph("z = NoOp()\na = NoOp(^z)\nm = NoOp()\nb = NoOp(^m, ^a)\nc = NoOp(^m)\n")
    for seed in range(8):
        assert names(shuffled(graph, seed).canonical()) == ["m", "c", "z", "a", "b"]


def test_a_v1_loop_is_no_cycle() -> None:
    order = names(graph_of(LOOP).topological)
    assert order == ["start", "enter", "merge", "less", "cond", "switch", "exit", "next"]


def test_a_cycle_is_an_error_that_names_a_node_of_it() -> None:
    with pytest.raises(GraphError, match=r"^The graph has a cycle through or before node 'b'\.$"):
        _ = parse_graph("a = NoOp()\nc = NoOp(^b)\nb = NoOp(^a, ^c)\n").topological
    with pytest.raises(GraphError, match="'a'"):
        _ = parse_graph("a = Neg(a)\n").topological


def test_a_back_edge_into_anything_but_a_merge_is_a_cycle() -> None:
    with pytest.raises(GraphError, match="cycle"):
        _ = graph_of(LOOP.replace("Less(merge, merge)", "Less(merge, next)")).topological


def test_uses_tell_data_and_control_and_the_port() -> None:
    graph = parse_graph("a = Split()\nb = Pack(a:1, a, a:1)\nc = NoOp(^a)\n")
    b, c = graph.nodes["b"], graph.nodes["c"]
    assert graph.uses("a") == [Use(b, 0), Use(b, 1), Use(b, 2), Use(c, CONTROL)]
    assert graph.uses_of(TensorRef("a", 1)) == [Use(b, 0), Use(b, 2)]
    assert graph.uses_of(TensorRef("a")) == [Use(b, 1)]
    assert graph.uses("c") == []


def test_nodes_of_an_op_come_by_name() -> None:
    graph = parse_graph("b = Neg(a)\na = NoOp()\nc = NoOp()\nd = Neg(a)\n")
    assert names(graph.of("NoOp")) == ["a", "c"]
    assert names(graph.of("Neg", "NoOp", "Abs")) == ["b", "d", "a", "c"]
    assert sorted(graph.by_op) == ["Neg", "NoOp"]


def test_kept_nodes_are_feeds_fetches_and_the_preserve_set() -> None:
    graph = graph_of(
        "graph {feeds = [f:0], fetches = [o:1, ^e], preserve = [p]}\nf = NoOp()\no = NoOp()\ne = NoOp()\np = NoOp()"
    )
    assert graph.kept == {"f", "o", "e", "p"}
    assert graph.fed == {"f"}
    assert graph.kept_for_control == frozenset()
    assert graph.kept_for_data == graph.kept


def test_what_a_function_preserves_beside_its_fetches_can_only_be_waited_for() -> None:
    header = "graph {feeds = [], fetches = [o], preserve = [p, o]}"
    graph = graph_of(f"{header}\nx = _Arg() {{T = int32, index = 0}}\no = NoOp()\np = NoOp()")
    assert graph.kept_for_control == {"p"}
    assert graph.kept_for_data == {"o"}


@pytest.mark.parametrize(
    ("text", "ref", "dtype"),
    [
        ("a = Placeholder() {dtype = float16}", TensorRef("a"), "float16"),
        ("a = Shape(x) {T = int32}", TensorRef("a"), "int32"),  # out_type has a default
        ("a = Shape(x) {T = int32, out_type = int64}", TensorRef("a"), "int64"),
        ("a = Merge(x, x) {T = float32, N = 2}", TensorRef("a", 1), "int32"),
        ("a = Split(x, x) {T = float32, num_split = 3}", TensorRef("a", 2), "float32"),
        ("a = Split(x, x) {T = float32, num_split = 3}", TensorRef("a", 3), None),
        ("a = IteratorGetNext(x) {output_types = [int64, string]}", TensorRef("a", 1), "string"),
        ("a = VariableV2() {dtype = float32, shape = <2>}", TensorRef("a"), "float32_ref"),
        ("a = VarHandleOp() {dtype = float32, shape = <2>}", TensorRef("a"), "resource"),
        ("a = Identity(x)", TensorRef("a"), None),
        ("a = NoSuchOp()", TensorRef("a"), None),
        ("a = NoOp()", TensorRef("a"), None),
    ],
)
def test_dtype_of_is_what_the_op_def_says(text: str, ref: TensorRef, dtype: str | None) -> None:
    graph = parse_graph(f"x = Const() {{dtype = int32, value = int32[](1)}}\n{text}\n")
    assert graph.dtype_of(ref) == dtype


def test_shapes_are_those_that_were_annotated() -> None:
    graph = parse_graph("a = Unpack() -> <?,2>, <*>\n")
    shapes = [graph.shape(TensorRef("a", port)) for port in range(3)]
    assert shapes == [Shape((None, 2)), Shape(None), Shape(None)]
    assert [shape.rank for shape in shapes] == [2, None, None]
    assert (Shape((None, 2)).elements(), Shape((3, 2)).elements(), Shape(()).elements()) == (None, 6, 1)
    assert (Shape((None, 2, None)).unknown_dims, Shape(()).unknown_dims) == (2, 0)


def test_a_graph_def_comes_back_as_it_was() -> None:
    concrete = tf.function(lambda x: tf.nn.relu(x) + 1.0).get_concrete_function(tf.TensorSpec([None], tf.float32))
    graph_def = concrete.graph.as_graph_def(add_shapes=True)
    graph = Graph.from_graph_def(graph_def, fetches=["Identity"])
    rebuilt = Graph(
        {name: node.replace() for name, node in graph.nodes.items()}, (), (), (), graph.library, graph.versions
    )
    for back in (graph.to_graph_def(), rebuilt.to_graph_def()):
        assert list(back.node) == list(graph_def.node)
        assert (back.library, back.versions) == (graph_def.library, graph_def.versions)


def test_a_name_that_comes_twice_or_names_nothing_is_refused() -> None:
    graph_def = graph_pb2.GraphDef()
    for name in ("a", "b", "b"):
        graph_def.node.add(name=name, op="NoOp")
    with pytest.raises(GraphError, match=r"^Node names must be unique\. Received two nodes named 'b'\.$"):
        Graph.from_graph_def(graph_def)
    del graph_def.node[2]
    with pytest.raises(GraphError, match=r"^The fetch 'c:0' names no node of the graph\.$"):
        Graph.from_graph_def(graph_def, fetches=["a:0", "c:0"])
    with pytest.raises(GraphError, match=r"^The feed 'd' names no node of the graph\.$"):
        Graph.from_graph_def(graph_def, feeds=["d"])
    assert Graph.from_graph_def(graph_def, fetches=["^a"], preserve=["pruned"]).kept == {"a", "pruned"}


def test_refs_are_names_with_an_optional_port() -> None:
    assert parse_ref("a/b") == TensorRef("a/b", 0)
    assert parse_ref("a:12") == TensorRef("a", 12)
    assert parse_ref("scope:x") == TensorRef("scope:x", 0)
    assert [str(TensorRef("a")), str(TensorRef("a", 2))] == ["a", "a:2"]


def test_dtypes_know_their_enum_and_base() -> None:
    for name in ("float32", "bfloat16", "resource", "string", "float32_ref"):
        assert DType.from_enum(DType(name).enum) == name
    assert DType("float32_ref").base == "float32"
    assert DType.from_enum(999) == "type_999"
    assert DType("type_999").enum == 999


def test_state_and_kernels_come_from_tensorflow() -> None:
    def node(op: str) -> Node:
        return Node("n", op)

    assert [is_stateful(node(op)) for op in ("Neg", "AssignVariableOp", "NoSuchOp")] == [False, True, True]
    assert [is_stateful(node(op)) for op in ("AssignAdd", "ScatterSub", "DestroyTemporaryVariable")] == [True] * 3
    assert [can_drop(node(op)) for op in ("Neg", "ReadVariableOp", "Picasso>PackedLookup")] == [True, True, True]
    assert [can_drop(node(op)) for op in ("AssignVariableOp", "RandomUniform", "NoSuchOp")] == [False, False, False]
    assert [can_drop(node(op)) for op in ("AssignAdd", "CheckNumerics", "_InplaceUpdate")] == [False, False, False]
    assert has_kernel("Picasso>PackedLookup", "CPU")
    assert not has_kernel("Picasso>PackedLookup", "TPU")

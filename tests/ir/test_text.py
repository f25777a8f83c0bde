"""The text form: every kind of value survives printing and parsing, and what cannot be read is one sentence."""

import math

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework import graph_pb2

from graph_passes.errors import GraphError
from graph_passes.ir import DType, FunctionRef, Graph, Node, Shape, TensorRef, parse_graph, print_graph, print_node
from tests.support.rewrite import shuffled


def round_trip(value, text: str | None = None):
    """The value of an attribute after printing and parsing; `text` is how it must be printed."""
    line = print_node(Node("n", "NoOp", attrs={"a": value}))
    if text is not None:
        assert line == f"n = NoOp() {{a = {text}}}"
    found = parse_graph(line).nodes["n"]
    assert print_node(found) == line
    through_proto = Graph.from_graph_def(Graph({"n": found}).to_graph_def()).nodes["n"]
    assert print_node(through_proto) == line
    return found.attr("a")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"),
        (-(2**63), "-9223372036854775808"),
        (1.0, "1.0"),
        (0.1, "0.1"),
        (1e-07, "1e-07"),
        (1e16, "1e+16"),
        (-0.0, "-0.0"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (True, "true"),
        (False, "false"),
        (DType("float32"), "float32"),
        (DType("float32_ref"), "float32_ref"),
        (Shape((None, 4)), "<?,4>"),
        (Shape(()), "<>"),
        (Shape(None), "<*>"),
        (Shape((0,)), "<0>"),
        (FunctionRef("body/f_1"), "@body/f_1"),
        ([], "[]"),
        ([1, -2], "[1, -2]"),
        ([1.5, math.inf], "[1.5, inf]"),
        ([True, False], "[true, false]"),
        ([b"x", b""], '["x", ""]'),
        ([DType("int32"), DType("string")], "[int32, string]"),
        ([Shape((2, 3)), Shape(None), Shape(())], "[<2,3>, <*>, <>]"),
        ([FunctionRef("f"), FunctionRef("g")], "[@f, @g]"),
    ],
)
def test_values_of_every_kind_come_back(value, text: str) -> None:
    found = round_trip(value, text)
    assert found == value
    assert type(found) is type(value)
    assert repr(found) == repr(value)  # tells 0.0 from -0.0


def test_nan_comes_back() -> None:
    assert math.isnan(round_trip(math.nan, "nan"))


@pytest.mark.parametrize(
    "value",
    [
        *[b"", b"plain", b'say "x"', b"back\\slash", b'\\"', b"\\", b"line\nbreak\ttab\r", b"\x00\xff\x80"],
        *["naïve ☃".encode(), b"} @ /device:CPU:0 -> <?>", b"a, b = {c}", b"\x85\x0b\x1c", bytes(range(256))],
    ],
)
def test_strings_come_back_byte_for_byte_on_one_line(value: bytes) -> None:
    assert round_trip(value) == value
    line = print_node(Node("n", "NoOp", attrs={"a": [value], "b": value}, device="/device:CPU:0"))
    assert line.isascii()
    assert len(line.splitlines()) == 1
    found = parse_graph(line).nodes["n"]
    assert (found.attr("a"), found.attr("b"), found.device) == ([value], value, "/device:CPU:0")


def test_a_text_attribute_is_printed_as_the_bytes_that_it_becomes() -> None:
    assert round_trip("canonicalize", '"canonicalize"') == b"canonicalize"


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.int32(3), "int32[](3)"),
        (np.array([1, -2], np.int64), "int64[2](1, -2)"),
        (np.array([[1.5], [-0.0]], np.float32), "float32[2,1](1.5, -0.0)"),
        (np.array([math.nan, math.inf, -math.inf], np.float64), "float64[3](nan, inf, -inf)"),
        (np.array([True, False]), "bool[2](True, False)"),
        (np.array([2**64 - 1], np.uint64), "uint64[1](18446744073709551615)"),
        (np.zeros((0, 3), np.float32), "float32[0,3]()"),
        (np.zeros(0, np.int32), "int32[0]()"),
        (np.array([0.1, 1e-40], np.float32), None),
        (np.array([1, 2], np.float16), None),
        (np.array([b"a(b)", b"c"], object), None),
        (np.array([1 + 2j], np.complex64), None),
    ],
)
def test_constants_come_back(array, text: str | None) -> None:
    found = tf.make_ndarray(round_trip(np.asarray(array), text))
    assert found.shape == np.shape(array)
    assert found.dtype == np.asarray(array).dtype
    assert found.tobytes() == np.asarray(array).tobytes() or found.tolist() == np.asarray(array).tolist()


def test_a_constant_of_one_repeated_value_is_printed_whole() -> None:
    proto = tf.make_tensor_proto(7.0, shape=[3])
    assert len(proto.float_val) == 1
    assert "float32[3](7.0, 7.0, 7.0)" in print_node(Node("n", "Const", attrs={"value": proto}))


def test_a_big_constant_is_shown_by_its_hash_which_cannot_be_read_back() -> None:
    node = Node("n", "Const", attrs={"value": np.arange(65, dtype=np.int32), "dtype": DType("int32")})
    text = print_graph(Graph({"n": node}))
    other = Node("n", "Const", attrs={"value": np.arange(1, 66, dtype=np.int32), "dtype": DType("int32")})
    assert "value = int32[65](elided " in text
    assert text != print_graph(Graph({"n": other}))
    with pytest.raises(GraphError, match=r"^Line 2 .*a constant was elided .* print it with full=True"):
        parse_graph(text)
    full = parse_graph(print_graph(Graph({"n": node}), full=True))
    assert tf.make_ndarray(full.nodes["n"].attr("value")).tolist() == list(range(65))


def test_inputs_controls_ports_devices_and_shapes_come_back() -> None:
    text = (
        "graph {feeds = [a], fetches = [b:1, c], preserve = [d]}\n"
        "a = Placeholder() {dtype = float32} @ /job:worker/replica:0/task:1/device:GPU:0 -> <?,4>\n"
        "d = NoOp(^a)\n"
        "b = Split(a, a:2, ^a, ^d) {T = float32, num_split = 2} -> <*>, <2,?>\n"
        "scope/c:x = Neg(b:1)\n"
    )
    graph = parse_graph(text)
    assert print_graph(graph) == text
    assert (graph.feeds, graph.fetches, graph.preserve) == (("a",), ("b:1", "c"), ("d",))
    assert graph.nodes["b"].inputs == (TensorRef("a"), TensorRef("a", 2))
    assert graph.nodes["b"].controls == ("a", "d")
    assert graph.nodes["b"].output_shape(1) == Shape((2, None))
    assert graph.nodes["a"].device == "/job:worker/replica:0/task:1/device:GPU:0"


def test_equal_graphs_print_equally_whatever_the_order_of_nodes() -> None:
    text = "a = NoOp()\nb = NoOp(^a)\nc = NoOp(^a)\nd = NoOp(^c, ^b)\n"
    graph = parse_graph(text)
    assert {print_graph(shuffled(graph, seed)) for seed in range(10)} == {print_graph(graph)}


def test_blank_lines_indentation_and_comments_are_skipped() -> None:
    graph = parse_graph("\n  # a comment\n\n    a = NoOp()\n\t b = NoOp(^a)\n")
    assert list(graph.nodes) == ["a", "b"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("nonsense", "expected `name = Op(inputs) {attributes} @ device -> shapes`"),
        ("a = NoOp() {x = }", "expected a value, found '}'"),
        ("a = Const() {value = string[](base64 AAAA)}", "the base64 text of a constant is damaged"),
        ("a = NoOp() {x = 1", "expected `name = Op"),
        ("a = NoOp() {x 1}", "expected '=' at ' 1}'"),
        ("a = NoOp() {1 = x}", "expected an attribute name, found '1'"),
        ("a = NoOp() {x = [1 2]}", "expected ',' at ' 2]}'"),
        ("a = NoOp() {x = 1} trailing", "expected `name = Op"),
        ("a = Const() {value = float33[](1)}", "float33"),
        ("a = Const() {value = int32[2](1)}", "reshape"),
    ],
)
def test_a_line_that_cannot_be_read_is_named_with_its_number(line: str, reason: str) -> None:
    with pytest.raises(GraphError) as error:
        parse_graph(f"ok = NoOp()\n\n{line}\n")
    message = str(error.value)
    assert message.startswith("Line 3 is not a node of the text form (")
    assert message.endswith(f"): {line}")
    assert reason in message
    assert "\n" not in message


def test_a_second_node_of_one_name_is_named_with_its_line() -> None:
    with pytest.raises(GraphError, match=r"^Line 2 defines node 'a' a second time\.$"):
        parse_graph("a = NoOp()\na = NoOp()\n")


def test_attributes_that_tensorflow_leaves_empty_print_as_empty_lists() -> None:
    graph_def = graph_pb2.GraphDef()
    graph_def.node.add(name="n", op="NoOp").attr["a"].SetInParent()
    assert print_node(Graph.from_graph_def(graph_def).nodes["n"]) == "n = NoOp() {a = []}"

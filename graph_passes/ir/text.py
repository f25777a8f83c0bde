"""The canonical text form of a graph: printing.

One node a line, in topological order with ties by name, so that equal graphs print equally whatever the order of their
nodes:

    graph {feeds = [x], fetches = [out], preserve = []}
    x = Placeholder() {dtype = int32, shape = <?,1>} -> <?,1>
    out = Cast(x, ^init) {DstT = int64, SrcT = int32} @ /device:CPU:0 -> <?,1>

Functions of the library follow in the order of their names, each as a graph by itself:

    function @double(^write) {_XlaMustCompile = true}
    x = _Arg() {T = float32, index = 0}
    write = AssignVariableOp(...) ...
    y = AddV2(x, x) {T = float32}
    out_RetVal = _Retval(y) {T = float32, index = 0}
"""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import tensor_pb2
from tensorflow.python.framework import tensor_util

from graph_passes.errors import GraphError
from graph_passes.ir import attrs as attrs_lib
from graph_passes.ir.functions import control_outputs, function_nodes
from graph_passes.ir.graph import Graph
from graph_passes.ir.node import Node
from graph_passes.ir.types import DType, FunctionRef, Shape

ELIDE_ABOVE = 64
_NOISE = ("_output_shapes",)


def print_graph(graph: Graph, full: bool = False) -> str:
    """The text form of `graph`.

    Args:
        graph: what to print.
        full: print every tensor whole. Otherwise constants of more than 64 elements are shown by their hash, which
            `parse_graph` refuses.
    """
    lines = [_header(graph)] + [print_node(node, full) for node in graph.canonical()]
    for name in sorted(graph.functions):
        lines += _function(graph, name, full)
    return "\n".join(lines) + "\n"


def _function(graph: Graph, name: str, full: bool) -> list[str]:
    function = graph.functions[name]
    try:
        body = graph.with_nodes(function_nodes(function, graph.functions)).canonical()
    except GraphError as error:
        return [f"# function @{name} cannot be shown: {error}"]
    header = f"function @{name}({', '.join('^' + control for control in control_outputs(function))})"
    attrs = [f"{key} = {_value(attrs_lib.from_proto(function.attr[key]), full)}" for key in sorted(function.attr)]
    if attrs:
        header += " {" + ", ".join(attrs) + "}"
    return [header] + [print_node(node, full) for node in body]


def _header(graph: Graph) -> str:
    parts = (("feeds", graph.feeds), ("fetches", graph.fetches), ("preserve", graph.preserve))
    return "graph {" + ", ".join(f"{key} = [{', '.join(sorted(names))}]" for key, names in parts) + "}"


def print_node(node: Node, full: bool = False) -> str:
    """The line of one node."""
    inputs = [str(ref) for ref in node.inputs] + ["^" + name for name in node.controls]
    text = f"{node.name} = {node.op}({', '.join(inputs)})"
    attrs = [f"{key} = {_value(node.attr(key), full)}" for key in node.attr_names() if key not in _NOISE]
    if attrs:
        text += " {" + ", ".join(attrs) + "}"
    if node.device:
        text += f" @ {node.device}"
    shapes = node.attr("_output_shapes")
    if shapes:
        text += " -> " + ", ".join(str(shape) for shape in shapes)
    return text


def _value(value: Any, full: bool) -> str:
    if isinstance(value, Shape):
        return str(value)
    if isinstance(value, (list, tuple)) and not isinstance(value, FunctionRef):
        return "[" + ", ".join(_value(item, full) for item in value) + "]"
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, DType):
        return str(value)
    if isinstance(value, FunctionRef):
        return "@" + value.name
    if isinstance(value, (bytes, str)):
        return _string(value if isinstance(value, bytes) else value.encode())
    if isinstance(value, np.ndarray):
        return _tensor(tf.make_tensor_proto(value), full)
    if isinstance(value, tensor_pb2.TensorProto):
        return _tensor(value, full)
    if isinstance(value, float):
        return _float32(value)  # what an AttrValue holds
    return repr(value.item() if isinstance(value, np.generic) else value)


def _float32(value: float) -> str:
    """The shortest decimal number that is this float32: a value prints equally before and after it was stored."""
    return repr(float(str(np.float32(value))))


def _string(value: bytes) -> str:
    text = value.decode("latin-1").encode("unicode_escape").decode().replace('"', '\\"')
    return f'"{text}"'


def _tensor(tensor: tensor_pb2.TensorProto, full: bool) -> str:
    dtype = DType.from_enum(tensor.dtype)
    dims = "[" + ",".join(str(d.size) for d in tensor.tensor_shape.dim) + "]"
    elements = 1
    for d in tensor.tensor_shape.dim:
        elements *= d.size
    if dtype in _PLAIN and elements <= ELIDE_ABOVE:
        values = tensor_util.MakeNdarray(tensor).ravel().tolist()
        number = _float32 if dtype == "float32" else repr
        return f"{dtype}{dims}({', '.join(number(v) for v in values)})"
    data = tensor.SerializeToString(deterministic=True)
    if full or elements <= ELIDE_ABOVE:
        return f"{dtype}{dims}(base64 {base64.b64encode(data).decode()})"
    return f"{dtype}{dims}(elided {hashlib.sha256(data).hexdigest()[:12]})"


# dtypes whose values Python's repr writes exactly, or `_float32` does.
_PLAIN = frozenset(
    {"float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"}
)

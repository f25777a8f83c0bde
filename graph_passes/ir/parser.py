"""The canonical text form of a graph: parsing (see `graph_passes.ir.text`)."""

from __future__ import annotations

import base64
import math
import re
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.framework import function_pb2, tensor_pb2

from graph_passes.errors import GraphError
from graph_passes.ir.functions import make_function
from graph_passes.ir.graph import Graph
from graph_passes.ir.node import Node, parse_ref
from graph_passes.ir.types import DType, FunctionRef, Shape

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<string>"(?:[^"\\]|\\.)*")
    | (?P<tensor>[a-z][a-z0-9_]*\[[0-9,]*\]\([^()]*\))
    | (?P<shape><[*?0-9,]*>)
    | (?P<number>[-+]?(?:inf|nan|[0-9][0-9.]*(?:e[-+]?[0-9]+)?)(?![\w]))
    | (?P<function>@[^\s,\]}]+)
    | (?P<word>[A-Za-z_][\w>]*)
    | (?P<punct>[\[\],={}])
    )""",
    re.VERBOSE,
)
_NODE = re.compile(
    r"^(?P<name>\S+) = (?P<op>\S+?)\((?P<inputs>[^()]*)\)(?: (?P<attrs>\{.*\}))?"
    r"(?: @ (?P<device>\S+))?(?: -> (?P<shapes>[<>?*0-9, ]+))?$"
)
_FUNCTION = re.compile(r"^function @(?P<name>[^\s(]+)\((?P<controls>[^()]*)\)(?: (?P<attrs>\{.*\}))?$")
_HEADER = re.compile(r"^graph \{feeds = \[(.*?)\], fetches = \[(.*?)\], preserve = \[(.*?)\]\}$")


def parse_graph(text: str) -> Graph:
    """The graph that `text` describes. Blank lines, indentation and lines that start with `#` are skipped.

    Raises:
        GraphError: a line cannot be read; the message names it.
    """
    feeds: list[str] = []
    fetches: list[str] = []
    preserve: list[str] = []
    graph_nodes: dict[str, Node] = {}
    nodes = graph_nodes
    functions: list[tuple[re.Match[str], dict[str, Node]]] = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        if match := _HEADER.match(line):
            feeds, fetches, preserve = ([n.strip() for n in group.split(",") if n.strip()] for group in match.groups())
            continue
        if match := _FUNCTION.match(line):
            nodes = {}
            functions.append((match, nodes))
            continue
        try:
            node = _parse_node(line)
        except (GraphError, ValueError, TypeError) as error:
            raise GraphError(f"Line {number} is not a node of the text form ({error}): {line}") from error
        if node.name in nodes:
            raise GraphError(f"Line {number} defines node '{node.name}' a second time.")
        nodes[node.name] = node
    return Graph(graph_nodes, feeds, fetches, preserve, _library(functions))


def _library(functions: list[tuple[re.Match[str], dict[str, Node]]]) -> function_pb2.FunctionDefLibrary:
    """The library of functions that were read; nodes may call any of them by attribute."""
    library = function_pb2.FunctionDefLibrary()
    for match, nodes in functions:
        attrs = _Attributes(match["attrs"]).parse() if match["attrs"] else {}
        controls = [text.strip().removeprefix("^") for text in match["controls"].split(",") if text.strip()]
        library.function.append(make_function(match["name"], nodes.values(), {}, attrs, controls))
    return library


def _parse_node(line: str) -> Node:
    match = _NODE.match(line)
    if not match:
        raise GraphError("expected `name = Op(inputs) {attributes} @ device -> shapes`")
    inputs = [text.strip() for text in match["inputs"].split(",") if text.strip()]
    attrs = _Attributes(match["attrs"]).parse() if match["attrs"] else {}
    if match["shapes"]:
        attrs["_output_shapes"] = [_shape(text) for text in match["shapes"].split(", ")]
    return Node(
        match["name"],
        match["op"],
        [parse_ref(text) for text in inputs if not text.startswith("^")],
        [text[1:] for text in inputs if text.startswith("^")],
        match["device"] or "",
        attrs,
    )


class _Attributes:
    """Recursive descent over `{key = value, ...}`."""

    def __init__(self, text: str):
        self._text = text
        self._at = 0

    def parse(self) -> dict[str, Any]:
        self._expect("{")
        attrs: dict[str, Any] = {}
        while not self._accept("}"):
            if attrs:
                self._expect(",")
            kind, key = self._next()
            if kind != "word":
                raise GraphError(f"expected an attribute name, found {key!r}")
            self._expect("=")
            attrs[key] = self._value()
        return attrs

    def _value(self) -> Any:
        if self._accept("["):
            items: list[Any] = []
            while not self._accept("]"):
                if items:
                    self._expect(",")
                items.append(self._value())
            return items
        kind, text = self._next()
        if kind not in _VALUE:
            raise GraphError(f"expected a value, found {text!r}")
        return _VALUE[kind](text)

    def _next(self) -> tuple[str, str]:
        match = _TOKEN.match(self._text, self._at)
        if not match or match.lastgroup is None:
            raise GraphError(f"cannot read {self._text[self._at : self._at + 30]!r}")
        self._at = match.end()
        return match.lastgroup, match[match.lastgroup]

    def _accept(self, punctuation: str) -> bool:
        match = _TOKEN.match(self._text, self._at)
        if match and match.lastgroup == "punct" and match["punct"] == punctuation:
            self._at = match.end()
            return True
        return False

    def _expect(self, punctuation: str) -> None:
        if not self._accept(punctuation):
            raise GraphError(f"expected {punctuation!r} at {self._text[self._at : self._at + 30]!r}")


def _shape(text: str) -> Shape:
    inner = text.strip()[1:-1]
    if inner == "*":
        return Shape(None)
    return Shape(tuple(None if d == "?" else int(d) for d in inner.split(",") if d))


def _word(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    return DType(text)


def _number(text: str) -> int | float:
    return int(text) if re.fullmatch(r"[-+]?[0-9]+", text) else float(text)


def _string(text: str) -> bytes:
    return text[1:-1].replace('\\"', '"').encode("latin-1").decode("unicode_escape").encode("latin-1")


def _tensor(text: str) -> tensor_pb2.TensorProto:
    match = re.fullmatch(r"([a-z0-9_]+)\[([0-9,]*)\]\((.*)\)", text, re.DOTALL)
    assert match is not None
    dtype, dims, body = match.groups()
    if body.startswith("elided "):
        raise GraphError("a constant was elided when this was printed; print it with full=True")
    if body.startswith("base64 "):
        try:
            return tensor_pb2.TensorProto.FromString(base64.b64decode(body[len("base64 ") :]))
        except DecodeError as error:
            raise GraphError("the base64 text of a constant is damaged") from error
    values = [_scalar(item.strip()) for item in body.split(",") if item.strip()]
    shape = [int(d) for d in dims.split(",") if d]
    array = np.array(values, dtype=tf.dtypes.as_dtype(dtype).as_numpy_dtype)
    return tf.make_tensor_proto(array.reshape(shape) if values or 0 in shape else array, shape=shape)


def _scalar(text: str) -> Any:
    if text in ("True", "False"):
        return text == "True"
    return {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}.get(text) if text in _SPECIAL else _number(text)


_SPECIAL = ("inf", "-inf", "nan")
_VALUE = {
    "string": _string,
    "tensor": _tensor,
    "shape": _shape,
    "number": _number,
    "function": lambda text: FunctionRef(text[1:]),
    "word": _word,
}

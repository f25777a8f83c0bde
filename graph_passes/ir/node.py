"""One node of a graph: immutable, cheap to make, attributes read on demand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tensorflow.core.framework import node_def_pb2

from graph_passes.ir import attrs as attrs_lib
from graph_passes.ir.types import UNKNOWN_SHAPE, Shape, TensorRef

_OUTPUT_SHAPES = "_output_shapes"
_ABSENT = object()


class Node:
    """A node: what it computes (op, attributes), from what (inputs, controls) and where (device).

    A node that comes from a GraphDef keeps its NodeDef and reads attributes from it only when asked, so that a graph of
    25k nodes is cheap to hold. Nodes never change; `replace` gives a changed copy.

    Attributes:
        name: unique in its graph.
        op: op type, as in OpDef.
        inputs: data inputs, in order.
        controls: names of the control inputs.
        device: full device name, or "".
    """

    __slots__ = ("_attrs", "_parsed", "_predecessors", "_proto", "_uses", "controls", "device", "inputs", "name", "op")

    def __init__(
        self,
        name: str,
        op: str,
        inputs: Iterable[TensorRef] = (),
        controls: Iterable[str] = (),
        device: str = "",
        attrs: Mapping[str, Any] | None = None,
    ):
        self.name = name
        self.op = op
        self.inputs = tuple(inputs)
        self.controls = tuple(dict.fromkeys(controls))
        self.device = device
        self._attrs: Mapping[str, Any] = attrs or {}
        self._proto: node_def_pb2.NodeDef | None = None
        self._start_caches()

    @classmethod
    def from_proto(cls, proto: node_def_pb2.NodeDef) -> Node:
        node = cls.__new__(cls)
        node.name = proto.name
        node.op = proto.op
        node.inputs, node.controls = _parse_inputs(proto.input)
        node.device = proto.device
        node._attrs = {}
        node._proto = proto
        node._start_caches()
        return node

    def _start_caches(self) -> None:
        """What is asked of a node is asked again by every pass that its graph goes through."""
        self._parsed: dict[str, Any] = {}
        self._predecessors: tuple[str, ...] | None = None
        self._uses: list[tuple[str, Use]] | None = None

    def to_proto(self) -> node_def_pb2.NodeDef:
        if self._proto is not None:
            return self._proto
        proto = node_def_pb2.NodeDef(name=self.name, op=self.op, device=self.device)
        proto.input.extend([str(ref) for ref in self.inputs] + ["^" + name for name in self.controls])
        for key in sorted(self._attrs):
            proto.attr[key].CopyFrom(attrs_lib.to_proto(self._attrs[key]))
        return proto

    def attr(self, key: str, default: Any = None) -> Any:
        """The Python value of an attribute (see `graph_passes.ir.attrs`), or `default` when it is absent."""
        if self._proto is not None:
            if key not in self._parsed:
                attr = self._proto.attr
                self._parsed[key] = attrs_lib.from_proto(attr[key]) if key in attr else _ABSENT
            value = self._parsed[key]
            return default if value is _ABSENT else value
        value = self._attrs.get(key, default)
        return attrs_lib.from_proto(value) if type(value).__name__ == "AttrValue" else value

    def attr_names(self) -> list[str]:
        return sorted(self._proto.attr if self._proto is not None else self._attrs)

    def replace(
        self,
        inputs: Iterable[TensorRef] | None = None,
        controls: Iterable[str] | None = None,
        attrs: Mapping[str, Any] | None = None,
    ) -> Node:
        """A copy with other inputs, control inputs or attributes; None keeps what is there."""
        if attrs is None:
            attrs = self.stored_attrs()
        return Node(
            self.name,
            self.op,
            self.inputs if inputs is None else inputs,
            self.controls if controls is None else controls,
            self.device,
            attrs,
        )

    def stored_attrs(self) -> dict[str, Any]:
        """All attributes as they are stored, AttrValues included, so that a copy loses nothing."""
        return dict(self._attrs) if self._proto is None else {key: self._proto.attr[key] for key in self._proto.attr}

    def attrs(self) -> dict[str, Any]:
        """All attributes, as Python values."""
        return {key: self.attr(key) for key in self.attr_names()}

    def output_shape(self, port: int = 0) -> Shape:
        """The inferred static shape of an output; unknown rank when it was not annotated."""
        shapes = self.attr(_OUTPUT_SHAPES)
        return shapes[port] if shapes and port < len(shapes) else UNKNOWN_SHAPE

    def predecessors(self) -> tuple[str, ...]:
        """Names of the nodes that this one waits for, data first, without repetition."""
        if self._predecessors is None:
            self._predecessors = tuple(dict.fromkeys([*[ref.node for ref in self.inputs], *self.controls]))
        return self._predecessors

    def uses(self) -> list[tuple[str, Use]]:
        """What it uses: the producer's name with each use, data first."""
        if self._uses is None:
            self._uses = [(ref.node, Use(self, index)) for index, ref in enumerate(self.inputs)]
            self._uses += [(name, Use(self, CONTROL)) for name in self.controls]
        return self._uses

    def __repr__(self) -> str:
        return f"Node({self.name} = {self.op})"


class Use(NamedTuple):
    """Input number `index` of node `node`; index -1 is a control input."""

    node: Node
    index: int  # type: ignore[assignment]


CONTROL = -1


def _parse_inputs(inputs: Iterable[str]) -> tuple[tuple[TensorRef, ...], tuple[str, ...]]:
    data: list[TensorRef] = []
    controls: list[str] = []
    for text in inputs:
        if text[0] == "^":
            controls.append(text[1:])
        else:
            data.append(parse_ref(text))
    return tuple(data), tuple(controls)


def parse_ref(text: str) -> TensorRef:
    """ "name" or "name:port" to a TensorRef."""
    name, colon, port = text.rpartition(":")
    return TensorRef(name, int(port)) if colon and port.isdigit() else TensorRef(text)


def node_name(text: str) -> str:
    """The node that a feed, a fetch or an input names: "name" of "name", "name:port" and "^name"."""
    return parse_ref(text.removeprefix("^")).node

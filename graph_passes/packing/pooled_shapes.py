"""Shapes of rows that a packed pooled lookup never makes, but gradients ask for: told by the number of ids."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from graph_passes.analysis.tables import GATHERS
from graph_passes.ir import DType, Graph, Mutation, Node, Shape, TensorRef
from graph_passes.rewrite.pooled import PooledLookup

_PER_ID = ("GatherV2", "Cast", "Mul")  # between the gather of distinct rows and the sum


class ServedShape(NamedTuple):
    """The shape of rows, one for each id, that somebody asks for.

    Attributes:
        alike: a tensor outside the chain with as many elements or rows; where `whole`, of the shape of the ids.
        whole: whether all dimensions of `alike` come before the width; else only the first one does.
        width: of a row.
    """

    alike: TensorRef
    whole: bool
    width: int


def served_shapes(graph: Graph, lookup: PooledLookup) -> dict[str, ServedShape]:
    """The Shape nodes that read rows inside a chain, by name."""
    found = {}
    width = lookup.row_shape(graph).elements() or 0
    for part in (lookup.gather, *lookup.inner):
        alike = _as_many_rows(lookup, part)
        if alike is None or not (lookup.in_other_order or graph.shape(alike).rank in (1, 2)):
            continue
        for use in graph.uses_of(TensorRef(part.name)):
            if use.node.op == "Shape" and not use.node.controls and use.node.name not in graph.fed:
                found[use.node.name] = ServedShape(alike, lookup.in_other_order, width)
    return found


def _as_many_rows(lookup: PooledLookup, part: Node) -> TensorRef | None:
    """A tensor outside the chain that is as long as what a part of the chain gives; None where there is none."""
    if lookup.in_other_order:
        source = lookup.ids_source
        return lookup.ids if source is None or source.column >= 0 else source.ref
    if part.op == "SegmentSum":  # of weighted rows; the sum of their weights is as long
        return next((node.inputs[1] for node in (*lookup.inner, lookup.sum) if node.op == "DivNoNan"), None)
    taken = next((node for node in lookup.inner if node.op == "GatherV2"), None)
    if taken is not None and part.op in _PER_ID:
        return taken.inputs[1]
    return lookup.gather.inputs[-1] if part.op in GATHERS or (taken is None and part.op in _PER_ID) else None


def serve_shape(graph: Graph, mutation: Mutation, reader: Node, shape: ServedShape) -> None:
    """Lets a Shape node of rows that go put their shape together from that of another tensor and the width."""
    dtype, device = reader.attr("out_type", DType("int32")), reader.device
    index = DType("int32")
    alike = mutation.unique_name(f"{reader.name}/picasso/ids")

    def add(part: str, op: str, inputs: list[str], attrs: dict[str, Any]) -> str:
        name = mutation.unique_name(f"{reader.name}/picasso/{part}")
        # What a constant waits for ties it to the branch or loop of the ids.
        controls = [alike] if op == "Const" else []
        mutation.add(Node(name, op, [TensorRef(ref) for ref in inputs], controls, device, attrs))
        return name

    def constant(part: str, value: list[int] | int, of: DType) -> str:
        array = np.array(value, str(of))
        return add(part, "Const", [], {"dtype": of, "value": array, "_output_shapes": [Shape(array.shape)]})

    rank = graph.shape(shape.alike).rank
    attrs: dict[str, Any] = {"T": graph.dtype_of(shape.alike), "out_type": dtype, "_output_shapes": [Shape((rank,))]}
    mutation.add(Node(alike, "Shape", [shape.alike], (), device, attrs))
    ids = alike
    if not shape.whole:
        begin, size = constant("begin", [0], index), constant("size", [1], index)
        ids = add("count", "Slice", [alike, begin, size], {"T": dtype, "Index": index, "_output_shapes": [Shape((1,))]})
    parts = [TensorRef(ids), TensorRef(constant("row", [shape.width], dtype)), TensorRef(constant("axis", 0, index))]
    attrs = {"N": 2, "T": dtype, "Tidx": index, "_output_shapes": [reader.output_shape()]}
    mutation.replace(Node(reader.name, "ConcatV2", parts, (), device, attrs))

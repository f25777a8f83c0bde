"""Dimensions that a graph states through the arithmetic on shapes: sharper than TensorFlow's own inference."""

from __future__ import annotations

from graph_passes.analysis.constants import constant, scalar
from graph_passes.ir import Graph, Node, TensorRef

Dims = tuple[int | None, ...]


def stated_dims(graph: Graph, ref: TensorRef) -> Dims | None:
    """The values of a vector that holds a shape; None for an entry that is not known, or when not even the length is.

    Followed are constants, shapes of tensors, slices, casts and concatenations of such, and vectors of single sizes.
    """
    value = constant(graph, ref)
    if value is not None:
        return tuple(int(size) if size >= 0 else None for size in value) if value.ndim == 1 else None
    node = graph.producer(ref)
    found: Dims | None = None
    if node.name not in graph.fed:
        if node.op in ("Shape", "ShapeN"):
            found = graph.shape(node.inputs[ref.port]).dims
        elif node.op in ("Identity", "Cast"):
            found = stated_dims(graph, node.inputs[0])
        elif node.op == "ConcatV2":
            found = _joined([stated_dims(graph, part) for part in node.inputs[:-1]])
        elif node.op == "Slice":
            found = _sliced(graph, stated_dims(graph, node.inputs[0]), node.inputs[1], node.inputs[2])
        elif node.op == "StridedSlice":
            found = _strided(graph, node)
        elif node.op == "Pack" and all(graph.shape(size).rank == 0 for size in node.inputs):
            found = tuple(_size(graph, size) for size in node.inputs)
    if found is not None:
        return found
    length = graph.shape(ref).dims
    return (None,) * length[0] if length is not None and len(length) == 1 and length[0] is not None else None


def _size(graph: Graph, ref: TensorRef) -> int | None:
    """One dimension, where a constant states it."""
    value = scalar(graph, ref)
    return None if value is None or value < 0 else int(value)


def _strided(graph: Graph, node: Node) -> Dims | None:
    """Of a slice such as shape[1:]; one entry alone is no vector."""
    dims = stated_dims(graph, node.inputs[0])
    begin, end, step = (scalar(graph, item) for item in node.inputs[1:])
    if dims is None or begin is None or end is None or step is None or not step:
        return None
    if any(node.attr(f"{name}_mask", 0) for name in ("ellipsis", "new_axis", "shrink_axis")):
        return None
    first = None if node.attr("begin_mask", 0) else int(begin)
    last = None if node.attr("end_mask", 0) else int(end)
    return dims[first : last : int(step)]


def _joined(parts: list[Dims | None]) -> Dims | None:
    dims: Dims = ()
    for part in parts:
        if part is None:
            return None
        dims += part
    return dims


def _sliced(graph: Graph, dims: Dims | None, begin: TensorRef, size: TensorRef) -> Dims | None:
    first, count = scalar(graph, begin), scalar(graph, size)
    if dims is None or first is None or count is None:
        return None
    return dims[int(first) :] if count < 0 else dims[int(first) : int(first + count)]

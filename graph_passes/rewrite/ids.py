"""Where the ids of a lookup come from: through casts, wraps of negative ids, reshapes and slices of a matrix.

Keras 3 writes `ids < 0 ? ids + rows : ids` in front of every gather; every front end casts and reshapes; tabular models
slice one matrix [batch, features] into columns. A packed lookup does all of that while it reads an id.
"""

from __future__ import annotations

from typing import NamedTuple

from graph_passes.analysis.constants import constant, scalar
from graph_passes.ir import DType, Graph, Node, TensorRef
from graph_passes.rewrite.pattern import AnyTensor, MatchFailure, Op, Scalar, match

_INTS = ("int32", "int64")
RESHAPES = frozenset({"Reshape", "ExpandDims", "Squeeze"})


class IdsSource(NamedTuple):
    """A tensor and how to read ids from it.

    Attributes:
        ref: the tensor to read; int32 or int64.
        dtype: its dtype.
        column: first column to read when `ref` is a matrix [B, C]; -1: every element in row-major order.
        columns: how many adjacent columns; 0 when `column` is -1.
        wrap: added to a negative id; 0: none.
        narrow: an int64 id is truncated to int32 before the wrap.
    """

    ref: TensorRef
    dtype: DType
    column: int = -1
    columns: int = 0
    wrap: int = 0
    narrow: bool = False


def trace_ids(graph: Graph, ref: TensorRef, through_layout: bool) -> IdsSource | None:
    """Follows ids upstream as far as a packed lookup can take over what happens to them.

    Args:
        graph: the graph.
        ref: the ids as the gather reads them.
        through_layout: also look through reshapes and column slices. They keep the order of ids but not their shape, so
            the caller must state the shape of the result by itself.

    Returns:
        Where to read from; None when the ids are neither int32 nor int64.
    """
    dtype = graph.dtype_of(ref)
    if dtype not in _INTS:
        return None
    source = IdsSource(ref, dtype)
    while (upstream := _step(graph, source, through_layout)) is not None:
        source = upstream
    return source


def _step(graph: Graph, source: IdsSource, through_layout: bool) -> IdsSource | None:
    node = graph.producer(source.ref)
    if node.name in graph.fed or node.controls:
        return None
    if node.op == "Identity":
        return source._replace(ref=node.inputs[0])
    if node.op == "Cast":
        return _through_cast(node, source)
    if node.op in ("SelectV2", "Select"):
        return _through_wrap(graph, source)
    if not through_layout or source.column >= 0:
        return None
    if node.op in RESHAPES:
        return source._replace(ref=node.inputs[0])
    columns = _columns(graph, node, source.ref.port)
    if columns is None:
        return None
    matrix, first, count = columns
    return source._replace(ref=matrix, column=first, columns=count)


def _through_cast(node: Node, source: IdsSource) -> IdsSource | None:
    if node.attr("SrcT") not in _INTS:
        return None
    narrow = source.narrow or (node.attr("DstT") == "int32" and node.attr("SrcT") == "int64")
    return source._replace(ref=node.inputs[0], dtype=node.attr("SrcT"), narrow=narrow)


# Keras writes this in front of every gather so that -1 means the last row.
_WRAP = Op(
    ("SelectV2", "Select"),
    (
        Op(("Less",), (AnyTensor("ids"), Scalar(value=0))),
        Op(("AddV2", "Add"), (AnyTensor("ids"), Scalar("rows")), commutative=True),
        AnyTensor("ids"),
    ),
)


def _through_wrap(graph: Graph, source: IdsSource) -> IdsSource | None:
    if source.wrap or source.narrow:  # the op narrows first and wraps once
        return None
    found = match(graph, _WRAP, source.ref)
    if isinstance(found, MatchFailure) or found.scalars["rows"] <= 0:
        return None
    if any(node.controls for node in found.nodes.values()):
        return None
    return source._replace(ref=found.tensors["ids"], wrap=int(found.scalars["rows"]))


def _columns(graph: Graph, node: Node, port: int) -> tuple[TensorRef, int, int] | None:
    """(matrix, first column, number of columns) when `node` cuts adjacent columns out of a matrix [B, C]."""
    cut = _CUTS.get(node.op)
    if cut is None:
        return None
    matrix = node.inputs[1 if node.op == "Split" else 0]
    shape = graph.shape(matrix)
    if shape.rank != 2 or shape.dims is None or shape.dims[1] is None:
        return None
    span = cut(graph, node, port, shape.dims[1])
    return None if span is None else (matrix, *span)


def _strided_slice(graph: Graph, node: Node, port: int, width: int) -> tuple[int, int] | None:
    begin, end, strides = (constant(graph, ref) for ref in node.inputs[1:4])
    if begin is None or end is None or strides is None or node.attr("new_axis_mask", 0):
        return None
    ellipsis = node.attr("ellipsis_mask", 0)
    if ellipsis not in (0, 1) or len(begin) != 2 or strides[1] != 1:
        return None
    begins, ends = node.attr("begin_mask", 0), node.attr("end_mask", 0)
    shrink = node.attr("shrink_axis_mask", 0)
    whole_batch = ellipsis == 1 or ((begins & 1 or begin[0] == 0) and ends & 1 and strides[0] == 1)
    if not whole_batch or shrink & 1:
        return None
    first = 0 if begins & 2 and not shrink & 2 else int(begin[1])  # TensorFlow shrinks at `begin`, whatever its mask
    first += width if first < 0 else 0
    if shrink & 2:
        return (first, 1) if 0 <= first < width else None
    last = width if ends & 2 else int(end[1])
    last = min(last + width if last < 0 else last, width)
    return (first, last - first) if 0 <= first < last else None


def _slice(graph: Graph, node: Node, port: int, width: int) -> tuple[int, int] | None:
    begin, size = constant(graph, node.inputs[1]), constant(graph, node.inputs[2])
    if begin is None or size is None or begin[0] != 0 or size[0] != -1:
        return None
    first = int(begin[1])
    count = width - first if size[1] == -1 else int(size[1])
    return (first, count) if count > 0 and first + count <= width else None


def _split(graph: Graph, node: Node, port: int, width: int) -> tuple[int, int] | None:
    parts = node.attr("num_split")
    if scalar(graph, node.inputs[0]) not in (1, -1) or width % parts:
        return None
    return port * (width // parts), width // parts


def _split_v(graph: Graph, node: Node, port: int, width: int) -> tuple[int, int] | None:
    sizes = constant(graph, node.inputs[1])
    if sizes is None or scalar(graph, node.inputs[2]) not in (1, -1) or (sizes < 0).any():
        return None
    return (int(sizes[:port].sum()), int(sizes[port])) if sizes[port] else None


def _unpack(graph: Graph, node: Node, port: int, width: int) -> tuple[int, int] | None:
    return (port, 1) if node.attr("axis", 0) in (1, -1) else None


_CUTS = {"StridedSlice": _strided_slice, "Slice": _slice, "Split": _split, "SplitV": _split_v, "Unpack": _unpack}

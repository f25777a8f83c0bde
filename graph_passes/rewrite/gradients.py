"""Where gradient rows are read: through reshapes and slices, straight from the gradient of a concatenation."""

from __future__ import annotations

from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from graph_passes.analysis.constants import constant, scalar
from graph_passes.analysis.stated_dims import stated_dims
from graph_passes.ir import Graph, Node, Shape, TensorRef, product
from graph_passes.rewrite.ids import RESHAPES

_SPLITS: WeakKeyDictionary[Graph, dict[str, list[int] | None]] = WeakKeyDictionary()


class GradientSource(NamedTuple):
    """A tensor and which of its columns to read.

    Attributes:
        ref: the tensor, seen as a matrix with `pitch` columns.
        first: the first column.
        span: how many columns; 0: the whole tensor, its elements in order.
        pitch: columns of the matrix; 0 when `span` is.
        pool: for ids that were pooled, the row of the matrix that each belongs to: a vector, or a matrix whose column 0
            gives it; None: there is a row for each id.
        combiner: how they were pooled: "sum", "mean" or "sqrtn".
        weights: what each pooled id multiplies its row by, beside that, or bools: whether it has a gradient; None:
            there is nothing such.
        even: whether each row is that of equally many ids, which follow each other; `pool` is None then.
    """

    ref: TensorRef
    first: int = 0
    span: int = 0
    pitch: int = 0
    pool: TensorRef | None = None
    combiner: str = "sum"
    weights: TensorRef | None = None
    even: bool = False

    @property
    def refs(self) -> tuple[TensorRef, ...]:
        """All tensors that are read."""
        return tuple(ref for ref in (self.ref, self.pool, self.weights) if ref is not None)


def trace_gradient(graph: Graph, ref: TensorRef, row: int) -> GradientSource:
    """Follows gradient rows upstream as long as they can be read in place.

    Args:
        graph: the graph.
        ref: the gradient rows, `row` elements for each id.
        row: width of a row of the table.
    """
    source = GradientSource(ref)
    while True:
        node = graph.producer(source.ref)
        if node.name in graph.fed or node.controls:
            return source
        if node.op in RESHAPES or node.op == "Identity":
            source = source._replace(ref=node.inputs[0])
            continue
        cut = _cut(graph, node, source.ref.port)
        if cut is None or cut.span % row or not cut.span:
            return source
        if not source.span:
            source = cut
        elif source.pitch == cut.span:
            source = GradientSource(cut.ref, cut.first + source.first, source.span, cut.pitch)
        else:
            return source


def pooled_rows(graph: Graph, ref: TensorRef, row: int) -> GradientSource:
    """Where rows are read that ids share: as `trace_gradient`, but each from the columns of one row of the matrix."""
    source = trace_gradient(graph, ref, row)
    return source if source.span in (0, row) else GradientSource(ref)


def _cut(graph: Graph, node: Node, port: int) -> GradientSource | None:
    """What a slicing node cuts out of its input."""
    if node.op == "Slice":
        return _slice(graph, node)
    if node.op in ("Split", "SplitV"):
        return _split(graph, node, port)
    if node.op == "Unpack":
        return _unpack(graph, node, port)
    return None


def _columns(shape: Shape, axis: int, ref: TensorRef, first: int, size: int) -> GradientSource | None:
    """`size` entries from `first` on along `axis` of a tensor, all of its other axes."""
    if shape.dims is None or not 0 < axis < len(shape.dims):
        return None
    pitch, inner = product(shape.dims[axis:]), product(shape.dims[axis + 1 :])
    if pitch is None or inner is None:
        return None
    return GradientSource(ref, first * inner, size * inner, pitch)


def _slice(graph: Graph, node: Node) -> GradientSource | None:
    """A Slice along one axis; where it begins is a constant, or an offset that is computed for a concatenation."""
    shape, result = graph.shape(node.inputs[0]), node.output_shape()
    begin, size = constant(graph, node.inputs[1]), constant(graph, node.inputs[2])
    if shape.dims is None:
        return None
    if begin is None:
        return _slice_of_concat(graph, node, shape)
    axes = [i for i, first in enumerate(begin) if first or _is_cut(shape, result, size, i)]
    if len(axes) != 1:
        return None
    axis = axes[0]
    count = int(size[axis]) if size is not None else (result.dims or (None,) * len(shape.dims))[axis]
    extent = shape.dims[axis]
    if count is None or extent is None:
        return None
    return _columns(shape, axis, node.inputs[0], int(begin[axis]), extent - int(begin[axis]) if count < 0 else count)


def _is_cut(shape: Shape, result: Shape, size: np.ndarray | None, axis: int) -> bool:
    """Whether a Slice that begins at 0 may take less than all of an axis."""
    extent = shape.dims[axis] if shape.dims else None
    if size is not None:
        return size[axis] not in (-1, extent)
    kept = result.dims[axis] if result.dims else None
    return axis > 0 and (extent is None or kept is None or kept != extent)


def _slice_of_concat(graph: Graph, node: Node, shape: Shape) -> GradientSource | None:
    """The gradient of a ConcatV2 with an unknown batch: Slice(x, ConcatOffset(axis, shapes)[i], shapes[i])."""
    offsets = graph.producer(node.inputs[1])
    if offsets.op != "ConcatOffset" or offsets.name in graph.fed or shape.dims is None:
        return None
    axis = scalar(graph, offsets.inputs[0])
    if axis is None or node.inputs[2] != offsets.inputs[1 + node.inputs[1].port]:
        return None
    axis = int(axis) % len(shape.dims)
    sizes = [_extent(graph, ref, axis) for ref in offsets.inputs[1 : 2 + node.inputs[1].port]]
    if any(size is None for size in sizes):
        return None
    *before, own = [size for size in sizes if size is not None]
    return _columns(shape, axis, node.inputs[0], sum(before), own)


def _extent(graph: Graph, shape_ref: TensorRef, axis: int) -> int | None:
    """The size along `axis` that a tensor holding a shape states."""
    value = constant(graph, shape_ref)
    if value is not None:
        return int(value[axis])
    node = graph.producer(shape_ref)
    if node.op not in ("Shape", "ShapeN") or node.name in graph.fed:
        return None
    of = node.inputs[shape_ref.port]
    dims, producer = graph.shape(of).dims, graph.producer(of)
    if dims is not None and dims[axis : axis + 1] == (None,) and producer.op == "Reshape":
        dims = stated_dims(graph, producer.inputs[1])
    return None if dims is None or axis >= len(dims) else dims[axis]


def _split(graph: Graph, node: Node, port: int) -> GradientSource | None:
    value, axis_ref = (node.inputs[1], node.inputs[0]) if node.op == "Split" else (node.inputs[0], node.inputs[2])
    shape, axis = graph.shape(value), scalar(graph, axis_ref)
    if axis is None or shape.dims is None:
        return None
    axis = int(axis) % len(shape.dims)
    if node.op == "SplitV":
        known = _SPLITS.setdefault(graph, {})  # each of a thousand parts asks for all of them
        if node.name not in known:
            known[node.name] = _split_sizes(graph, node.inputs[1])
        sizes = known[node.name]
        if sizes is None or any(size < 0 for size in sizes):
            return None
        return _columns(shape, axis, value, sum(sizes[:port]), sizes[port])
    extent = shape.dims[axis]
    if extent is None:
        return None
    part = extent // node.attr("num_split")
    return _columns(shape, axis, value, port * part, part)


def _split_sizes(graph: Graph, ref: TensorRef) -> list[int] | None:
    """The sizes of a SplitV: constants, or one row of the shapes of many tensors side by side.

    The latter is the gradient of a ConcatV2 of more than 16 tensors of unknown length: Squeeze(Slice(Pack(shapes))).
    """
    value = constant(graph, ref)
    if value is not None:
        return [int(size) for size in value]
    squeeze = graph.producer(ref)
    cut = graph.producer(squeeze.inputs[0]) if squeeze.op in RESHAPES else squeeze
    pack = graph.producer(cut.inputs[0]) if cut.op == "Slice" else cut
    if pack.op != "Pack" or pack.attr("axis", 0) != 1 or {squeeze.name, cut.name, pack.name} & graph.fed:
        return None
    begin, size = (constant(graph, item) for item in cut.inputs[1:])
    if begin is None or size is None or begin[1] != 0 or size[0] != 1 or size[1] not in (-1, len(pack.inputs)):
        return None
    sizes = [_extent(graph, shape, int(begin[0])) for shape in pack.inputs]
    return None if None in sizes else [size for size in sizes if size is not None]


def _unpack(graph: Graph, node: Node, port: int) -> GradientSource | None:
    shape = graph.shape(node.inputs[0])
    if shape.dims is None:
        return None
    return _columns(shape, node.attr("axis", 0) % len(shape.dims), node.inputs[0], port, 1)

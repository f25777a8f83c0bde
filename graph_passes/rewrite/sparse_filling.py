"""What `safe_embedding_lookup_sparse` does around a lookup: ids left out, empty rows filled and zeroed later on.

A SparseTensor comes as three tensors: indices [ids, 2], values [ids], dense_shape [2].
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from graph_passes.analysis.constants import constant, scalar
from graph_passes.ir import Graph, Node, TensorRef
from graph_passes.ir.op_defs import can_drop


def sparse_rows(graph: Graph, ref: TensorRef) -> TensorRef:
    """The indices [ids, 2] whose column 0 a tensor is, or the tensor itself."""
    node = graph.producer(ref)
    if node.op != "StridedSlice" or node.name in graph.fed or node.controls:
        return ref
    begin, _, strides = (constant(graph, item) for item in node.inputs[1:])
    masks = [node.attr(f"{name}_mask", 0) for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")]
    first_column = begin is not None and begin.size == 2 and begin[1] == 0 and masks == [1, 1, 0, 0, 2]
    whole = strides is not None and strides.size == 2 and strides[0] == 1
    dims = graph.shape(node.inputs[0]).dims
    return node.inputs[0] if first_column and whole and dims is not None and dims[1:] == (2,) else ref


def filling(graph: Graph, segments: TensorRef, ids: TensorRef) -> tuple[Node, int] | None:
    """The SparseFillEmptyRows that indices and values of a SparseTensor come from, and the row that it fills in."""
    fill = graph.producer(segments)
    if fill.op != "SparseFillEmptyRows" or fill.name in graph.fed or segments.port or fill.controls:
        return None
    default = scalar(graph, fill.inputs[3])
    if ids != TensorRef(fill.name, 1) or default is None or default < 0:
        return None
    return fill, int(default)


def takes_zeros_for_empty_rows(graph: Graph, select: Node, fill: Node) -> bool:
    """Whether a Select takes zeros for rows that SparseFillEmptyRows says had no id."""
    condition = graph.producer(select.inputs[0])
    # The mask of a table of width 1 need not be repeated.
    column = graph.producer(condition.inputs[0]) if condition.op == "Tile" else condition
    if {condition.name, column.name} & graph.fed or not are_zeros(graph, select.inputs[1]):
        return False
    if column.op not in ("Reshape", "ExpandDims") or column.inputs[0] != TensorRef(fill.name, 2):
        return False
    shapes = [graph.shape(ref).dims for ref in (*select.inputs, TensorRef(column.name))]
    if any(dims is None or len(dims) != 2 for dims in shapes):
        return False
    *widths, one = [dims[1] for dims in shapes if dims is not None]
    return one == 1 and widths[0] is not None and len(set(widths)) == 1


def are_zeros(graph: Graph, ref: TensorRef) -> bool:
    """Whether a tensor holds zeros alone, none of them negative."""
    node = graph.producer(ref)
    if node.op == "ZerosLike":
        return node.name not in graph.fed
    value = constant(graph, ref)
    # TensorFlow makes a constant of ZerosLike where the shape is known; the constant waits for what ZerosLike read.
    waits = [graph.nodes[name] for name in node.controls]
    return value is not None and not value.tobytes().strip(b"\0") and all(can_drop(other) for other in waits)


class Kept(NamedTuple):
    """A SparseTensor, and perhaps weights of its values, seen from before some of it was left out.

    Attributes:
        indices: its indices.
        ids: its values.
        weights: of the values; None: there are none.
        negative: whether negative ids were left out.
        weightless: whether ids whose weight is not above 0 were left out.
    """

    indices: TensorRef
    ids: TensorRef
    weights: TensorRef | None
    negative: bool = False
    weightless: bool = False


def before_dropping(graph: Graph, indices: TensorRef, ids: TensorRef, weights: TensorRef | None = None) -> Kept:
    """Looks through the gathers that leave out ids that are negative, and those whose weight is not above 0."""
    kept = Kept(indices, ids, weights)
    while (before := _one_dropping(graph, kept)) is not None:
        kept = before
    return kept


def _one_dropping(graph: Graph, kept: Kept) -> Kept | None:
    """The same before one round of gathers, or None."""
    refs = [ref for ref in (kept.indices, kept.ids, kept.weights) if ref is not None]
    gathers = [graph.producer(ref) for ref in refs]
    if any(node.op != "GatherV2" or node.name in graph.fed or node.controls for node in gathers):
        return None
    places = gathers[0].inputs[1]
    if any(node.inputs[1] != places or scalar(graph, node.inputs[2]) != 0 for node in gathers):
        return None
    indices, ids, *others = [node.inputs[0] for node in gathers]
    weights = others[0] if others else None
    where = graph.producer(places)
    while where.op in ("Reshape", "Squeeze"):
        where = graph.producer(where.inputs[0])
    test = without_ones(graph, where.inputs[0] if where.op == "Where" else TensorRef(where.name))
    if len(test.inputs) != 2 or scalar(graph, test.inputs[1]) != 0 or test.name in graph.fed:
        return None
    if test.op == "GreaterEqual" and test.inputs[0] == ids:
        return Kept(indices, ids, weights, True, kept.weightless)
    if test.op == "Greater" and test.inputs[0] == weights:
        return Kept(indices, ids, weights, kept.negative, True)
    return None


def without_ones(graph: Graph, ref: TensorRef) -> Node:
    """The test of ids, before LogicalAnd with a tensor that holds nothing but true."""
    node = graph.producer(ref)
    if node.op != "LogicalAnd" or node.name in graph.fed:
        return node
    for test, other in (node.inputs, node.inputs[::-1]):
        ones = graph.producer(other)
        value = constant(graph, ones.inputs[1] if ones.op == "Fill" and ones.name not in graph.fed else other)
        if value is not None and value.all():
            return graph.producer(test)
    return node


def weights_before_filling(graph: Graph, fill: Node, weights: TensorRef) -> TensorRef | None:
    """Weights before empty rows were filled, as `fill` fills those of the ids, with an id of weight 1; else None."""
    node = graph.producer(weights)
    if node.op != "SparseFillEmptyRows" or node.name in graph.fed or node.controls or weights.port != 1:
        return None
    same = (node.inputs[0], node.inputs[2]) == (fill.inputs[0], fill.inputs[2])
    return node.inputs[1] if same and scalar(graph, node.inputs[3]) == 1 else None


def before_flattening(graph: Graph, indices: TensorRef, shape: TensorRef) -> tuple[TensorRef, TensorRef]:
    """Indices and dense shape before a SparseReshape that gives a matrix the shape that it has."""
    node = graph.producer(indices)
    before = node.inputs[0] if node.op == "SparseReshape" and node.name not in graph.fed else None
    if before is None or node.controls:
        return indices, shape
    old, new = node.inputs[1:]
    is_matrix = (graph.shape(before).dims or ())[1:] == (2,)
    if not is_matrix or not (_are_equal(graph, old, new) or _states_flat_shape(graph, new, old)):
        return indices, shape
    return (before, old) if shape == TensorRef(node.name, 1) or _are_equal(graph, shape, old) else (indices, shape)


def _are_equal(graph: Graph, one: TensorRef, other: TensorRef) -> bool:
    """Whether two tensors are one, or constants of the same value."""
    values = constant(graph, one), constant(graph, other)
    return one == other or (all(value is not None for value in values) and np.array_equal(*values))  # type: ignore[arg-type]


def _states_flat_shape(graph: Graph, new: TensorRef, old: TensorRef) -> bool:
    """Whether a shape is [product of all dimensions of `old` but the last, the last], of an `old` with two."""
    pack = graph.producer(new)
    if pack.op != "Pack" or len(pack.inputs) != 2:
        return False
    rows, columns = graph.producer(pack.inputs[0]), graph.producer(pack.inputs[1])
    cut = graph.producer(rows.inputs[0]) if rows.op == "Prod" else rows
    sizes = constant(graph, cut.inputs[2]) if cut.op == "Slice" else None
    if sizes is None or sizes.tolist() != [1] or cut.inputs[0] != old or scalar(graph, cut.inputs[1]) != 0:
        return False
    return columns.op == "GatherV2" and columns.inputs[0] == old and scalar(graph, columns.inputs[1]) == 1

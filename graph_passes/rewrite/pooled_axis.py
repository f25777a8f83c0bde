"""Sums and means along axis 1 of the rows [examples, length, width] of ids that come as a matrix [examples, length].

    ResourceGather -> Sum or Mean over axis 1                        GlobalAveragePooling1D, tf.reduce_sum
    ResourceGather -> SelectV2(mask, _, 0) -> Sum                    the same with a mask, in Keras 3
    ResourceGather -> Mul(weights) -> Sum                            the same with a mask, in tf_keras; weights by hand

What a masked mean is divided by, and how, stays in the graph: it works on [examples, width].
"""

from __future__ import annotations

from typing import NamedTuple

from graph_passes.analysis.constants import constant
from graph_passes.ir import Graph, Node, TensorRef
from graph_passes.rewrite.gathered_rows import GatheredRows, gathered_rows
from graph_passes.rewrite.ids import RESHAPES, IdsSource, trace_ids
from graph_passes.rewrite.sparse_filling import are_zeros

AXIS_SUMS = {"Sum": "sum", "Mean": "mean"}
SELECTS = ("Select", "SelectV2")
_TESTS = ("Equal", "NotEqual", "Greater", "GreaterEqual", "Less", "LessEqual")


class AxisSum(NamedTuple):
    """A sum or a mean of rows along axis 1.

    Attributes:
        inner: what stands between the gather and the sum, upstream first.
        rows: where the rows come from, one for each id of a matrix.
        source: how the matrix of ids is read.
        weights: of the ids, of the dtype of the rows, or bools; None: there are none.
    """

    inner: tuple[Node, ...]
    rows: GatheredRows
    source: IdsSource
    weights: TensorRef | None


def axis_sum(graph: Graph, node: Node) -> AxisSum | None:
    """What a Sum or Mean sums, when that is rows of a table along axis 1 of a matrix of ids."""
    if node.name in graph.fed or node.attr("keep_dims", False) or not reduces_axis_1(graph, node):
        return None
    summed = graph.producer(node.inputs[0])
    candidates = [(node.inputs[0], None), *rows_and_weights(graph, summed)]
    found = [(rows, column) for ref, column in candidates if (rows := gathered_rows(graph, ref)) is not None]
    if not found:
        return None
    rows, column = found[0]
    source = _matrix_of(graph, rows.ids)
    if source is None or any(part.op == "Cast" for part in rows.inner) or graph.shape(rows.ids).rank != 2:
        return None
    if column is None:
        return AxisSum(rows.inner, rows, source, None)
    divides_products = node.op == "Mean" and summed.op == "Mul"  # by how many there are, not by the sum of the weights
    if divides_products or not is_for_each(graph, column, rows.ids):
        return None
    return AxisSum((*rows.inner, summed), rows, source, before_layout(graph, column))


def reduces_axis_1(graph: Graph, node: Node) -> bool:
    """Whether a reduction takes axis 1 of three."""
    axes = constant(graph, node.inputs[1])
    return axes is not None and axes.size == 1 and axes.item() in (1, -2) and graph.shape(node.inputs[0]).rank == 3


def rows_and_weights(graph: Graph, product: Node) -> list[tuple[TensorRef, TensorRef]]:
    """What may be the rows [examples, length, width] and the column [examples, length, 1] of a Mul or a Select."""
    if product.name in graph.fed or product.controls:
        return []
    if product.op in SELECTS:
        column, rows, zeros = product.inputs
        fits = is_column(graph, column) and are_zeros(graph, zeros) and graph.shape(zeros).rank in (0, 3)
        return [(rows, column)] if fits and product.output_shape().dims == graph.shape(rows).dims else []
    if product.op != "Mul":
        return []
    pairs = (product.inputs, product.inputs[::-1])
    return [(rows, column) for rows, column in pairs if graph.shape(rows).rank == 3 and is_column(graph, column)]


def is_column(graph: Graph, ref: TensorRef) -> bool:
    """Whether a tensor has the shape [examples, length, 1]."""
    dims = graph.shape(ref).dims
    return dims is not None and len(dims) == 3 and dims[2] == 1


def is_for_each(graph: Graph, column: TensorRef, ids: TensorRef) -> bool:
    """Whether a column [examples, length, 1] has an element for each id, rather than being repeated.

    Where only the number of examples is not known it counts as such; the packed op then looks.
    """
    if _origin(graph, column) == _origin(graph, ids):
        return True
    dims, matrix = graph.shape(column).dims, graph.shape(ids).dims
    if dims is None or matrix is None or len(matrix) != 2 or dims[1] is None or dims[1] != matrix[1]:
        return False
    if dims[0] == 1:  # repeated for all examples, unless there is but one
        return matrix[0] == 1
    return dims[0] is None or matrix[0] is None or dims[0] == matrix[0]


def before_layout(graph: Graph, ref: TensorRef) -> TensorRef:
    """A tensor before it was only laid out in another shape."""
    node = graph.producer(ref)
    while not node.controls and node.name not in graph.fed and (node.op in RESHAPES or _adds_axes(graph, node)):
        ref = node.inputs[0]
        node = graph.producer(ref)
    return ref


def _adds_axes(graph: Graph, node: Node) -> bool:
    """Whether a node is a StridedSlice that cuts nothing off, such as x[..., tf.newaxis]."""
    strides = constant(graph, node.inputs[3]) if node.op == "StridedSlice" else None
    if strides is None or node.attr("shrink_axis_mask", 0):
        return False
    added = node.attr("ellipsis_mask", 0) | node.attr("new_axis_mask", 0)
    whole = node.attr("begin_mask", 0) & node.attr("end_mask", 0)
    return all(added >> i & 1 or (whole >> i & 1 and stride == 1) for i, stride in enumerate(strides))


def _origin(graph: Graph, ref: TensorRef) -> TensorRef:
    """The tensor that one with as many elements is computed from, element by element: casts, tests against a number."""
    while True:
        ref = before_layout(graph, ref)
        source = trace_ids(graph, ref, through_layout=False)
        if source is not None and source.ref != ref:
            ref = source.ref
            continue
        node = graph.producer(ref)
        if node.name in graph.fed:
            return ref
        if node.op in ("Cast", "Identity", "LogicalNot"):
            ref = node.inputs[0]
        elif node.op in _TESTS and any(graph.shape(item).dims == () for item in node.inputs):
            ref = next((item for item in node.inputs if graph.shape(item).dims != ()), node.inputs[0])
        else:
            return ref


def _matrix_of(graph: Graph, ids: TensorRef) -> IdsSource | None:
    """How a matrix of ids is read: as columns of another one, where it is cut out of that."""
    cut = trace_ids(graph, ids, through_layout=True)
    length = (graph.shape(ids).dims or (None, None))[1]
    if cut is not None and length is not None and cut.columns == length and graph.shape(cut.ref).rank == 2:
        return cut
    return trace_ids(graph, ids, through_layout=False)

"""Gradients of sums along axis 1: all ids of an example share its row, times their weights.

Reshape(gradient, [examples, 1, width]) -> Tile or BroadcastTo -> Mul(weights) or SelectV2(mask, _, 0)
"""

from __future__ import annotations

from graph_passes.analysis.constants import constant, scalar
from graph_passes.ir import Graph, Node, TensorRef
from graph_passes.rewrite.gradients import GradientSource, pooled_rows
from graph_passes.rewrite.pooled_axis import before_layout, is_column, is_for_each, rows_and_weights


def axis_gradient(graph: Graph, ref: TensorRef, row: int, ids: TensorRef) -> GradientSource | None:
    """Where the gradient of sums along axis 1 is read; None for any other gradient.

    Args:
        graph: the graph.
        ref: the gradient rows, one for each id.
        row: width of the table's rows.
        ids: the ids, in any layout.
    """
    ref = _before_sum(graph, ref, ids)
    for rows, column in [(ref, None), *rows_and_weights(graph, graph.producer(ref))]:
        shared = _shared(graph, graph.producer(before_layout(graph, rows)), row)
        if shared is None or (column is not None and not is_for_each(graph, column, ids)):
            continue
        weights = None if column is None else before_layout(graph, column)
        return pooled_rows(graph, shared, row)._replace(even=True, weights=weights)
    return None


def _before_sum(graph: Graph, ref: TensorRef, ids: TensorRef) -> TensorRef:
    """A gradient before it was summed over the dimensions that were repeated, where none was, and reshaped."""
    ref = before_layout(graph, ref)
    node = graph.producer(ref)
    repeated = graph.producer(node.inputs[1]) if node.op == "Sum" and node.name not in graph.fed else None
    if repeated is None or repeated.op != "BroadcastGradientArgs" or node.controls:
        return ref
    shapes = [graph.producer(shape) for shape in repeated.inputs]
    if any(shape.op != "Shape" or shape.name in graph.fed for shape in shapes):
        return ref
    # Rows of a table and a column with a number for each of them: only the column was repeated.
    own, other = (shapes[node.inputs[1].port].inputs[0], shapes[1 - node.inputs[1].port].inputs[0])
    summed = graph.shape(node.inputs[0]).dims
    width = (graph.shape(own).dims or (None,))[-1]
    if not is_column(graph, other) or width is None or summed is None or summed[-1] != width:
        return ref
    return before_layout(graph, node.inputs[0]) if is_for_each(graph, other, ids) else ref


def _shared(graph: Graph, node: Node, row: int) -> TensorRef | None:
    """The rows [examples, width] that a Tile or BroadcastTo repeats for all ids of each example."""
    if node.op not in ("Tile", "BroadcastTo") or node.name in graph.fed or node.controls:
        return None
    if (node.output_shape().dims or ())[2:] != (row,) or not _has_one_for_each_example(graph, node.inputs[0], row):
        return None
    multiples = constant(graph, node.inputs[1]) if node.op == "Tile" else None
    if node.op == "Tile" and (multiples is None or multiples[[0, 2]].tolist() != [1, 1]):
        return None
    return before_layout(graph, node.inputs[0])


def _has_one_for_each_example(graph: Graph, ref: TensorRef, row: int) -> bool:
    """Whether a tensor has the shape [examples, 1, width]."""
    dims = graph.shape(ref).dims
    if dims is not None and len(dims) == 3 and dims[1:] == (1, row):
        return True
    node = graph.producer(ref)
    if node.op != "Reshape" or node.name in graph.fed:
        return False
    # The gradient of a Sum states the shape of what was summed, with a 1 in the place of axis 1.
    stitch = graph.producer(node.inputs[1])
    if stitch.op != "DynamicStitch" or stitch.name in graph.fed or len(stitch.inputs) != 4:
        return False
    places, summed = (constant(graph, item) for item in stitch.inputs[:2])
    if places is None or summed is None or places.tolist() != [0, 1, 2] or summed.size != 1 or summed.item() != 1:
        return False
    shape = graph.producer(stitch.inputs[2])
    dims = graph.shape(shape.inputs[0]).dims if shape.op == "Shape" and shape.name not in graph.fed else None
    return scalar(graph, stitch.inputs[3]) == 1 and dims is not None and len(dims) == 3 and dims[2] == row

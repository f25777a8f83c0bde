"""Gradients of sums of weighted rows: each id takes the row that it went into, times its weight."""

from __future__ import annotations

from graph_passes.analysis.constants import scalar
from graph_passes.ir import Graph, Node, TensorRef
from graph_passes.rewrite.gradients import GradientSource, pooled_rows
from graph_passes.rewrite.ids import RESHAPES
from graph_passes.rewrite.pooled_gradients import before_filling
from graph_passes.rewrite.pooled_weights import before_cast, weights_of_column
from graph_passes.rewrite.sparse_filling import sparse_rows
from graph_passes.rewrite.update_ids import UpdateIds


def weighted_gradient(
    graph: Graph, ref: TensorRef, row: int, ids: UpdateIds | None = None
) -> tuple[GradientSource, UpdateIds | None] | None:
    """Where the gradient of a sum of weighted rows is read, and for which ids.

    Args:
        graph: the graph.
        ref: the gradient rows, one for each id.
        row: width of the table's rows.
        ids: the ids, not joined, when those from before empty rows were filled will do.

    Returns:
        The gradient, one row for each output row; and the ids from before empty rows were filled, where there are such
        and no id was left out for its weight. None for any other gradient.
    """
    found = _gathered(graph, graph.producer(before_sum(graph, ref)))
    if found is None:
        return None
    weights, taken = found
    gradient, before = before_sum(graph, taken.inputs[0]), None
    pool = sparse_rows(graph, before_cast(graph, taken.inputs[1]))
    filled = None if ids is None else before_filling(graph, gradient, pool, ids.ref, weights)
    if filled is not None and filled.weights is not None:
        gradient, pool, weights = filled.gradient, filled.segments, filled.weights
        before = filled.update_ids(graph)
    return pooled_rows(graph, gradient, row)._replace(pool=pool, weights=weights), before


def _gathered(graph: Graph, product: Node) -> tuple[TensorRef, Node] | None:
    """The weights and the GatherV2 of rows that a Mul multiplies."""
    if product.op != "Mul" or product.name in graph.fed or product.controls:
        return None
    for one, other in (product.inputs, product.inputs[::-1]):
        weights, taken = weights_of_column(graph, one), graph.producer(other)
        if weights is None or taken.op != "GatherV2" or taken.name in graph.fed or taken.controls:
            continue
        if not taken.attr("batch_dims", 0) and scalar(graph, taken.inputs[2]) == 0:
            return weights, taken
    return None


def before_sum(graph: Graph, ref: TensorRef) -> TensorRef:
    """A gradient before it was summed over the dimensions that were repeated, where none was, and reshaped."""
    node = graph.producer(ref)
    while node.op in RESHAPES and node.name not in graph.fed and not node.controls:
        ref = node.inputs[0]
        node = graph.producer(ref)
    repeated = graph.producer(node.inputs[1]) if node.op == "Sum" and node.name not in graph.fed else None
    if repeated is None or repeated.op != "BroadcastGradientArgs" or node.inputs[1].port or node.controls:
        return ref
    shapes = [graph.producer(shape) for shape in repeated.inputs]
    if any(shape.op != "Shape" or shape.name in graph.fed for shape in shapes):
        return ref
    # Rows of a table and a column with a number for each of them: only the column was repeated.
    own, column, summed = (graph.shape(item).dims for item in (*(s.inputs[0] for s in shapes), node.inputs[0]))
    if own is None or column is None or len(own) != 2 or own[1] is None or column != (own[0], 1):
        return ref
    return node.inputs[0] if summed is not None and summed[1:] == own[1:] else ref

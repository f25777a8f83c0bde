"""Where gradient rows are read, one for each id: in place, or where several ids share them."""

from __future__ import annotations

from graph_passes.analysis.constants import scalar
from graph_passes.ir import Graph, TensorRef
from graph_passes.rewrite.axis_gradients import shared_rows
from graph_passes.rewrite.gradients import GradientSource, trace_gradient


def id_gradient(graph: Graph, ref: TensorRef, row: int, ids: TensorRef, may_pool: bool) -> GradientSource:
    """Where the gradient rows of some ids are read.

    Args:
        graph: the graph.
        ref: the gradient rows, one for each id.
        row: width of the table's rows.
        ids: the ids, in any layout.
        may_pool: whether a row may be told by its number in another tensor.
    """
    if may_pool:
        found = shared_rows(graph, ref, row, ids) or stitched_gradient(graph, ref, row)
        if found is not None:
            return found
    return trace_gradient(graph, ref, row)


def stitched_gradient(graph: Graph, ref: TensorRef, row: int) -> GradientSource | None:
    """Where the gradient of one of the shards is read whose rows were stitched together; None for any other.

    Args:
        graph: the graph.
        ref: the gradient rows, one for each id of the shard.
        row: width of the table's rows.
    """
    node = graph.producer(ref)
    if node.op != "GatherV2" or node.name in graph.fed or node.controls or node.attr("batch_dims", 0):
        return None
    # DynamicPartition gives places that are in range.
    gradient, places, axis = node.inputs
    if scalar(graph, axis) != 0 or graph.producer(places).op != "DynamicPartition":
        return None
    dims = graph.shape(gradient).dims
    if dims is None or len(dims) != 2 or dims[1] != row:
        return None
    rows = trace_gradient(graph, gradient, row)
    if rows.span not in (0, row):
        rows = GradientSource(gradient)
    return rows._replace(pool=places)

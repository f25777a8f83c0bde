"""Where gradient rows are read, one for each id: in place, or where several ids share them."""

from __future__ import annotations

from graph_passes.analysis.constants import scalar
from graph_passes.ir import Graph, TensorRef
from graph_passes.rewrite.axis_gradients import axis_gradient
from graph_passes.rewrite.gradients import GradientSource, pooled_rows, trace_gradient
from graph_passes.rewrite.ragged_gradients import ragged_gradient
from graph_passes.rewrite.weighted_gradients import weighted_gradient


def id_gradient(graph: Graph, ref: TensorRef, row: int, ids: TensorRef, may_pool: bool) -> GradientSource:
    """Where the gradient rows of some ids are read.

    Args:
        graph: the graph.
        ref: the gradient rows, one for each id.
        row: width of the table's rows.
        ids: the ids, in any layout.
        may_pool: whether a row may be told by its number in another tensor.
    """
    found = _shared_rows(graph, ref, row, ids) if may_pool else None
    return trace_gradient(graph, ref, row) if found is None else found


def _shared_rows(graph: Graph, ref: TensorRef, row: int, ids: TensorRef) -> GradientSource | None:
    """With weights, in ragged rows, along axis 1, or for one of several shards; None: ids share no rows."""
    weighted = weighted_gradient(graph, ref, row)
    if weighted is not None:
        return weighted[0]
    found = ragged_gradient(graph, ref, row) or axis_gradient(graph, ref, row, ids)
    return found or stitched_gradient(graph, ref, row)


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
    return pooled_rows(graph, gradient, row)._replace(pool=places)

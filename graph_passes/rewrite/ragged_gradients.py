"""Gradients of sums of the rows of ragged ids: each id takes the row that it went into, times its weight.

GatherV2(gradient, Maximum(segments, 0)) -> SelectV2(segments >= 0, _, 0) -> Mul(weights)
"""

from __future__ import annotations

from graph_passes.analysis.constants import scalar
from graph_passes.ir import Graph, Node, TensorRef
from graph_passes.rewrite.gradients import GradientSource, pooled_rows
from graph_passes.rewrite.ids import RESHAPES
from graph_passes.rewrite.pooled_ragged import column_of_weights, factors, row_splits
from graph_passes.rewrite.sparse_filling import are_zeros, without_ones
from graph_passes.rewrite.weighted_gradients import before_sum


def ragged_gradient(graph: Graph, ref: TensorRef, row: int) -> GradientSource | None:
    """Where the gradient of sums of the rows of ragged ids is read; None for any other gradient."""
    ref = before_sum(graph, ref)
    for rows, column in ((ref, None), *factors(graph, graph.producer(ref))):
        weights = None if column is None else column_of_weights(graph, column)
        taken = _taken(graph, graph.producer(rows)) if column is None or weights is not None else None
        if taken is None:
            continue
        gradient, segments = taken
        return pooled_rows(graph, gradient, row)._replace(pool=segments, weights=weights)
    return None


def _taken(graph: Graph, select: Node) -> tuple[TensorRef, TensorRef] | None:
    """The gradient and the segment ids whose rows of it are taken, zeros for negative ones: there are none."""
    if select.op not in ("Select", "SelectV2") or select.name in graph.fed or select.controls:
        return None
    taken = graph.producer(select.inputs[1])
    if taken.op != "GatherV2" or taken.name in graph.fed or taken.controls or scalar(graph, taken.inputs[2]) != 0:
        return None
    places = graph.producer(taken.inputs[1])
    if places.op != "Maximum" or places.name in graph.fed or not are_zeros(graph, places.inputs[1]):
        return None
    segments = places.inputs[0]
    test = without_ones(graph, select.inputs[0])
    while test.op in RESHAPES and test.name not in graph.fed:
        test = graph.producer(test.inputs[0])
    if test.op != "GreaterEqual" or test.inputs[0] != segments or scalar(graph, test.inputs[1]) != 0:
        return None
    is_ragged = test.name not in graph.fed and row_splits(graph, segments) is not None
    return (taken.inputs[0], segments) if is_ragged else None

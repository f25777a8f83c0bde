"""Gradients of pooled lookups: read where the result's gradient is, and not as rows of distinct ids."""

from __future__ import annotations

from typing import NamedTuple

from graph_passes.ir import Graph, Node, TensorRef
from graph_passes.rewrite.gradients import GradientSource, pooled_rows
from graph_passes.rewrite.ids import trace_ids
from graph_passes.rewrite.pooled import COMBINERS
from graph_passes.rewrite.sparse_filling import (
    before_dropping,
    before_flattening,
    filling,
    sparse_rows,
    takes_zeros_for_empty_rows,
    weights_before_filling,
)
from graph_passes.rewrite.update_ids import UpdateIds

POOLING_GRADIENTS = {f"{op}Grad": combiner for op, combiner in COMBINERS.items()}
"""Ops that give the gradient of the distinct rows, each with the combiner."""

PACKET = 8  # elements that TensorFlow's kernels do at once, at most: rows of whole packets may come in any order


def pooled_gradient(
    graph: Graph, node: Node, ids: UpdateIds, row: int, through_filling: bool
) -> tuple[GradientSource, UpdateIds | None]:
    """Where the gradient of a pooled lookup is read, and for which ids.

    Args:
        graph: the graph.
        node: one of `POOLING_GRADIENTS`.
        ids: those whose distinct rows it gives, not joined.
        row: width of the table's rows.
        through_filling: whether ids from before SparseFillEmptyRows will do, which come in another order.

    Returns:
        The gradient, one row for each output row; and the ids from before empty rows were filled, where there are such.
    """
    gradient, pool, before = node.inputs[0], sparse_rows(graph, node.inputs[2]), None
    found = before_filling(graph, gradient, pool, ids.ref) if through_filling else None
    if found is not None:
        gradient, pool = found.gradient, found.segments
        before = found.update_ids(graph)
    return pooled_rows(graph, gradient, row)._replace(pool=pool, combiner=POOLING_GRADIENTS[node.op]), before


class BeforeFilling(NamedTuple):
    """The gradient of a pooled lookup, seen from before its empty rows were filled.

    Attributes:
        gradient: of the result, not set to zero for empty rows.
        segments: the row of each id, as a SparseTensor's indices.
        ids: row numbers; negative ones do not count.
        fill: the row that stands for what has no id.
        weights: of the ids; None: there are none.
    """

    gradient: TensorRef
    segments: TensorRef
    ids: TensorRef
    fill: int
    weights: TensorRef | None = None

    def update_ids(self, graph: Graph) -> UpdateIds:
        """The ids as an update takes them."""
        source = trace_ids(graph, self.ids, through_layout=True)
        assert source is not None, "SparseFillEmptyRows gives ids of the dtype that it takes"
        return UpdateIds((source,), False, self.ids, self.fill)


def before_filling(
    graph: Graph, gradient: TensorRef, segments: TensorRef, ids: TensorRef, weights: TensorRef | None = None
) -> BeforeFilling | None:
    """Looks through the Select of zeros and the SparseFillEmptyRows that a safe lookup's gradient comes with.

    Args:
        graph: the graph.
        gradient: of the sums, [rows, width].
        segments: indices of the SparseTensor that was summed.
        ids: its values.
        weights: of the ids; None: there are none.
    """
    select, found = graph.producer(gradient), filling(graph, segments, ids)
    if found is None or select.op not in ("Select", "SelectV2") or select.name in graph.fed or select.controls:
        return None
    fill, default = found
    if not takes_zeros_for_empty_rows(graph, select, fill):
        return None
    given = None if weights is None else weights_before_filling(graph, fill, weights)
    kept = before_dropping(graph, fill.inputs[0], fill.inputs[1], given)
    if not kept.negative or kept.weightless or (given is None) != (weights is None):
        return None
    indices, _ = before_flattening(graph, kept.indices, fill.inputs[2])
    return BeforeFilling(select.inputs[2], indices, kept.ids, default, kept.weights)

"""Gradients of pooled lookups: read where the result's gradient is, and not as rows of distinct ids."""

from __future__ import annotations

from typing import NamedTuple

from graph_passes.ir import Graph, Node, TensorRef
from graph_passes.rewrite.gradients import GradientSource, trace_gradient
from graph_passes.rewrite.ids import trace_ids
from graph_passes.rewrite.pooled import (
    COMBINERS,
    before_dropping,
    before_flattening,
    filling,
    sparse_rows,
    takes_zeros_for_empty_rows,
)
from graph_passes.rewrite.update_ids import UpdateIds

POOLING_GRADIENTS = {f"{op}Grad": combiner for op, combiner in COMBINERS.items()}
"""Ops that give the gradient of the distinct rows, each with the combiner."""

_PACKET = 8  # elements that TensorFlow's kernels do at once, at most: rows of whole packets may come in any order


def pooled_gradient(graph: Graph, node: Node, ids: UpdateIds, row: int) -> tuple[GradientSource, UpdateIds | None]:
    """Where the gradient of a pooled lookup is read, and for which ids.

    Args:
        graph: the graph.
        node: one of `POOLING_GRADIENTS`.
        ids: those whose distinct rows it gives, not joined.
        row: width of the table's rows.

    Returns:
        The gradient, one row for each output row; and the ids from before empty rows were filled, where there are such.
    """
    gradient, pool, before = node.inputs[0], sparse_rows(graph, node.inputs[2]), None
    found = _before_filling(graph, gradient, pool, ids.ref) if row % _PACKET == 0 else None
    if found is not None:
        gradient, pool = found.gradient, found.segments
        source = trace_ids(graph, found.ids, through_layout=True)
        assert source is not None, "SparseFillEmptyRows gives ids of the dtype that it takes"
        before = UpdateIds((source,), False, found.ids, found.fill)
    rows = trace_gradient(graph, gradient, row)
    if rows.span not in (0, row):
        rows = GradientSource(gradient)
    return rows._replace(pool=pool, combiner=POOLING_GRADIENTS[node.op]), before


class _BeforeFilling(NamedTuple):
    """The gradient of a pooled lookup, seen from before its empty rows were filled.

    Attributes:
        gradient: of the result, not set to zero for empty rows.
        segments: the row of each id, as a SparseTensor's indices.
        ids: row numbers; negative ones do not count.
        fill: the row that stands for what has no id.
    """

    gradient: TensorRef
    segments: TensorRef
    ids: TensorRef
    fill: int


def _before_filling(graph: Graph, gradient: TensorRef, segments: TensorRef, ids: TensorRef) -> _BeforeFilling | None:
    """Looks through the Select of zeros and the SparseFillEmptyRows that a safe lookup's gradient comes with.

    Args:
        graph: the graph.
        gradient: of the sums, [rows, width].
        segments: indices of the SparseTensor that was summed.
        ids: its values.
    """
    select, found = graph.producer(gradient), filling(graph, segments, ids)
    if found is None or select.op not in ("Select", "SelectV2") or select.name in graph.fed or select.controls:
        return None
    fill, default = found
    if not takes_zeros_for_empty_rows(graph, select, fill):
        return None
    indices, kept, drop = before_dropping(graph, fill.inputs[0], fill.inputs[1])
    if not drop:
        return None
    indices, _ = before_flattening(graph, indices, fill.inputs[2])
    return _BeforeFilling(select.inputs[2], indices, kept, default)

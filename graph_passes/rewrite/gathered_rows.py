"""Rows of a table, one for each id: gathered at once, or gathered for the distinct ids and then repeated."""

from __future__ import annotations

from typing import NamedTuple

from graph_passes.analysis.constants import scalar
from graph_passes.analysis.tables import GATHERS
from graph_passes.ir import Graph, Node, TensorRef

HALF_TYPES = ("float16", "bfloat16")


class GatheredRows(NamedTuple):
    """Where rows come from.

    Attributes:
        gather: one of `GATHERS`, or the ReadVariableOp of the whole table.
        ids: row numbers.
        inner: what stands between the gather and the rows, upstream first.
    """

    gather: Node
    ids: TensorRef
    inner: tuple[Node, ...] = ()


def ids_of_places(graph: Graph, gather: Node, places: TensorRef) -> TensorRef | None:
    """The ids of rows that are taken at `places` of what `gather` gives: distinct ids' rows, or the whole table."""
    if gather.name in graph.fed:
        return None
    if gather.op == "ReadVariableOp":
        return places
    unique = graph.producer(places)
    if gather.op not in GATHERS or gather.attr("batch_dims", 0) or unique.op not in ("Unique", "UniqueV2"):
        return None
    if gather.inputs[-1] != TensorRef(unique.name) or places != TensorRef(unique.name, 1):
        return None
    return None if unique.name in graph.fed else unique.inputs[0]


def gathered_rows(graph: Graph, ref: TensorRef) -> GatheredRows | None:
    """Where a tensor with a row for each id comes from; None when it is not read from a variable in that way."""
    node = graph.producer(ref)
    if node.name in graph.fed:
        return None
    if node.op == "Cast":
        if node.attr("SrcT") not in HALF_TYPES or node.attr("DstT") != "float32":
            return None  # any other cast may change a value
        found = gathered_rows(graph, node.inputs[0])
        return None if found is None else found._replace(inner=(*found.inner, node))
    if node.op in GATHERS:
        return None if node.attr("batch_dims", 0) else GatheredRows(node, node.inputs[-1])
    if node.op != "GatherV2" or node.attr("batch_dims", 0) or scalar(graph, node.inputs[2]) != 0:
        return None
    gather = graph.producer(node.inputs[0])
    ids = ids_of_places(graph, gather, node.inputs[1])
    return None if ids is None else GatheredRows(gather, ids, (node,))

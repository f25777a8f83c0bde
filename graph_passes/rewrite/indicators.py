"""Indicator columns: how often each id is among the ids of an example, as feature columns compute it."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from graph_passes.analysis.constants import constant, scalar
from graph_passes.ir import Graph, Node, TensorRef


class Indicator(NamedTuple):
    """A SparseToDense, a OneHot and a Sum that count the ids of a sparse feature.

    Attributes:
        nodes: the three, in this order.
        indices: of the feature, [ids, 2].
        ids: values of the feature, [ids].
        shape: of the feature, [2].
        depth: how many ids are counted, from 0 on.
    """

    nodes: tuple[Node, Node, Node]
    indices: TensorRef
    ids: TensorRef
    shape: TensorRef
    depth: int

    @property
    def sum(self) -> Node:
        return self.nodes[2]


def find_indicators(graph: Graph) -> list[Indicator]:
    """All indicators, in the order of the names of their sums."""
    sums = sorted(graph.of("Sum") if graph.of("OneHot") else [], key=lambda node: node.name)
    return [found for node in sums if (found := _indicator(graph, node)) is not None]


def _indicator(graph: Graph, node: Node) -> Indicator | None:
    one_hot = graph.producer(node.inputs[0])
    if one_hot.op != "OneHot" or node.attr("keep_dims") or not _is_plain(graph, one_hot):
        return None
    dense = graph.producer(one_hot.inputs[0])
    depth, axis = scalar(graph, one_hot.inputs[1]), constant(graph, node.inputs[1])
    if dense.op != "SparseToDense" or not dense.attr("validate_indices", True) or depth is None or axis is None:
        return None
    indices, shape, ids, missing = dense.inputs
    missing_id = scalar(graph, missing)
    ranks = graph.shape(indices).dims, axis.tolist()
    counts_missing = missing_id is None or 0 <= missing_id < depth
    if (
        ranks[0] is None
        or len(ranks[0]) != 2
        or ranks[0][1] != 2
        or ranks[1] not in ([-2], -2, [1], 1)
        or depth < 0
        or counts_missing
    ):
        return None
    if graph.dtype_of(indices) != "int64" or graph.dtype_of(ids) not in ("int32", "int64"):
        return None
    nodes = (dense, one_hot, node)
    if any(part.name in graph.fed or part.device != node.device for part in nodes) or not _is_chain(graph, nodes):
        return None
    return Indicator(nodes, indices, ids, shape, int(depth))


def _is_plain(graph: Graph, one_hot: Node) -> bool:
    """Whether a OneHot has ones and zeros of float32, on its last axis."""
    ones, zeros = (scalar(graph, ref) for ref in one_hot.inputs[2:])
    on_last = one_hot.attr("axis", -1) in (-1, 2)
    return one_hot.attr("T") == "float32" and on_last and ones == 1 and zeros == 0


def _is_chain(graph: Graph, nodes: tuple[Node, Node, Node]) -> bool:
    """Whether nobody but the next one reads the first two, or waits for them, and none waits for anything else."""
    return not any(part.controls for part in nodes) and all(
        part.name not in graph.kept and {use.node.name for use in graph.uses(part.name)} == {reader.name}
        for part, reader in pairwise(nodes)
    )

"""Features that an op parses out of examples, and nobody reads."""

from __future__ import annotations

from graph_passes.ir import Graph, Node, TensorRef

OPS = ("ParseExampleV2", "ParseSingleExample")


def has_unread_features(graph: Graph, node: Node) -> bool:
    """Whether nobody reads any output of one of the features that a node parses."""
    if node.name in graph.kept_for_data:
        return False
    return not all(any(graph.uses_of(TensorRef(node.name, port)) for port in ports) for ports in _features(node))


def _features(node: Node) -> list[list[int]]:
    """The outputs of each feature: three of a sparse one, one of a dense one, two of a ragged one."""
    sparse, dense = node.attr("num_sparse", 0), len(node.attr("Tdense", []))
    ragged = len(node.attr("ragged_value_types", []))
    first_dense, first_ragged = 3 * sparse, 3 * sparse + dense
    return [
        *([i, sparse + i, 2 * sparse + i] for i in range(sparse)),
        *([first_dense + i] for i in range(dense)),
        *([first_ragged + i, first_ragged + ragged + i] for i in range(ragged)),
    ]

"""Hashed crosses of features: SparseCross, and the dense form that preprocessing layers give it."""

from __future__ import annotations

from typing import NamedTuple

from graph_passes.analysis.constants import scalar
from graph_passes.ir import Graph, Node, TensorRef

OPS = ("SparseCross", "SparseCrossV2")
PORTS = ("indices", "values", "shape")
"""What a SparseCross gives, by port."""


class Column(NamedTuple):
    """What a cross combines the features of.

    Attributes:
        values: vector of a SparseTensor's values, or a matrix; int64 or string.
        indices: of the SparseTensor; None: `values` is a matrix.
        shape: likewise.
    """

    values: TensorRef
    indices: TensorRef | None = None
    shape: TensorRef | None = None


class Cross(NamedTuple):
    """A SparseCross that gives hashes.

    Attributes:
        node: the SparseCross.
        columns: sparse ones first.
        dense: the SparseToDense that makes a matrix of it, with zeros where there is no cross; None: there is none.
    """

    node: Node
    columns: tuple[Column, ...]
    dense: Node | None

    @property
    def members(self) -> tuple[Node, ...]:
        return (self.node,) if self.dense is None else (self.node, self.dense)


def find_cross(graph: Graph, node: Node) -> Cross | None:
    """What a SparseCross crosses; None where it gives strings, or an error always."""
    if node.op != "SparseCross" or not node.attr("hashed_output") or node.attr("out_type") != "int64":
        return None
    count = node.attr("N")
    indices, values, shapes = (node.inputs[i * count : (i + 1) * count] for i in range(3))
    columns = [Column(*parts) for parts in zip(values, indices, shapes, strict=True)]
    columns += [Column(ref) for ref in node.inputs[3 * count :]]
    types = {*node.attr("sparse_types", []), *node.attr("dense_types", [])}
    if not columns or (node.attr("internal_type") == "string" and "int64" in types):
        return None
    return Cross(node, tuple(columns), _dense_form(graph, node))


def _dense_form(graph: Graph, node: Node) -> Node | None:
    """The SparseToDense, if there is one, whose work a packed cross does."""
    readers = [use.node for use in graph.uses_of(TensorRef(node.name)) if _is_dense_form(graph, node, use.node)]
    return min(readers, key=lambda reader: reader.name, default=None)


def _is_dense_form(graph: Graph, node: Node, reader: Node) -> bool:
    indices, values, shape = (TensorRef(node.name, port) for port in range(3))
    is_alone = not reader.controls and reader.device == node.device and reader.name not in graph.fed
    if reader.op != "SparseToDense" or not is_alone:
        return False
    return reader.inputs[:3] == (indices, shape, values) and scalar(graph, reader.inputs[3]) == 0

"""What combines rows of tables in forms that are no pooled lookups, so that a report can say why they stay."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from graph_passes.analysis.constants import constant
from graph_passes.analysis.tables import GATHERS
from graph_passes.ir import Graph, Node, TensorRef
from graph_passes.rewrite.elementwise import ELEMENTWISE
from graph_passes.rewrite.ids import RESHAPES
from graph_passes.rewrite.sharded_rows import STITCHES

_KINDS = ("Sum", "Mean", "SqrtN", "Prod", "Max", "Min")
_UNSORTED = tuple(f"UnsortedSegment{kind}" for kind in _KINDS)
_SPARSE = tuple(f"SparseSegment{kind}{more}" for kind in _KINDS for more in ("", "WithNumSegments"))
_SEGMENT_OPS = (*_UNSORTED, *_SPARSE, *(f"Segment{kind}{version}" for kind in _KINDS for version in ("", "V2")))
_REDUCTIONS = ("Sum", "Mean", "Prod", "Max", "Min")
_SOURCES = (*GATHERS, "ReadVariableOp")
_MOST_STEPS = 16  # between the rows and the op: clipping them to a norm takes eight


class OtherPool(NamedTuple):
    """An op that combines rows of a table, the code of the reason why it stays, and a sentence."""

    node: Node
    code: str
    detail: str


def other_pools(graph: Graph, known: Collection[str]) -> list[OtherPool]:
    """The ops that combine rows of tables, by name, without the nodes that are `known` as part of a pooled lookup."""
    found = []
    for node in sorted(graph.of(*_SEGMENT_OPS), key=lambda node: node.name):
        if node.name in known or _sums_duplicates(graph, node):
            continue
        path = _path_from_rows(graph, node)
        if path is not None:
            found.append(OtherPool(node, *_why(graph, node, path)))
    return found + _other_reductions(graph, known)


def _other_reductions(graph: Graph, known: Collection[str]) -> list[OtherPool]:
    """The reductions of rows [examples, ..., width] of a table along an axis between the first and the last."""
    found = []
    for node in sorted(graph.of(*_REDUCTIONS), key=lambda node: node.name):
        axes, rank = constant(graph, node.inputs[1]), graph.shape(node.inputs[0]).rank
        if node.name in known or axes is None or axes.size != 1 or rank is None or rank < 3:
            continue
        path = _path_from_rows(graph, node) if axes.item() % rank not in (0, rank - 1) else None
        if path is not None and graph.shape(TensorRef(path[0].name)).rank == rank:
            found.append(OtherPool(node, *_why(graph, node, path)))
    return found


def _why(graph: Graph, node: Node, path: list[Node]) -> tuple[str, str]:
    gather, *between = path
    if node.op in _UNSORTED:
        return "ragged_reduction", f"It is {node.op} of rows of '{gather.name}', as reductions of ragged tensors are."
    stitched = [other for other in between if other.op in STITCHES]
    if stitched:
        return "sharded_table", f"'{stitched[0].name}' brings together rows of several shards."
    columns = [other for other in between if other.op == "Mul" and _has_column(graph, other)]
    if columns:
        return "weighted_form", f"Rows of '{gather.name}' are multiplied by weights in '{columns[0].name}'."
    changed = [other for other in between if other.op in ELEMENTWISE or other.op == "Cast"]
    if changed:
        return "rows_changed", f"'{changed[-1].name}' changes rows of '{gather.name}' before they are combined."
    kept = " that keeps the axis" if node.attr("keep_dims", False) else ""
    return "segment_reduction", f"It is {node.op} of rows of '{gather.name}'{kept}."


def _has_column(graph: Graph, product: Node) -> bool:
    return any((graph.shape(ref).dims or ())[1:][-1:] == (1,) for ref in product.inputs)


def _sums_duplicates(graph: Graph, node: Node) -> bool:
    """Whether it adds up what belongs to one id, as optimizers do with gradients."""
    segments = graph.producer(node.inputs[1])
    while segments.op in ("Cast", "Identity", *RESHAPES):
        segments = graph.producer(segments.inputs[0])
    if segments.op in ("Unique", "UniqueV2"):
        return node.op in _UNSORTED
    path = _path_from_rows(graph, node) if node.op in _UNSORTED else None
    return path is not None and path[0].op in GATHERS and path[0].inputs[-1] == node.inputs[1]


def _path_from_rows(graph: Graph, node: Node) -> list[Node] | None:
    """What lies between a read of rows of a table and an op: the read first, without the op; None: there is none."""
    path: list[Node] = []
    waiting: list[tuple[TensorRef, list[Node]]] = [(node.inputs[0], path)]
    seen: set[str] = set()
    while waiting and len(seen) < _MOST_STEPS:
        ref, path = waiting.pop(0)
        producer = graph.producer(ref)
        if producer.name in seen or producer.name in graph.fed:
            continue
        seen.add(producer.name)
        if producer.op in _SOURCES:
            if graph.shape(ref).rank in (0, 1):
                continue
            return [producer, *path]
        waiting += [(item, [producer, *path]) for item in _rows_of(producer)]
    return None


def _rows_of(node: Node) -> tuple[TensorRef, ...]:
    """The inputs that a node may take rows from."""
    if node.op in ELEMENTWISE:
        return node.inputs
    if node.op in STITCHES:
        return node.inputs[len(node.inputs) // 2 :]
    return node.inputs[:1] if node.op in ("Cast", "Identity", "GatherV2", *RESHAPES) else ()

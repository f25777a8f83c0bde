"""Sums of weighted rows, as `embedding_lookup_sparse` writes them when it is given weights.

    Mul(rows, weights) -> SegmentSum                                                            sum
    Mul(rows, weights) -> SegmentSum -> DivNoNan(_, SegmentSum(weights))                        mean
    Mul(rows, weights) -> SegmentSum -> DivNoNan(_, Sqrt(SegmentSum(Square(weights))))          sqrtn

Rows of half types are computed in float32: cast before, and cast back at the end.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from graph_passes.ir import Graph, Node, TensorRef
from graph_passes.rewrite.gathered_rows import HALF_TYPES, GatheredRows, gathered_rows
from graph_passes.rewrite.ids import RESHAPES


class WeightedSum(NamedTuple):
    """A sum of weighted rows.

    Attributes:
        result: the node that holds it, [rows, width].
        inner: what stands between the gather and the result, upstream first.
        rows: where the rows come from, one for each id.
        weights: one for each id, of the dtype that the sum is computed in.
        segments: the output row of each id.
        combiner: "sum", "mean" or "sqrtn".
    """

    result: Node
    inner: tuple[Node, ...]
    rows: GatheredRows
    weights: TensorRef
    segments: TensorRef
    combiner: str


def weighted_sum(graph: Graph, node: Node) -> WeightedSum | None:
    """The sum of weighted rows that a SegmentSum is part of, or None."""
    product = graph.producer(node.inputs[0])
    found = _weighted_rows(graph, product)
    if found is None or {node.name, product.name} & graph.fed:
        return None
    rows, weights = found
    inner = (*rows.inner, product)
    dtype, result, combiner = rows.gather.attr("dtype"), node, "sum"
    for use in graph.uses_of(TensorRef(node.name)):
        divided = _divided(graph, node, use.node, weights) if use.index == 0 else None
        if divided is not None:
            inner, result, combiner = (*inner, node), use.node, divided
            break
    if dtype in HALF_TYPES:
        casts = [use.node for use in graph.uses_of(TensorRef(result.name)) if _is_cast(use.node, dtype)]
        if len(casts) != 1:
            return None
        inner, result = (*inner, result), casts[0]
    if graph.dtype_of(weights) != ("float32" if dtype in HALF_TYPES else dtype):
        return None
    return WeightedSum(result, inner, rows, weights, before_cast(graph, node.inputs[1]), combiner)


def _weighted_rows(graph: Graph, product: Node) -> tuple[GatheredRows, TensorRef] | None:
    """Rows of a table and their weights, when that is what a Mul multiplies."""
    if product.op != "Mul":
        return None
    for one, other in (product.inputs, product.inputs[::-1]):
        rows, weights = gathered_rows(graph, one), weights_of_column(graph, other)
        if rows is not None and weights is not None:
            return rows, weights
    return None


def weights_of_column(graph: Graph, ref: TensorRef) -> TensorRef | None:
    """The weights that a column [ids, 1] holds, before they were laid out so."""
    dims = graph.shape(ref).dims
    if dims is None or len(dims) != 2 or dims[1] != 1:
        return None
    weights = _before(graph, ref, RESHAPES)
    # TensorFlow lays weights of half types out before it casts them.
    given = _before(graph, weights, frozenset({"Cast", *RESHAPES}))
    shape = graph.shape(given)
    return weights if shape.rank == 1 and shape.dims != (1,) else None  # a single weight may be for all ids


def _before(graph: Graph, ref: TensorRef, ops: Collection[str]) -> TensorRef:
    """A tensor before some ops that take one tensor and wait for nothing else."""
    node = graph.producer(ref)
    while node.op in ops and node.name not in graph.fed and not node.controls:
        ref = node.inputs[0]
        node = graph.producer(ref)
    return ref


def before_cast(graph: Graph, ref: TensorRef) -> TensorRef:
    """Segments before they were cast from int64 to int32."""
    node = graph.producer(ref)
    narrowed = node.op == "Cast" and (node.attr("SrcT"), node.attr("DstT")) == ("int64", "int32")
    return node.inputs[0] if narrowed and node.name not in graph.fed and not node.controls else ref


def _divided(graph: Graph, total: Node, node: Node, weights: TensorRef) -> str | None:
    """The combiner, when a node divides a sum by that of the weights, or by the root of that of their squares."""
    if node.op != "DivNoNan" or node.name in graph.fed:
        return None
    divisor, squared = graph.producer(node.inputs[1]), False
    if divisor.op == "Sqrt" and divisor.name not in graph.fed:
        divisor, squared = graph.producer(divisor.inputs[0]), True
    if divisor.op != "SegmentSum" or divisor.name in graph.fed or divisor.inputs[1] != total.inputs[1]:
        return None
    terms = divisor.inputs[0]
    if squared:
        square = graph.producer(terms)
        is_square = square.op == "Square" or (square.op == "Mul" and square.inputs[0] == square.inputs[1])
        if not is_square or square.name in graph.fed:
            return None
        terms = square.inputs[0]
    if weights_of_column(graph, terms) != weights:
        return None
    return "sqrtn" if squared else "mean"


def _is_cast(node: Node, dtype: str) -> bool:
    return node.op == "Cast" and node.attr("DstT") == dtype

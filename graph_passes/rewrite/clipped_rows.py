"""Rows of a table that are clipped to a norm, as `max_norm` of TensorFlow's lookups does it by `tf.clip_by_norm`.

total = Sum(Square(rows)), norm = total > 0 ? Sqrt(total) : total, rows * max_norm / Maximum(norm, max_norm)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from graph_passes.analysis.constants import constant
from graph_passes.analysis.tables import GATHERS, row_source
from graph_passes.ir import CONTROL, Graph, Node, TensorRef
from graph_passes.rewrite.pattern import AnyTensor, Match, Op, Pattern, Scalar, match
from graph_passes.rewrite.pooled import only_leads_to

_WIDEST = 4096  # Eigen adds up the squares of longer rows in halves


class ClippedRows(NamedTuple):
    """Rows that are gathered and then clipped.

    Attributes:
        gather: one of `GATHERS`.
        result: the node that holds the clipped rows.
        max_norm: the largest norm.
        between: nodes that nothing else reads: the arithmetic, without `result`, and shapes.
    """

    gather: Node
    result: Node
    max_norm: float
    between: tuple[str, ...]


class NotClipped(NamedTuple):
    """Why clipped rows stay as they are: a reason code and a sentence; "" for the reason's own."""

    code: str
    detail: str = ""


def _divided(rows: Pattern, name: str) -> Op:
    total = Op(("Sum",), (rows, AnyTensor("axis")), name="total", where=lambda node: bool(node.attr("keep_dims")))
    is_positive = Op(("Greater",), (total, Scalar(value=0)), name="is_positive")
    safe = Op(("Select", "SelectV2"), (is_positive, total, AnyTensor("ones")), name="safe")
    root = Op(("Sqrt",), (safe,), name="root")
    norm = Op(("Select", "SelectV2"), (is_positive, root, total), name="norm")
    numerator = Op(("Mul",), (AnyTensor("rows"), Scalar("factor")), commutative=True, name="product")
    at_least = Op(("Maximum",), (norm, Scalar("max_norm")), name="divisor")
    return Op(("RealDiv",), (numerator if name == "product" else AnyTensor("rows"), at_least), name="result")


_SQUARES = (
    Op(("Square",), (AnyTensor("rows"),), name="squares"),
    Op(("Mul",), (AnyTensor("rows"), AnyTensor("rows")), name="squares"),
)
# TensorFlow drops a product with one.
_PATTERNS = tuple(_divided(squares, name) for squares in _SQUARES for name in ("product", "rows"))


def clipped_rows(graph: Graph, result: Node) -> ClippedRows | NotClipped | None:
    """The clipped rows that a RealDiv gives; why they stay; None where it is no clipping of gathered rows."""
    found = _matched(graph, result)
    gather = None if found is None else graph.producer(found.tensors["rows"])
    if found is None or gather is None or gather.op not in GATHERS or gather.name in graph.fed:
        return None
    max_norm = found.scalars["max_norm"]
    if found.scalars.get("factor", 1) != max_norm or gather.attr("batch_dims", 0) or row_source(graph, gather).max_norm:
        return None
    dtype, width = gather.attr("dtype"), _width(graph, gather, found)
    if width is None:
        return NotClipped("rows_changed", "The norm is not that of each row of a table of a known width.")
    if dtype not in ("float32", "float64"):
        return NotClipped("rows_changed", f"TensorFlow adds up squares of {dtype} in an order of its own.")
    if not max_norm > 0 or float(np.float32(max_norm)) != max_norm:
        return NotClipped("rows_changed", f"The norm, {max_norm:g}, is not above 0, or has more digits than float32.")
    return _alone(graph, found, gather, result)


def _matched(graph: Graph, result: Node) -> Match | None:
    for pattern in _PATTERNS:
        found = match(graph, pattern, TensorRef(result.name))
        if isinstance(found, Match):
            return found
    return None


def _width(graph: Graph, gather: Node, found: Match) -> int | None:
    """Elements of a row, where rows are vectors and the squares are summed along them."""
    dims, axis = graph.shape(TensorRef(gather.name)).dims, constant(graph, found.tensors["axis"])
    table, ones = row_source(graph, gather).tables[0].shape.dims, graph.shape(found.tensors["ones"]).dims
    if dims is None or axis is None or axis.size != 1 or table is None or len(table) != 2:
        return None
    if axis.item() not in (-1, len(dims) - 1) or ones is None or len(ones) != len(dims):
        return None
    width = table[1]
    return width if width is not None and 0 < width <= _WIDEST and dims[-1] == width else None


def _alone(graph: Graph, found: Match, gather: Node, result: Node) -> ClippedRows | NotClipped:
    """The clipped rows, where nothing but the result is read."""
    inside = {node.name for node in found.nodes.values()}
    between = inside - {result.name}
    members = [gather, *(graph.nodes[name] for name in sorted(between))]
    for node in members:
        if (node is not gather and (node.controls or node.name in graph.kept)) or node.name in graph.kept_for_data:
            return NotClipped("gradient_needed", f"'{node.name}' is needed by itself.")
        for use in graph.uses(node.name):
            if use.node.name in inside or (node is gather and use.index == CONTROL):
                continue
            only = None if use.index == CONTROL else only_leads_to(graph, use.node.name, inside)
            if only is None:
                return NotClipped("gradient_needed", f"'{use.node.name}' reads what clips the rows.")
            between |= only
    if result.controls or graph.shape(TensorRef(result.name)) != graph.shape(TensorRef(gather.name)):
        return NotClipped("rows_changed")
    return ClippedRows(gather, result, found.scalars["max_norm"], tuple(sorted(between)))

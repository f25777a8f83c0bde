"""Sums of the rows of ragged ids, as reductions of ragged tensors write them.

    ResourceGather -> UnsortedSegmentSum                        tf.reduce_sum of a ragged tensor over axis 1
    ResourceGather -> Mul(weights) -> UnsortedSegmentSum        the same with weights

TensorFlow makes segment ids of the row splits by a mask of the longest row's length: thirty ops, which a packed lookup
does not need. Any other segment ids may be negative or come in any order; sums over such are not taken.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from graph_passes.analysis.constants import constant, scalar
from graph_passes.ir import Graph, Node, TensorRef
from graph_passes.rewrite.gathered_rows import GatheredRows, gathered_rows
from graph_passes.rewrite.ids import RESHAPES
from graph_passes.rewrite.pooled_axis import before_layout


class RaggedSum(NamedTuple):
    """A sum of the rows of ragged ids.

    Attributes:
        inner: what stands between the gather and the sum, upstream first.
        rows: where the rows come from, one for each id.
        splits: the row splits.
        weights: of the ids; None: there are none.
    """

    inner: tuple[Node, ...]
    rows: GatheredRows
    splits: TensorRef
    weights: TensorRef | None


def ragged_sum(graph: Graph, node: Node) -> RaggedSum | None:
    """What an UnsortedSegmentSum sums, when that is rows of a table for each row of ragged ids."""
    splits = None if node.name in graph.fed else row_splits(graph, node.inputs[1])
    if splits is None or not _is_number_of_rows(graph, node.inputs[2], splits):
        return None
    product = graph.producer(node.inputs[0])
    for ref, column in ((node.inputs[0], None), *factors(graph, product)):
        rows = gathered_rows(graph, ref)
        if rows is None or graph.shape(rows.ids).rank != 1 or any(part.op == "Cast" for part in rows.inner):
            continue
        if column is None:
            return RaggedSum(rows.inner, rows, splits, None)
        weights = column_of_weights(graph, column)
        if weights is not None:
            return RaggedSum((*rows.inner, product), rows, splits, weights)
    return None


def column_of_weights(graph: Graph, ref: TensorRef) -> TensorRef | None:
    """The weights [ids] that a column [ids, 1] holds."""
    dims, weights = graph.shape(ref).dims, before_layout(graph, ref)
    given = graph.shape(weights).dims
    fits = dims is not None and len(dims) == 2 and dims[1] == 1 and given is not None and len(given) == 1
    return weights if fits and given != (1,) else None  # a single weight may be for all ids


def factors(graph: Graph, product: Node) -> list[tuple[TensorRef, TensorRef]]:
    """What may be the rows and the column of weights that a Mul takes."""
    if product.op != "Mul" or product.name in graph.fed or product.controls:
        return []
    one, other = product.inputs
    return [(one, other), (other, one)]


# ---- Row splits ------------------------------------------------------------------------------------------------------


def row_splits(graph: Graph, segments: TensorRef) -> TensorRef | None:
    """The row splits of which TensorFlow made segment ids; None for any other tensor."""
    taken = graph.producer(segments)
    if not _is(graph, taken, "GatherV2") or scalar(graph, taken.inputs[2]) != 0:
        return None
    # The numbers of rows, repeated as often as the longest row is long; of those the ones that a mask leaves.
    tiled, where = _before_reshapes(graph, taken.inputs[0]), _before_reshapes(graph, taken.inputs[1])
    if not _is(graph, tiled, "Tile") or not _is(graph, where, "Where"):
        return None
    less, pack = _before_reshapes(graph, where.inputs[0]), graph.producer(tiled.inputs[1])
    if not _is(graph, less, "Less") or not _is(graph, pack, "Pack") or not _counts_up(graph, tiled.inputs[0]):
        return None
    places = graph.producer(less.inputs[0])
    if not _is(graph, places, "Range") or (scalar(graph, places.inputs[0]), scalar(graph, places.inputs[2])) != (0, 1):
        return None
    if len(pack.inputs) != 2 or scalar(graph, pack.inputs[0]) != 1 or pack.inputs[1] != places.inputs[1]:
        return None
    column = graph.producer(less.inputs[1])
    if not _is(graph, column, "ExpandDims") or scalar(graph, column.inputs[1]) not in (-1, 1):
        return None
    lengths = graph.producer(column.inputs[0])
    while lengths.op in ("BroadcastTo", "Cast", "Identity") and lengths.name not in graph.fed:
        lengths = graph.producer(lengths.inputs[0])
    return _splits_of_lengths(graph, lengths)


def _is(graph: Graph, node: Node, op: str) -> bool:
    return node.op == op and node.name not in graph.fed


def _before_reshapes(graph: Graph, ref: TensorRef) -> Node:
    node = graph.producer(ref)
    while node.op in RESHAPES and node.name not in graph.fed:
        node = graph.producer(node.inputs[0])
    return node


def _counts_up(graph: Graph, ref: TensorRef) -> bool:
    """Whether a column holds 0, 1, 2, ..."""
    value = constant(graph, ref)
    if value is not None:
        return value.ndim == 2 and value.shape[1] == 1 and np.array_equal(value[:, 0], np.arange(len(value)))
    column = graph.producer(ref)
    if not _is(graph, column, "ExpandDims") or scalar(graph, column.inputs[1]) not in (-1, 1):
        return False
    numbers = graph.producer(column.inputs[0])
    return _is(graph, numbers, "Range") and (scalar(graph, numbers.inputs[0]), scalar(graph, numbers.inputs[2])) == (
        0,
        1,
    )


def _splits_of_lengths(graph: Graph, lengths: Node) -> TensorRef | None:
    """The row splits of `splits[1:] - splits[:-1]`."""
    if not _is(graph, lengths, "Sub"):
        return None
    ends, begins = (graph.producer(ref) for ref in lengths.inputs)
    if not _is(graph, ends, "StridedSlice") or not _is(graph, begins, "StridedSlice"):
        return None
    masks = [[node.attr(f"{name}_mask", 0) for name in _MASKS] for node in (ends, begins)]
    bounds = scalar(graph, ends.inputs[1]), scalar(graph, begins.inputs[2])
    steps = [scalar(graph, node.inputs[3]) for node in (ends, begins)]
    splits = ends.inputs[0]
    if masks != [[0, 1, 0, 0, 0], [1, 0, 0, 0, 0]] or bounds != (1, -1) or steps != [1, 1]:
        return None
    return splits if splits == begins.inputs[0] and graph.shape(splits).rank == 1 else None


_MASKS = ("begin", "end", "ellipsis", "new_axis", "shrink_axis")


def _is_number_of_rows(graph: Graph, ref: TensorRef, splits: TensorRef) -> bool:
    """Whether a scalar is one less than how many row splits there are."""
    (size,) = graph.shape(splits).dims or (None,)
    value = scalar(graph, ref)
    if value is not None:
        return size is not None and value == size - 1
    node = graph.producer(ref)
    while node.op in ("Cast", "Identity") and node.name not in graph.fed:
        node = graph.producer(node.inputs[0])
    if not _is(graph, node, "Sub") or scalar(graph, node.inputs[1]) != 1:
        return False
    cut = graph.producer(node.inputs[0])
    shape = graph.producer(cut.inputs[0]) if _is(graph, cut, "StridedSlice") else cut
    return _is(graph, shape, "Shape") and shape.inputs[0] == splits

"""Pooled lookups: the chain of ops that `embedding_lookup_sparse` and its safe variant make of one multi-hot feature.

    Unique -> ResourceGather -> SparseSegmentMean                                       embedding_lookup_sparse
    ReadVariableOp -> SparseSegmentMean                                                 the same, in nested functions
    ResourceGather -> Mul(weights) -> SegmentSum -> DivNoNan                            the same, with weights
    ResourceGather -> Sum or Mean along axis 1                                          see `pooled_axis`
    ResourceGather -> UnsortedSegmentSum                                                see `pooled_ragged`
    Where(ids >= 0) -> GatherV2 -> SparseFillEmptyRows -> the above -> Select(empty)    safe_embedding_lookup_sparse

A SparseTensor comes as three tensors: indices [ids, 2], values [ids], dense_shape [2]. The chain is followed from its
sum upstream; nothing looks at names of nodes.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from graph_passes.analysis.stated_dims import stated_dims
from graph_passes.analysis.tables import RowSource, row_source
from graph_passes.ir import CONTROL, UNKNOWN_SHAPE, DType, Graph, Node, Shape, TensorRef
from graph_passes.ir.op_defs import can_drop
from graph_passes.rewrite.gathered_rows import ids_of_places
from graph_passes.rewrite.ids import IdsSource
from graph_passes.rewrite.pooled_axis import AXIS_SUMS, axis_sum
from graph_passes.rewrite.pooled_ragged import ragged_sum
from graph_passes.rewrite.pooled_weights import weighted_sum
from graph_passes.rewrite.sparse_filling import (
    before_dropping,
    before_flattening,
    filling,
    sparse_rows,
    takes_zeros_for_empty_rows,
    weights_before_filling,
)

COMBINERS = {"SparseSegmentSum": "sum", "SparseSegmentMean": "mean", "SparseSegmentSqrtN": "sqrtn"}
SUMS = (*COMBINERS, *(f"{op}WithNumSegments" for op in COMBINERS))
SHAPE_READERS = frozenset({"Shape", "ZerosLike"})
"""Ops to which all tensors of one shape and dtype are alike."""
ZEROS = -1
"""What a row without ids becomes: zeros, and not a row of the table."""


class PooledLookup(NamedTuple):
    """One pooled lookup of a graph.

    Attributes:
        results: the nodes that hold its result, [rows, width]: one, and reshapes of it that change nothing.
        sum: the SparseSegment op, or the last of the ops that combine weighted rows.
        gather: the gather of the distinct ids' rows, or the ReadVariableOp of the whole table.
        source: where the rows of the table are read.
        ids: row numbers, [ids]; or [examples, length] where `segments` is None.
        segments: the output row of each id, [ids], or the indices of a SparseTensor, [ids, 2]; None: each row of ids
            is of one output row.
        rows: how many output rows: a scalar, or a dense shape [2]; None: one more than the last that is named.
        combiner: "sum", "mean" or "sqrtn".
        drop: whether negative ids are left out.
        fill: the table row that a row without ids becomes, or `ZEROS`.
        sort: whether ids may come in any order of rows.
        weights: one for each id, or bools: whether its row counts, or else zeros; None: there are none.
        drop_weightless: whether ids whose weight is not above 0 are left out.
        inner: what stands between `gather` and `sum`, upstream first.
        ids_source: how ids are read, where `segments` is None.
        splits: whether `segments` are row splits, [rows + 1]; rows of the table are then added in turn.
    """

    results: tuple[Node, ...]
    sum: Node
    gather: Node
    source: RowSource
    ids: TensorRef
    segments: TensorRef | None
    rows: TensorRef | None
    combiner: str
    drop: bool = False
    fill: int = ZEROS
    sort: bool = False
    weights: TensorRef | None = None
    drop_weightless: bool = False
    inner: tuple[Node, ...] = ()
    ids_source: IdsSource | None = None
    splits: bool = False

    @property
    def read_ids(self) -> TensorRef:
        """The ids as the packed lookup reads them."""
        return self.ids if self.ids_source is None else self.ids_source.ref

    @property
    def inputs(self) -> tuple[TensorRef, ...]:
        """All that a packed lookup reads, but the table."""
        return tuple(ref for ref in (self.read_ids, self.segments, self.rows, self.weights) if ref is not None)

    @property
    def in_other_order(self) -> bool:
        """Whether rows, one for each id, are added in another order than that of lookups of sparse ids."""
        return self.segments is None or self.splits

    @property
    def name(self) -> str:
        """Of the first node that holds the result."""
        return self.results[0].name

    @property
    def chain(self) -> tuple[Node, ...]:
        """The nodes that a packed lookup takes the place of, upstream first; others are left without readers."""
        return tuple(dict.fromkeys((self.gather, *self.inner, self.sum, *self.results)))

    @property
    def dtype(self) -> DType:
        """Of the rows."""
        return self.gather.attr("dtype")

    def row_shape(self, graph: Graph) -> Shape:
        """Static shape of one row of the table."""
        dims = self.source.tables[0].shape.dims
        return Shape(dims[1:]) if dims else UNKNOWN_SHAPE


def pooled_lookups(graph: Graph) -> list[PooledLookup]:
    """Every pooled lookup of a resource variable, in the order of the results' names."""
    found = [_pooled(graph, node) for node in graph.of(*SUMS)]
    found += [_weighted(graph, node) for node in graph.of("SegmentSum")]
    found += [_along_axis(graph, node) for node in graph.of(*AXIS_SUMS)]
    found += [_ragged(graph, node) for node in graph.of("UnsortedSegmentSum")]
    return sorted((lookup for lookup in found if lookup is not None), key=lambda lookup: lookup.name)


def only_leads_to(graph: Graph, name: str, targets: Collection[str]) -> set[str] | None:
    """A node and all that is downstream of it, before `targets`; None when there is anything else that must stay."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        name = waiting.pop()
        if name in found or name in targets:
            continue
        if name in graph.kept or graph.nodes[name].controls or not can_drop(graph.nodes[name]):
            return None
        found.add(name)
        uses = graph.uses(name)
        if not uses or any(use.index == CONTROL for use in uses):
            return None
        waiting += [use.node.name for use in uses]
    return found


def _pooled(graph: Graph, node: Node) -> PooledLookup | None:
    gather = graph.producer(node.inputs[0])
    ids = ids_of_places(graph, gather, node.inputs[1])
    if ids is None or graph.shape(ids).rank != 1 or node.name in graph.fed:
        return None
    combiner = COMBINERS[node.op.removesuffix("WithNumSegments")]
    rows = node.inputs[3] if node.op.endswith("WithNumSegments") else None
    segments = sparse_rows(graph, node.inputs[2])
    lookup = PooledLookup((node,), node, gather, row_source(graph, gather), ids, segments, rows, combiner)
    return _complete(graph, lookup if rows is not None else _with_filled_rows(graph, lookup))


def _weighted(graph: Graph, node: Node) -> PooledLookup | None:
    found = weighted_sum(graph, node)
    if found is None or graph.shape(found.rows.ids).rank != 1:
        return None
    gather, segments = found.rows.gather, sparse_rows(graph, found.segments)
    source = row_source(graph, gather)
    lookup = PooledLookup((found.result,), found.result, gather, source, found.rows.ids, segments, None, found.combiner)
    lookup = lookup._replace(inner=found.inner, weights=found.weights)
    return _complete(graph, _with_filled_rows(graph, lookup))


def _along_axis(graph: Graph, node: Node) -> PooledLookup | None:
    found = axis_sum(graph, node)
    if found is None:
        return None
    gather, combiner = found.rows.gather, AXIS_SUMS[node.op]
    lookup = PooledLookup((node,), node, gather, row_source(graph, gather), found.rows.ids, None, None, combiner)
    return _complete(graph, lookup._replace(inner=found.inner, weights=found.weights, ids_source=found.source))


def _ragged(graph: Graph, node: Node) -> PooledLookup | None:
    found = ragged_sum(graph, node)
    if found is None:
        return None
    gather, ids = found.rows.gather, found.rows.ids
    lookup = PooledLookup((node,), node, gather, row_source(graph, gather), ids, found.splits, None, "sum")
    return _complete(graph, lookup._replace(inner=found.inner, weights=found.weights, splits=True))


def _complete(graph: Graph, lookup: PooledLookup) -> PooledLookup:
    return lookup._replace(results=_with_reshapes(graph, lookup))


def _with_reshapes(graph: Graph, lookup: PooledLookup) -> tuple[Node, ...]:
    """The node that holds the result, and each Reshape after it to [rows, width], which the result already has."""
    results = list(lookup.results)
    row = lookup.row_shape(graph).dims
    for node in results:  # grows while it is walked
        for use in graph.uses_of(TensorRef(node.name)):
            after = use.node
            if after.op != "Reshape" or use.index or after.controls or after.name in graph.fed:
                continue
            dims = stated_dims(graph, after.inputs[1])
            if dims is not None and len(dims) == 2 and row == dims[1:] and dims[1] and after.device == node.device:
                results.append(after)
    return tuple(results)


def _with_filled_rows(graph: Graph, lookup: PooledLookup) -> PooledLookup:
    """The lookup together with the SparseFillEmptyRows before it and the Select after it, if there are such."""
    found = None if lookup.segments is None else filling(graph, lookup.segments, lookup.ids)
    if found is None:
        return lookup
    fill, default = found
    select = _select_of_empty_rows(graph, lookup.sum, fill)
    if select is None and any(use.node.op in ("Select", "SelectV2") for use in graph.uses(lookup.sum.name)):
        return lookup
    weights = lookup.weights
    if weights is not None:
        weights = weights_before_filling(graph, fill, weights)
        if weights is None:
            return lookup
    kept = before_dropping(graph, fill.inputs[0], fill.inputs[1], weights)
    indices, shape = before_flattening(graph, kept.indices, fill.inputs[2])
    return lookup._replace(
        results=(lookup.sum if select is None else select,),
        ids=kept.ids,
        segments=indices,
        rows=shape,
        weights=kept.weights,
        drop=kept.negative,
        drop_weightless=kept.weightless,
        fill=default if select is None else ZEROS,
        sort=True,
    )


def _select_of_empty_rows(graph: Graph, pooled: Node, fill: Node) -> Node | None:
    """The Select that puts zeros in the place of rows that SparseFillEmptyRows says had no id."""
    for use in graph.uses_of(TensorRef(pooled.name)):
        node = use.node
        if node.op not in ("Select", "SelectV2") or use.index != 2 or node.name in graph.fed:
            continue
        if takes_zeros_for_empty_rows(graph, node, fill):
            return node
    return None

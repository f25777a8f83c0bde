"""Pooled lookups: the chain of ops that `embedding_lookup_sparse` and its safe variant make of one multi-hot feature.

    Unique -> ResourceGather -> SparseSegmentMean                                       embedding_lookup_sparse
    ReadVariableOp -> SparseSegmentMean                                                 the same, in nested functions
    Where(ids >= 0) -> GatherV2 -> SparseFillEmptyRows -> the above -> Select(empty)    safe_embedding_lookup_sparse

A SparseTensor comes as three tensors: indices [ids, 2], values [ids], dense_shape [2]. The chain is followed from its
sum upstream; nothing looks at names of nodes.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from graph_passes.analysis.constants import constant, scalar
from graph_passes.analysis.stated_dims import stated_dims
from graph_passes.analysis.tables import Table, table_of
from graph_passes.ir import CONTROL, UNKNOWN_SHAPE, Graph, Node, Shape, TensorRef
from graph_passes.ir.op_defs import can_drop

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
        sum: the SparseSegment op.
        gather: the ResourceGather of the distinct ids' rows, or the ReadVariableOp of the whole table.
        handle: the table's resource handle.
        table: the variable.
        ids: row numbers, [ids].
        segments: the output row of each id, [ids], or the indices of a SparseTensor, [ids, 2].
        rows: how many output rows: a scalar, or a dense shape [2]; None: one more than the last that is named.
        combiner: "sum", "mean" or "sqrtn".
        drop: whether negative ids are left out.
        fill: the table row that a row without ids becomes, or `ZEROS`.
        sort: whether ids may come in any order of rows.
    """

    results: tuple[Node, ...]
    sum: Node
    gather: Node
    handle: TensorRef
    table: Table
    ids: TensorRef
    segments: TensorRef
    rows: TensorRef | None
    combiner: str
    drop: bool = False
    fill: int = ZEROS
    sort: bool = False

    @property
    def name(self) -> str:
        """Of the first node that holds the result."""
        return self.results[0].name

    @property
    def chain(self) -> tuple[Node, ...]:
        """The nodes that a packed lookup takes the place of, upstream first; others are left without readers."""
        return tuple(dict.fromkeys((self.gather, self.sum, *self.results)))

    def row_shape(self, graph: Graph) -> Shape:
        """Static shape of one row of the table."""
        return Shape(self.table.shape.dims[1:]) if self.table.shape.dims else UNKNOWN_SHAPE


def pooled_lookups(graph: Graph) -> list[PooledLookup]:
    """Every pooled lookup of a resource variable, in the order of the results' names."""
    found = [_pooled(graph, node) for node in graph.of(*SUMS)]
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
    ids = _ids(graph, gather, node)
    if ids is None or graph.shape(ids).rank != 1 or {node.name, gather.name} & graph.fed:
        return None
    handle = gather.inputs[0]
    combiner = COMBINERS[node.op.removesuffix("WithNumSegments")]
    rows = node.inputs[3] if node.op.endswith("WithNumSegments") else None
    segments = sparse_rows(graph, node.inputs[2])
    lookup = PooledLookup((node,), node, gather, handle, table_of(graph, handle), ids, segments, rows, combiner)
    lookup = lookup if rows is not None else _with_filled_rows(graph, lookup)
    return lookup._replace(results=_with_reshapes(graph, lookup))


def _ids(graph: Graph, gather: Node, node: Node) -> TensorRef | None:
    """The ids of a sum of rows that come from `gather`: of the distinct ids' rows, or of the whole table."""
    if gather.op == "ReadVariableOp":
        return node.inputs[1]
    unique = graph.producer(node.inputs[1])
    if gather.op != "ResourceGather" or gather.attr("batch_dims", 0) or unique.op not in ("Unique", "UniqueV2"):
        return None
    if gather.inputs[1] != TensorRef(unique.name) or node.inputs[1] != TensorRef(unique.name, 1):
        return None
    return None if unique.name in graph.fed else unique.inputs[0]


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


def sparse_rows(graph: Graph, ref: TensorRef) -> TensorRef:
    """The indices [ids, 2] whose column 0 a tensor is, or the tensor itself."""
    node = graph.producer(ref)
    if node.op != "StridedSlice" or node.name in graph.fed or node.controls:
        return ref
    begin, _, strides = (constant(graph, item) for item in node.inputs[1:])
    masks = [node.attr(f"{name}_mask", 0) for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")]
    first_column = begin is not None and begin.size == 2 and begin[1] == 0 and masks == [1, 1, 0, 0, 2]
    whole = strides is not None and strides.size == 2 and strides[0] == 1
    dims = graph.shape(node.inputs[0]).dims
    return node.inputs[0] if first_column and whole and dims is not None and dims[1:] == (2,) else ref


def _with_filled_rows(graph: Graph, lookup: PooledLookup) -> PooledLookup:
    """The lookup together with the SparseFillEmptyRows before it and the Select after it, if there are such."""
    found = filling(graph, lookup.segments, lookup.ids)
    if found is None:
        return lookup
    fill, default = found
    select = _select_of_empty_rows(graph, lookup.sum, fill)
    if select is None and any(use.node.op in ("Select", "SelectV2") for use in graph.uses(lookup.sum.name)):
        return lookup
    indices, ids, drop = before_dropping(graph, fill.inputs[0], fill.inputs[1])
    indices, shape = before_flattening(graph, indices, fill.inputs[2])
    return lookup._replace(
        results=(lookup.sum if select is None else select,),
        ids=ids,
        segments=indices,
        rows=shape,
        drop=drop,
        fill=default if select is None else ZEROS,
        sort=True,
    )


def filling(graph: Graph, segments: TensorRef, ids: TensorRef) -> tuple[Node, int] | None:
    """The SparseFillEmptyRows that indices and values of a SparseTensor come from, and the row that it fills in."""
    fill = graph.producer(segments)
    if fill.op != "SparseFillEmptyRows" or fill.name in graph.fed or segments.port or fill.controls:
        return None
    default = scalar(graph, fill.inputs[3])
    if ids != TensorRef(fill.name, 1) or default is None or default < 0:
        return None
    return fill, int(default)


def _select_of_empty_rows(graph: Graph, pooled: Node, fill: Node) -> Node | None:
    """The Select that puts zeros in the place of rows that SparseFillEmptyRows says had no id."""
    for use in graph.uses_of(TensorRef(pooled.name)):
        node = use.node
        if node.op not in ("Select", "SelectV2") or use.index != 2 or node.name in graph.fed:
            continue
        if takes_zeros_for_empty_rows(graph, node, fill):
            return node
    return None


def takes_zeros_for_empty_rows(graph: Graph, select: Node, fill: Node) -> bool:
    """Whether a Select takes zeros for rows that SparseFillEmptyRows says had no id."""
    condition, zeros = graph.producer(select.inputs[0]), graph.producer(select.inputs[1])
    if zeros.op != "ZerosLike" or condition.op != "Tile" or {condition.name, zeros.name} & graph.fed:
        return False
    column = graph.producer(condition.inputs[0])
    if column.op not in ("Reshape", "ExpandDims") or column.inputs[0] != TensorRef(fill.name, 2):
        return False
    shapes = [graph.shape(ref).dims for ref in (*select.inputs, condition.inputs[0])]
    if any(dims is None or len(dims) != 2 for dims in shapes):
        return False
    *widths, one = [dims[1] for dims in shapes if dims is not None]
    return one == 1 and widths[0] is not None and len(set(widths)) == 1


def before_dropping(graph: Graph, indices: TensorRef, ids: TensorRef) -> tuple[TensorRef, TensorRef, bool]:
    """Indices and ids before those with negative ids were left out, and whether any were."""
    gathers = graph.producer(indices), graph.producer(ids)
    if any(node.op != "GatherV2" or node.name in graph.fed or node.controls for node in gathers):
        return indices, ids, False
    of_indices, of_ids = gathers
    places = of_indices.inputs[1]
    if places != of_ids.inputs[1] or any(scalar(graph, node.inputs[2]) != 0 for node in gathers):
        return indices, ids, False
    where = graph.producer(places)
    while where.op in ("Reshape", "Squeeze"):
        where = graph.producer(where.inputs[0])
    test = graph.producer(where.inputs[0]) if where.op == "Where" else where
    if test.op != "GreaterEqual" or test.inputs[0] != of_ids.inputs[0] or scalar(graph, test.inputs[1]) != 0:
        return indices, ids, False
    return of_indices.inputs[0], of_ids.inputs[0], True


def before_flattening(graph: Graph, indices: TensorRef, shape: TensorRef) -> tuple[TensorRef, TensorRef]:
    """Indices and dense shape before a SparseReshape that gives a matrix the shape that it has."""
    node = graph.producer(indices)
    before = node.inputs[0] if node.op == "SparseReshape" and node.name not in graph.fed else None
    if before is None or node.controls or shape != TensorRef(node.name, 1):
        return indices, shape
    dims, old, new = graph.shape(before).dims, node.inputs[1], graph.producer(node.inputs[2])
    if dims is None or dims[1:] != (2,) or new.op != "Pack" or len(new.inputs) != 2:
        return indices, shape
    rows, columns = graph.producer(new.inputs[0]), graph.producer(new.inputs[1])
    cut = graph.producer(rows.inputs[0]) if rows.op == "Prod" else rows
    sizes = constant(graph, cut.inputs[2]) if cut.op == "Slice" else None
    if sizes is None or sizes.tolist() != [1] or cut.inputs[0] != old or scalar(graph, cut.inputs[1]) != 0:
        return indices, shape
    if columns.op != "GatherV2" or columns.inputs[0] != old or scalar(graph, columns.inputs[1]) != 1:
        return indices, shape
    return before, old

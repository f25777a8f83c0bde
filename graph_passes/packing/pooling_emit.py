"""Plans one packed pooled lookup, and puts it into the graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from graph_passes.ir import Graph, Mutation, Node, Shape, TensorRef
from graph_passes.ir.op_defs import PACKED_POOLED_LOOKUP
from graph_passes.packing.lookup_plan import Join, Piece, Surroundings, View, find_join, join_candidates
from graph_passes.packing.pooled_shapes import ServedShape, serve_shape, served_shapes
from graph_passes.rewrite.packed_nodes import Numbers, Tables, packed_name, retire, source_attrs, substitute
from graph_passes.rewrite.pooled import PooledLookup, only_leads_to


@dataclass
class PoolingPlan:
    """What one packed pooled lookup will do.

    Attributes:
        lookups: the members.
        joins: concatenations that it writes itself.
        separate: members that get an output of their own.
        dead: shape arithmetic on what goes, that nothing else reads.
        shapes: of rows inside the chains, by the Shape nodes that ask for them; see `pooled_shapes`.
    """

    lookups: Sequence[PooledLookup]
    joins: list[Join]
    separate: list[int]
    dead: list[str]
    shapes: dict[str, ServedShape]


def plan_pooling(graph: Graph, lookups: Sequence[PooledLookup], level: int, around: Surroundings) -> PoolingPlan:
    """Plans the pack of `lookups`, which cannot reach each other; arguments as of `lookup_plan.plan_group`."""
    chain = {part.name for lookup in lookups for part in lookup.chain}
    views: dict[TensorRef, View] = {}
    for index, lookup in enumerate(lookups):
        for part in lookup.results:
            views[TensorRef(part.name)] = View(TensorRef(part.name), index, _shape(graph, lookup))
    joins = {}
    for node in join_candidates(graph, views):
        first = lookups[0]
        if around.context(node.name) != around.context(first.name) or node.device != first.sum.device:
            continue
        join = find_join(graph, node, lookups, views, level, around)
        if isinstance(join, Join) and all(_is_row(graph, lookups, piece) for piece in join.pieces):
            joins[node.name] = join
    dead: set[str] = set()
    shapes: dict[str, ServedShape] = {}
    separate = set()
    for index, lookup in enumerate(lookups):
        served = served_shapes(graph, lookup)
        for part in lookup.chain:
            is_result = part in lookup.results
            if is_result and part.name in graph.kept_for_data:
                separate.add(index)
            for use in graph.uses_of(TensorRef(part.name)):
                if use.node.name in chain or (is_result and use.node.name in joins):
                    continue
                only = only_leads_to(graph, use.node.name, chain)
                if only is None and use.node.name in served:
                    shapes[use.node.name] = served[use.node.name]
                elif only is None:
                    separate.add(index)
                dead |= only or set()
    # A member that has other readers too is written for all of them once, and its concatenations stay.
    kept = [join for join in joins.values() if separate.isdisjoint(piece.lookup for piece in join.pieces)]
    joined = {piece.lookup for join in kept for piece in join.pieces}
    alone = [index for index in range(len(lookups)) if index in separate or index not in joined]
    return PoolingPlan(lookups, kept, alone, sorted(dead), shapes)


def emit_pooling(graph: Graph, plan: PoolingPlan) -> tuple[Graph, str]:
    """The graph in which the planned op takes the place of all chains, and the op's name."""
    mutation = Mutation(graph)
    lookups = plan.lookups
    dtype = lookups[0].dtype
    name = mutation.unique_name(packed_name(graph, "pooling_packing", [lookup.name for lookup in lookups]))
    mutation.add(_node(graph, name, plan))
    for port, join in enumerate(plan.joins):
        substitute(graph, mutation, join.node, TensorRef(name, port), dtype)
    outputs = {index: len(plan.joins) + number for number, index in enumerate(plan.separate)}
    for index, lookup in enumerate(lookups):
        for part in lookup.chain:
            if part in lookup.results and index in outputs:
                substitute(graph, mutation, part, TensorRef(name, outputs[index]), dtype)
                continue
            if part is lookup.sum and index in outputs:
                mutation.redirect(TensorRef(part.name), TensorRef(name, outputs[index]))  # for `SHAPE_READERS`
            retire(graph, mutation, part, name)
    for reader, shape in plan.shapes.items():
        serve_shape(graph, mutation, graph.nodes[reader], shape)
    for other in plan.dead:
        mutation.remove(other)
    return mutation.apply(), name


def _is_row(graph: Graph, lookups: Sequence[PooledLookup], piece: Piece) -> bool:
    """Whether a piece of a concatenation is dense, or one row of a table wide: along axis 0 it would be more."""
    return piece.dense is not None or piece.width == lookups[piece.lookup].row_shape(graph).elements()


def _shape(graph: Graph, lookup: PooledLookup) -> Shape:
    """Static shape of the result."""
    rows = (lookup.results[0].output_shape().dims or (None,))[0]
    return Shape((rows, *(lookup.row_shape(graph).dims or ())))


def _node(graph: Graph, name: str, plan: PoolingPlan) -> Node:
    """The packed op; see cc/ops/packed_pooled_lookup.cc."""
    lookups = plan.lookups
    tables = Tables()
    ids: Numbers[TensorRef] = Numbers()
    segments: Numbers[TensorRef] = Numbers()
    rows: Numbers[TensorRef] = Numbers()
    dense: Numbers[TensorRef] = Numbers()
    weights: Numbers[TensorRef] = Numbers()
    for lookup in lookups:
        tables.of(lookup.source)
        ids.of(lookup.read_ids)
        if lookup.segments is not None:
            segments.of(lookup.segments)
        if lookup.rows is not None:
            rows.of(lookup.rows)
        if lookup.weights is not None:
            weights.of(lookup.weights)
    pieces = [
        (output, piece.lookup if piece.dense is None else -1 - dense.of(piece.dense), piece.width)
        for output, join in enumerate(plan.joins)
        for piece in join.pieces
    ]
    splits = {lookup.segments for lookup in lookups if lookup.splits}
    widths = [lookup.row_shape(graph).elements() for lookup in lookups]
    pieces += [(len(plan.joins) + number, index, widths[index]) for number, index in enumerate(plan.separate)]  # type: ignore[misc]
    shapes = [join.shape for join in plan.joins] + [_shape(graph, lookups[index]) for index in plan.separate]
    attrs: dict[str, Any] = {
        "dtype": lookups[0].dtype,
        "num_tables": len(tables.handles),
        "ids_types": [graph.dtype_of(ref) for ref in ids],
        "segments_types": [graph.dtype_of(ref) for ref in segments],
        "segments_are_splits": [ref in splits for ref in segments],
        "rows_types": [graph.dtype_of(ref) for ref in rows],
        "num_dense": len(dense),
        "num_outputs": len(shapes),
        "lookup_names": [lookup.name.encode() for lookup in lookups],
        "lookup_table": [tables.of(lookup.source) for lookup in lookups],
        "lookup_ids": [ids[lookup.read_ids] for lookup in lookups],
        "lookup_segments": [-1 if lookup.segments is None else segments[lookup.segments] for lookup in lookups],
        "lookup_rows": [-1 if lookup.rows is None else rows[lookup.rows] for lookup in lookups],
        "lookup_combiner": [lookup.combiner.encode() for lookup in lookups],
        "lookup_drop": [lookup.drop for lookup in lookups],
        "lookup_fill": [lookup.fill for lookup in lookups],
        "piece_output": [output for output, _, _ in pieces],
        "piece_source": [source for _, source, _ in pieces],
        "piece_width": [width for _, _, width in pieces],
        "output_shapes": shapes,
        "_output_shapes": shapes,
    }
    attrs |= source_attrs([lookup.source for lookup in lookups])
    if any(lookup.sort for lookup in lookups):
        attrs["lookup_sort"] = [lookup.sort for lookup in lookups]
    if splits:
        attrs["lookup_in_turn"] = [lookup.splits for lookup in lookups]
    if any(lookup.ids_source is not None for lookup in lookups):
        for field, default in (("column", -1), ("columns", 0), ("wrap", 0), ("narrow", False)):
            read = [default if lookup.ids_source is None else getattr(lookup.ids_source, field) for lookup in lookups]
            attrs[f"lookup_{field}"] = read
    if weights:
        attrs["weights_types"] = [graph.dtype_of(ref) for ref in weights]
        attrs["lookup_weights"] = [-1 if lookup.weights is None else weights[lookup.weights] for lookup in lookups]
        attrs["lookup_drop_weightless"] = [lookup.drop_weightless for lookup in lookups]
    waits_for = [part for lookup in lookups for part in lookup.chain] + [join.node for join in plan.joins]
    controls = list(dict.fromkeys(name for node in waits_for for name in node.controls))
    inputs = [*tables.handles, *ids, *segments, *rows, *dense, *weights]
    return Node(name, PACKED_POOLED_LOOKUP, inputs, controls, lookups[0].sum.device, attrs)

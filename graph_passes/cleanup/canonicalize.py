"""One form for what front ends write differently: a read of a whole table in front of a gather becomes a row gather."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from graph_passes.analysis.compiled_calls import compiled_lookups
from graph_passes.analysis.reachability import waits_for
from graph_passes.analysis.tables import Lookup, gather_axis, other_tables, read_lookups, read_of
from graph_passes.cleanup.read_order import ReadOrder
from graph_passes.errors import GraphError
from graph_passes.ir import CONTROL, Graph, Mutation, Node
from graph_passes.pipeline.base import Declined, Pass, PassContext, PassReport, PassResult


@dataclass(frozen=True)
class Canonicalize(Pass):
    """ReadVariableOp -> GatherV2 becomes ResourceGather.

    A variable that was ever updated by a scatter copies itself on every ReadVariableOp, for ever: Keras 3 then copies
    each embedding table whole in each step, to gather a few thousand rows. A ResourceGather reads just the rows.

    The rewrite is legal when the gather may take the read's place in the order of the variable's reads and writes:

    * A write that waits for the read must wait for the gather. It does so already when a path leads from the gather to
      it; otherwise a control edge is added, unless the ids themselves depend on that write, or the edge would lead into
      or out of a loop or a branch.
    * A read that waits for a write hands its control inputs to the gather.
    * A write that is not ordered against the read is left to race as it did: declined.

    Other readers of the whole table keep their ReadVariableOp; a note says so, since its copy stays.

    Before:
        graph {feeds = [], fetches = [rows], preserve = []}
        table = _Arg() {T = resource, _handle_dtypes = [float32], _handle_shapes = [<10,4>], index = 0}
        ids = _Arg() {T = int32, index = 1}
        axis = Const() {dtype = int32, value = int32[](0)}
        read = ReadVariableOp(table) {dtype = float32} -> <10,4>
        rows = GatherV2(read, ids, axis) {Taxis = int32, Tindices = int32, Tparams = float32, batch_dims = 0} -> <?,4>
    After:
        graph {feeds = [], fetches = [rows], preserve = []}
        table = _Arg() {T = resource, _handle_dtypes = [float32], _handle_shapes = [<10,4>], index = 0}
        ids = _Arg() {T = int32, index = 1}
        axis = Const() {dtype = int32, value = int32[](0)}
        rows = ResourceGather(table, ids) {Tindices = int32, _picasso_pass = "canonicalize", batch_dims = 0, dtype = float32, validate_indices = true} -> <?,4>
    """  # noqa: E501

    name: ClassVar[str] = "canonicalize"

    def run(self, graph: Graph, context: PassContext) -> PassResult:
        report = PassReport(self.name)
        report.declined += [Declined(code, node.name) for node, code in other_tables(graph)]
        report.declined += [Declined("compiled_by_xla", node.name) for node in compiled_lookups(graph)]
        lookups = read_lookups(graph)
        if not lookups:
            return PassResult(graph, report)
        order = ReadOrder(graph, lookups)
        legal = []
        for lookup in lookups:
            declined = _why_not(graph, lookup, order)
            if declined is not None:
                report.declined.append(declined)
            elif context.take_fuel():
                legal.append(lookup)
            else:
                report.declined.append(Declined("out_of_fuel", lookup.node.name))
        after = _rewrite(graph, legal, order)
        for needs_edges in (True, False):  # edges that are harmless one by one may close a cycle together
            if after is None:
                left_out = [lookup for lookup in legal if order.followers(lookup) or not needs_edges]
                detail = "What must wait for it closes a cycle."
                report.declined += [Declined("would_form_cycle", lookup.node.name, detail) for lookup in left_out]
                legal = [lookup for lookup in legal if lookup not in left_out]
                after = _rewrite(graph, legal, order)
        assert after is not None, "a rewrite of nothing forms no cycle"
        report.rewritten = [lookup.node.name for lookup in legal]
        for read in dict.fromkeys(read_of(lookup).name for lookup in legal):
            if read in after.nodes and after.nodes[read].op == "ReadVariableOp":
                note = "The whole table is still read elsewhere, so its copy in each step stays."
                report.notes.append((read, note))
        return PassResult(after, report)


def _why_not(graph: Graph, lookup: Lookup, order: ReadOrder) -> Declined | None:
    """The reason to leave a lookup alone, or None."""
    gather, read = lookup.node, read_of(lookup)

    def declined(code: str, detail: str = "") -> Declined:
        return Declined(code, gather.name, detail)

    if gather_axis(graph, gather) != 0 or gather.attr("batch_dims", 0):
        return declined("axis_not_zero")
    if gather.attr("Tindices") not in ("int32", "int64"):
        return declined("ids_dtype")
    if not lookup.table.traceable:
        return declined("handle_not_traceable")
    if gather.device != read.device:
        return declined("other_device", f"The read is on '{read.device}', the gather on '{gather.device}'.")
    if order.context(gather) != order.context(read):
        return declined("other_control_flow")
    for write in order.writes(lookup):
        relation = order.relation(lookup, write)
        if relation == "unordered":
            return declined("unordered_write", f"Nothing orders '{write.name}' against the read of the table.")
        if relation == "after_read" and order.precedes(write.name, gather.name):
            return declined("ids_depend_on_write", f"Its ids depend on '{write.name}', which follows the read.")
    for opaque in order.opaque:
        if order.relation(lookup, opaque) == "after_read" and order.precedes(opaque.name, gather.name):
            return declined("ids_depend_on_write", f"Its ids depend on '{opaque.name}', whose Python code may write.")
    if order.followers(lookup) is None:
        return declined("write_in_other_control_flow")
    return None


def _rewrite(graph: Graph, lookups: list[Lookup], order: ReadOrder) -> Graph | None:
    """The graph with every lookup in the form of a ResourceGather; None when that would form a cycle."""
    if not lookups:
        return graph
    gathers_of: dict[str, list[str]] = {}
    for lookup in lookups:
        gathers_of.setdefault(read_of(lookup).name, []).append(lookup.node.name)
    unread = {read for read, gathers in gathers_of.items() if _is_unread(graph, read, gathers, order)}
    removed = unread - graph.kept
    mutation = Mutation(graph)
    edges = [(name, lookup.node.name) for lookup in lookups for name in order.followers(lookup) or ()]
    for lookup in lookups:
        mutation.replace(_resource_gather(graph, lookup, removed))
    for read in sorted(unread):
        gathers = gathers_of[read]
        _remove_identities(graph, mutation, read)
        if read not in removed:
            controls = [*waits_for(graph, graph.nodes[read].controls, removed), *gathers]
            mutation.replace(Node(read, "NoOp", (), controls, graph.nodes[read].device))
            continue
        for name in order.waiting(read):
            after = [gather for gather in gathers if not order.precedes(name, gather)]
            edges += [(name, other) for other in after or waits_for(graph, graph.nodes[read].controls, removed)]
        mutation.drop_controls(read)
        mutation.remove(read)
    for name, control in edges:
        for target in gathers_of[name] if name in removed else [name]:
            mutation.add_control(target, control)
    after_edit = mutation.apply()
    try:
        _ = after_edit.topological
    except GraphError:
        return None
    return after_edit


def _is_unread(graph: Graph, read: str, gathers: list[str], order: ReadOrder) -> bool:
    """Whether nobody needs the value of a read any more once `gathers` do without it."""
    if read in graph.kept_for_data:
        return False
    if read in graph.kept and any(order.precedes(name, gather) for name in order.waiting(read) for gather in gathers):
        return False  # it would stay as something to wait for, and a gather would wait for what waits for the gather
    return all(use.index == CONTROL or _leads_only_to(graph, use.node, use.index, gathers) for use in graph.uses(read))


def _leads_only_to(graph: Graph, node: Node, index: int, gathers: list[str]) -> bool:
    """Whether input `index` of `node` is the table of one of `gathers`, or of an Identity that leads only to such."""
    if node.name in gathers:
        return index == 0
    if node.op != "Identity" or node.name in graph.kept or node.controls:
        return False
    return all(_leads_only_to(graph, use.node, use.index, gathers) for use in graph.uses(node.name))


def _remove_identities(graph: Graph, mutation: Mutation, name: str) -> None:
    for use in graph.uses(name):
        if use.index != CONTROL and use.node.op == "Identity":
            mutation.remove(use.node.name)
            _remove_identities(graph, mutation, use.node.name)


def _resource_gather(graph: Graph, lookup: Lookup, removed: set[str]) -> Node:
    gather, read = lookup.node, read_of(lookup)
    controls = list(gather.controls)
    source = graph.producer(gather.inputs[0])
    while source.name != read.name:
        controls += source.controls
        source = graph.producer(source.inputs[0])
    controls = waits_for(graph, [*controls, *read.controls], removed)
    attrs = {key: value for key, value in gather.attrs().items() if key.startswith("_")}
    attrs |= {"Tindices": gather.attr("Tindices"), "dtype": lookup.dtype, "batch_dims": 0, "validate_indices": True}
    attrs["_picasso_pass"] = Canonicalize.name
    return Node(gather.name, "ResourceGather", [lookup.handle, lookup.ids], controls, gather.device, attrs)

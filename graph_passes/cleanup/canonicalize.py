"""One form for what front ends write differently: a read of a whole table in front of a gather becomes a row gather."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from graph_passes.analysis.control_flow import Context, contexts
from graph_passes.analysis.reachability import Reachability
from graph_passes.analysis.tables import Access, Lookup, accesses, gather_axis, read_lookups
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
      it; otherwise a control edge is added, unless the ids themselves depend on that write.
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
        lookups = read_lookups(graph)
        if not lookups:
            return PassResult(graph, report)
        order = _Order(graph, lookups)
        legal = []
        for lookup in lookups:
            declined = _why_not(graph, lookup, order)
            if declined is not None:
                report.declined.append(declined)
            elif context.take_fuel():
                legal.append(lookup)
            else:
                report.declined.append(Declined("out_of_fuel", lookup.node.name, "The limit on rewrites was reached."))
        after = _rewrite(graph, legal, order)
        if after is None:  # two added control edges close a cycle: keep only what needs none
            for lookup in [lookup for lookup in legal if order.new_edges(lookup)]:
                legal.remove(lookup)
                report.declined.append(Declined("would_form_cycle", lookup.node.name, "Its order closes a cycle."))
            after = _rewrite(graph, legal, order) or graph
        report.rewritten = [lookup.node.name for lookup in legal]
        for lookup in legal:
            if lookup.read is not None and after.nodes.get(lookup.read.name, lookup.node).op == "ReadVariableOp":
                note = "The whole table is still read elsewhere, so its copy in each step stays."
                report.notes.append((lookup.read.name, note))
        return PassResult(after if legal else graph, report)


class _Order:
    """The order of reads, gathers and writes of the variables behind some lookups."""

    def __init__(self, graph: Graph, lookups: list[Lookup]):
        self._access = accesses(graph)
        self.contexts: dict[str, Context] = contexts(graph)
        names: set[str] = set()
        for lookup in lookups:
            assert lookup.read is not None
            names |= {lookup.node.name, lookup.read.name, *(w.name for w in self.writes(lookup))}
            names |= {use.node.name for use in graph.uses(lookup.read.name) if use.index == CONTROL}
        self._reach = Reachability(graph, names)

    def writes(self, lookup: Lookup) -> list[Node]:
        return self._access.get(lookup.table.root, Access([], [])).writes

    def relation(self, lookup: Lookup, write: Node) -> str:
        """ "after_read", "before_read" or "unordered": where a write stands against the read."""
        assert lookup.read is not None
        if self._reach.reaches(lookup.read.name, write.name):
            return "after_read"
        return "before_read" if self._reach.reaches(write.name, lookup.read.name) else "unordered"

    def precedes(self, node: Node, gather: str) -> bool:
        """Whether `node`, a write or a node that waits for a read, lies upstream of a gather."""
        return self._reach.reaches(node.name, gather)

    def new_edges(self, lookup: Lookup) -> list[Node]:
        """Writes that waited for the read and must be told to wait for the gather."""
        return [
            write
            for write in self.writes(lookup)
            if self.relation(lookup, write) == "after_read" and not self._reach.reaches(lookup.node.name, write.name)
        ]


def _why_not(graph: Graph, lookup: Lookup, order: _Order) -> Declined | None:
    """The reason to leave a lookup alone, or None."""
    gather, read = lookup.node, lookup.read
    assert read is not None

    def declined(code: str, detail: str) -> Declined:
        return Declined(code, gather.name, detail)

    if gather_axis(graph, gather) != 0 or gather.attr("batch_dims", 0):
        return declined("axis_not_zero", "It does not gather whole rows along axis 0.")
    if not lookup.table.traceable:
        return declined("handle_not_traceable", "Which variable it reads is decided while the graph runs.")
    if gather.device != read.device:
        return declined("other_device", f"The read is on '{read.device}', the gather on '{gather.device}'.")
    here, there = (order.contexts.get(node.name, frozenset()) for node in (gather, read))
    if not there <= here:
        return declined("other_control_flow", "The read and the gather are in different branches or loops.")
    for write in order.writes(lookup):
        relation = order.relation(lookup, write)
        if relation == "unordered":
            return declined("unordered_write", f"Nothing orders '{write.name}' against the read of the table.")
        if relation == "after_read" and order.precedes(write, lookup.node.name):
            return declined("ids_depend_on_write", f"Its ids depend on '{write.name}', which follows the read.")
    return None


def _rewrite(graph: Graph, lookups: list[Lookup], order: _Order) -> Graph | None:
    """The graph with every lookup in the form of a ResourceGather; None when that would form a cycle."""
    mutation = Mutation(graph)
    gathers_of: dict[str, list[str]] = {}
    ordered = False
    for lookup in lookups:
        assert lookup.read is not None
        mutation.replace(_resource_gather(lookup))
        gathers_of.setdefault(lookup.read.name, []).append(lookup.node.name)
        for write in order.new_edges(lookup):
            mutation.add_control(write.name, lookup.node.name)
            ordered = True
    for read, gathers in gathers_of.items():
        uses = graph.uses(read)
        others = [use for use in uses if use.index != CONTROL and use.node.name not in gathers]
        others = [use for use in others if not _feeds_only(graph, use.node, gathers)]
        if read in graph.kept:  # it stays as something to wait for, so nothing upstream of a gather may wait for it
            waiting = [use for use in uses if use.index == CONTROL]
            others += [use for use in waiting if any(order.precedes(use.node, gather) for gather in gathers)]
        if not others and read not in graph.kept_for_data:
            _retire(graph, mutation, read, gathers, order)
    after = mutation.apply()
    if ordered:
        try:
            _ = after.topological
        except GraphError:
            return None
    return after


def _resource_gather(lookup: Lookup) -> Node:
    gather, read = lookup.node, lookup.read
    assert read is not None
    attrs = {key: value for key, value in gather.attrs().items() if key.startswith("_")}
    attrs |= {"Tindices": gather.attr("Tindices"), "dtype": lookup.dtype, "batch_dims": 0, "validate_indices": True}
    attrs["_picasso_pass"] = Canonicalize.name
    controls = gather.controls + read.controls
    return Node(gather.name, "ResourceGather", [lookup.handle, lookup.ids], controls, gather.device, attrs)


def _feeds_only(graph: Graph, node: Node, gathers: list[str]) -> bool:
    """Whether `node` is an Identity that leads to nothing but `gathers`."""
    if node.op != "Identity" or node.name in graph.kept or node.controls:
        return False
    return all(
        use.index != CONTROL and (use.node.name in gathers or _feeds_only(graph, use.node, gathers))
        for use in graph.uses(node.name)
    )


def _retire(graph: Graph, mutation: Mutation, read: str, gathers: list[str], order: _Order) -> None:
    """Removes a read that nobody needs any more, and lets those that waited for it wait for its gathers.

    A node that waits for the read and computes the ids cannot wait for the gather, and need not: it is no write.
    """
    for use in graph.uses(read):
        if use.index == CONTROL and read not in graph.kept:
            for gather in gathers:
                if not order.precedes(use.node, gather):
                    mutation.add_control(use.node.name, gather)
        elif use.node.op == "Identity":
            _remove_identities(graph, mutation, use.node)
    if read in graph.kept:
        node = graph.nodes[read]
        mutation.replace(Node(read, "NoOp", (), [*node.controls, *gathers], node.device))
        return
    mutation.drop_controls(read)
    mutation.remove(read)


def _remove_identities(graph: Graph, mutation: Mutation, node: Node) -> None:
    mutation.remove(node.name)
    for use in graph.uses(node.name):
        if use.node.op == "Identity":
            _remove_identities(graph, mutation, use.node)

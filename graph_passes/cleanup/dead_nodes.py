"""Removes nodes that nothing reads any more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from graph_passes.analysis.control_flow import has_branches_or_loops
from graph_passes.analysis.reachability import waits_for
from graph_passes.ir import CONTROL, Graph, Mutation, Node
from graph_passes.ir.op_defs import READ_ONLY, can_drop
from graph_passes.pipeline.base import Pass, PassContext, PassReport, PassResult

# Sources and sinks that a function or a session refers to from outside the graph.
_ROOTS = frozenset({"_Arg", "_Retval", "_DeviceArg", "_DeviceRetval", "Placeholder", "NoOp"})


@dataclass(frozen=True)
class DeadNodes(Pass):
    """Removes what has no effect and no reader, upwards from the last consumer.

    Kept are fed, fetched and preserved nodes, function arguments and results, and every op with an effect. Reads of a
    variable (ReadVariableOp, ResourceGather) go when nothing uses what they read; one that must live on under its name,
    as something to wait for, becomes a NoOp. What only waited for a node that goes waits for what that node needed; in
    graphs with branches or loops, such nodes stay.

    Before:
        graph {feeds = [], fetches = [out], preserve = []}
        x = Placeholder() {dtype = float32, shape = <2>}
        out = Neg(x) {T = float32}
        unread = Shape(square) {T = float32, out_type = int32}
        square = Square(x) {T = float32}
    After:
        graph {feeds = [], fetches = [out], preserve = []}
        x = Placeholder() {dtype = float32, shape = <2>}
        out = Neg(x) {T = float32}
    """

    name: ClassVar[str] = "dead_nodes"

    def run(self, graph: Graph, context: PassContext) -> PassResult:
        report = PassReport(self.name)
        dead = _dead(graph)
        if not dead:
            return PassResult(graph, report)
        mutation, removed = Mutation(graph), dead - graph.kept
        for name in sorted(dead):
            node = graph.nodes[name]
            if name in graph.kept:
                controls = _waited_for(graph, node, removed)
                mutation.replace(Node(name, "NoOp", (), controls, node.device))
                continue
            waiting = [use.node.name for use in graph.uses(name) if use.node.name not in dead]
            for control in _waited_for(graph, node, removed) if waiting else ():
                for other in waiting:
                    mutation.add_control(other, control)
            mutation.drop_controls(name)
            mutation.remove(name)
        report.rewritten = sorted(dead)
        return PassResult(mutation.apply(), report)


def _dead(graph: Graph) -> set[str]:
    """Names of nodes that nobody reads and that nobody need wait for."""
    data = {name: sum(use.index != CONTROL for use in graph.uses(name)) for name in graph.nodes}
    waited_for = {name: len(graph.uses(name)) - count for name, count in data.items()}
    dead: set[str] = set()
    waiting = sorted(name for name, count in data.items() if not count)
    while waiting:
        node = graph.nodes[waiting.pop()]
        if node.name in dead or data[node.name] or not _can_go(graph, node, waited_for[node.name]):
            continue
        dead.add(node.name)
        for ref in node.inputs:
            data[ref.node] -= 1
            if not data[ref.node]:
                waiting.append(ref.node)
        for name in node.controls:
            waited_for[name] -= 1
            waiting.append(name)
    return dead


def _can_go(graph: Graph, node: Node, waited_for: int) -> bool:
    """Whether a node that nobody reads can be taken away, given how many nodes still wait for it."""
    if node.op in _ROOTS or node.name in graph.kept_for_data or not can_drop(node):
        return False
    if not waited_for and node.name not in graph.kept:
        return True
    if has_branches_or_loops(graph):
        # What waits for a node in a branch is off with it, which is not so of what waits for the branch's Switch.
        return node.op in READ_ONLY and all(
            ref.node in graph.fed or not graph.producer(ref).inputs for ref in node.inputs[1:]
        )
    return node.name not in graph.kept or node.op in READ_ONLY


def _waited_for(graph: Graph, node: Node, removed: set[str]) -> list[str]:
    """What somebody waited for who waited for a node that goes: its own inputs too, and what they are computed from.

    What is there from the start need not be waited for.
    """
    if has_branches_or_loops(graph):
        return waits_for(graph, node.controls, removed)
    found = waits_for(graph, node.predecessors(), removed, through_data=True)
    return [name for name in found if name in graph.fed or graph.nodes[name].predecessors()]

"""Removes nodes that nothing reads any more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from graph_passes.ir import Graph, Mutation
from graph_passes.ir.op_defs import can_drop
from graph_passes.pipeline.base import Pass, PassContext, PassReport, PassResult

# Sources and sinks that a function or a session refers to from outside the graph.
_ROOTS = frozenset({"_Arg", "_Retval", "_DeviceArg", "_DeviceRetval", "Placeholder", "NoOp"})


@dataclass(frozen=True)
class DeadNodes(Pass):
    """Removes what has no effect and no reader, upwards from the last consumer.

    Kept are fed, fetched and preserved nodes, function arguments and results, and every op with an effect. Reads of a
    variable (ReadVariableOp, ResourceGather) go when nothing uses what they read.

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
        users = {name: len(graph.uses(name)) for name in graph.nodes}
        dead: list[str] = []
        waiting = sorted(name for name, count in users.items() if not count)
        while waiting:
            node = graph.nodes[waiting.pop()]
            if node.op in _ROOTS or node.name in graph.kept or not can_drop(node):
                continue
            dead.append(node.name)
            for names in ([ref.node for ref in node.inputs], node.controls):
                for name in names:
                    users[name] -= 1
                    if not users[name]:
                        waiting.append(name)
        if not dead:
            return PassResult(graph, report)
        mutation = Mutation(graph)
        for name in dead:
            mutation.remove(name)
        report.rewritten = sorted(dead)
        return PassResult(mutation.apply(), report)

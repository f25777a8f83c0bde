"""Of the names that a function's caller can only wait for, few stay."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

from graph_passes.analysis.control_flow import has_branches_or_loops
from graph_passes.ir import Graph, Mutation, Node
from graph_passes.pipeline.base import Pass, PassContext, PassReport, PassResult


@dataclass(frozen=True)
class ControlOutputs(Pass):
    """Merges the NoOps that are control outputs of a function.

    TensorFlow makes every stateful node of a function one of its control outputs: whoever calls the function waits for
    them all. Where packed ops took their place only NoOps are left, two or more for each table, which the executor
    would still run one by one. One that waits for whatever the others waited for does for all of them. A node of the
    function that waits for such a NoOp waits for what that one waits for, if it is a single node.

    Before:
        graph {feeds = [], fetches = [], preserve = [a, b, c, r]}
        t = _Arg() {T = resource, _handle_dtypes = [float32], _handle_shapes = [<10,4>], index = 0}
        u = _Arg() {T = resource, _handle_dtypes = [float32], _handle_shapes = [<10,4>], index = 1}
        one = _Arg() {T = float32, index = 2} -> <10,4>
        r = AssignVariableOp(t, one) {dtype = float32, validate_shape = false}
        s = AssignVariableOp(u, one) {dtype = float32, validate_shape = false}
        a = NoOp(^r)
        b = NoOp(^s)
        c = NoOp(^r)
        d = Neg(one, ^c) {T = float32} -> <10,4>
    After:
        graph {feeds = [], fetches = [], preserve = [a, b, c, r]}
        one = _Arg() {T = float32, index = 2} -> <10,4>
        t = _Arg() {T = resource, _handle_dtypes = [float32], _handle_shapes = [<10,4>], index = 0}
        u = _Arg() {T = resource, _handle_dtypes = [float32], _handle_shapes = [<10,4>], index = 1}
        r = AssignVariableOp(t, one) {dtype = float32, validate_shape = false}
        s = AssignVariableOp(u, one) {dtype = float32, validate_shape = false}
        a = NoOp(^r, ^s)
        d = Neg(one, ^r) {T = float32} -> <10,4>
    """

    name: ClassVar[str] = "control_outputs"

    def run(self, graph: Graph, context: PassContext) -> PassResult:
        report = PassReport(self.name)
        # What waits for something in a branch that is not taken never runs.
        if not graph.is_function or has_branches_or_loops(graph):
            return PassResult(graph, report)
        mutation = Mutation(graph)
        groups = _by_device(graph)
        merged = frozenset(name for names in groups for name in names)
        for names in groups:
            if len(names) < 2 or not context.take_fuel():
                continue
            waits = []
            for name in names:
                behind = [_behind(graph, control, merged) for control in graph.nodes[name].controls]
                if graph.uses(name):
                    mutation.redirect_controls(name, behind[0])
                waits += behind
            first, *others = names
            mutation.replace(Node(first, "NoOp", (), tuple(dict.fromkeys(waits)), graph.nodes[first].device))
            for name in others:
                mutation.remove_wait(name)
            report.rewritten += others
        return PassResult(mutation.apply() if report.rewritten else graph, report)


def _behind(graph: Graph, name: str, merged: Collection[str]) -> str:
    """What a node waits for that waited for `name`: what that waited for, if it is one of the `merged`."""
    while name in merged:
        (name,) = graph.nodes[name].controls
    return name


def _by_device(graph: Graph) -> list[list[str]]:
    """The NoOps that can be merged, those of one device together, sorted; others wait for none or for a single node."""
    names: dict[str, list[str]] = {}
    for name in sorted(graph.mere_waits):
        if graph.uses(name) and len(graph.nodes[name].controls) != 1:
            continue
        names.setdefault(graph.nodes[name].device, []).append(name)
    return list(names.values())

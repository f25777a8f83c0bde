"""Small passes for tests of what runs passes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from graph_passes.ir import Graph, Mutation, Node, TensorRef
from graph_passes.pipeline.base import Pass, PassContext, PassReport, PassResult


@dataclass(frozen=True)
class AddNodes(Pass):
    """Adds NoOp nodes, once."""

    count: int = 1
    prefix: str = "added"

    name: ClassVar[str] = "add_nodes"

    def run(self, graph: Graph, context: PassContext) -> PassResult:
        report = PassReport(self.name)
        wanted = [f"{self.prefix}_{number}" for number in range(self.count)]
        mutation = Mutation(graph)
        for name in wanted:
            if name not in graph.nodes and context.take_fuel():
                mutation.add(Node(name, "NoOp"))
                report.rewritten.append(name)
        return PassResult(mutation.apply() if report.rewritten else graph, report)


@dataclass(frozen=True)
class Explode(Pass):
    """Raises."""

    message: str = "boom"

    name: ClassVar[str] = "explode"

    def run(self, graph: Graph, context: PassContext) -> PassResult:
        raise ValueError(self.message)


@dataclass(frozen=True)
class DropWrites(Pass):
    """Does what no pass may."""

    name: ClassVar[str] = "drop_writes"

    def run(self, graph: Graph, context: PassContext) -> PassResult:
        mutation = Mutation(graph)
        for node in graph.of("AssignVariableOp"):
            mutation.remove(node.name)
        return PassResult(mutation.apply(), PassReport(self.name))


def breaking_pass() -> Pass:
    """A pass that gives a graph with a cycle. It is made here, so that the verifier of conftest.py lets it through."""

    class MakeCycle(Pass):
        name: ClassVar[str] = "make_cycle"

        def options(self) -> dict[str, object]:
            return {}

        def run(self, graph: Graph, context: PassContext) -> PassResult:
            node = Node("loop", "Identity", [TensorRef("loop")], attrs=graph.nodes["a"].attrs())
            return PassResult(graph.with_nodes({**graph.nodes, "loop": node}), PassReport(self.name))

    return MakeCycle()

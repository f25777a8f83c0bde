"""Statements that belong together: all that one step of an optimizer does to a variable and its slots."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from graph_passes.analysis.control_flow import Context
from graph_passes.analysis.reachability import Reachability, group_levels
from graph_passes.analysis.tables import accesses
from graph_passes.analysis.update_expressions import (
    GRADIENT,
    PARAMETER,
    STATE,
    TABLE,
    Binding,
    Expressions,
    Program,
)
from graph_passes.ir import DType, Graph, Node, Shape, TensorRef
from graph_passes.rewrite.statement import Statement
from graph_passes.rewrite.update_ids import UpdateIds


@dataclass(eq=False)
class Cluster:
    """The update of one variable and its slots: one table of a packed update.

    Attributes:
        statements: what it consists of, in an order in which they can run.
        shape: static shape of its variables.
        dtype: their dtype.
        ids: the ids whose rows it works on, or None.
        inputs: nodes that must run before it.
        handles: a handle of each of its variables.
        program: what it does with each row; set by `update_legality.settle`.
        binding: what the program's names stand for.
    """

    statements: list[Statement]
    shape: Shape
    dtype: DType
    ids: UpdateIds | None
    inputs: list[str] = field(default_factory=list)
    handles: dict[str, TensorRef] = field(default_factory=dict)
    program: Program | None = None
    binding: Binding | None = None

    @property
    def name(self) -> str:
        """The last of its writes: that of the variable itself as a rule."""
        return self.statements[-1].node.name

    @property
    def node(self) -> Node:
        return self.statements[-1].node


class Clusters:
    """Forms the clusters of one graph and knows how they hang together.

    Args:
        graph: the graph.
        expressions: the expressions of the statements.
        contexts: see `graph_passes.analysis.control_flow.contexts`.
        statements: the statements.
    """

    def __init__(
        self,
        graph: Graph,
        expressions: Expressions,
        contexts: dict[str, Context],
        statements: Sequence[Statement],
    ):
        self.graph = graph
        self.expressions = expressions
        self.contexts = contexts
        self.access = accesses(graph)
        self._place = {node.name: index for index, node in enumerate(graph.canonical())}
        self._statements = self._sorted(statements)
        writers = {node.name for access in self.access.values() for node in access.writes}
        self.reach = Reachability(graph, writers | {statement.node.name for statement in statements})

    def form(self) -> list[Cluster]:
        """Clusters of statements that share variables, as large as they can be without waiting for themselves."""
        owner: dict[str, Cluster] = {}
        alive: dict[int, Cluster] = {}
        for statement in self._statements:
            merged = Cluster([statement], statement.shape, statement.dtype, statement.ids)
            for root in self.roots([statement]):
                other = owner.get(root)
                union = None if other is None or id(other) not in alive else self._union(other, merged)
                if union is not None:
                    del alive[id(other)]
                    merged = union
            alive[id(merged)] = merged
            for root in self.roots(merged.statements):
                owner[root] = merged
        return sorted(alive.values(), key=lambda cluster: cluster.name)

    def _sorted(self, statements: Iterable[Statement]) -> list[Statement]:
        return sorted(statements, key=lambda statement: self._place[statement.node.name])

    def _union(self, one: Cluster, other: Cluster) -> Cluster | None:
        ids = one.ids or other.ids
        if one.ids and other.ids and not one.ids.agrees(other.ids):
            return None
        first, second = one.statements[0].node, other.statements[0].node
        same = (one.shape, one.dtype, self.context(first), first.device)
        if same != (other.shape, other.dtype, self.context(second), second.device):
            return None
        union = Cluster(self._sorted([*one.statements, *other.statements]), one.shape, one.dtype, ids)
        return None if self.waits_for_itself(union, self.own_inputs(union)) else union

    def context(self, node: Node) -> Context:
        return self.contexts.get(node.name, frozenset())

    def roots(self, statements: Iterable[Statement]) -> list[str]:
        """Variables that statements read as states or write."""
        reads = [self.expressions[leaf].data[0] for leaf in self.expressions.leaves(_values(statements), STATE)]
        writes = [write.root for statement in statements for write in statement.writes]
        return list(dict.fromkeys([*writes, *reads]))

    def reads(self, cluster: Cluster) -> list[tuple[str, str]]:
        """(variable, read) of all states that are read from the graph."""
        leaves = [self.expressions[leaf].data for leaf in self.expressions.leaves(_values(cluster.statements), STATE)]
        return [leaf for leaf in leaves if leaf[1] is not None]

    def own_inputs(self, cluster: Cluster) -> list[str]:
        """Nodes whose outputs a cluster takes, and nodes that its reads and writes wait for."""
        found: dict[str, None] = {}
        for op in (GRADIENT, TABLE, PARAMETER):
            for leaf in self.expressions.leaves(_values(cluster.statements), op):
                data = self.expressions[leaf].data
                sources = [ref for source in data for ref in source.refs] if op == GRADIENT else [data]
                found |= {ref.node: None for ref in sources if isinstance(ref, TensorRef)}
        if cluster.ids is not None:
            found |= {source.ref.node: None for source in cluster.ids.segments}
        own = dict.fromkeys(
            [*(one.node.name for one in cluster.statements), *(read for _, read in self.reads(cluster))]
        )
        context = self.context(cluster.node)
        for name in own:
            for control in self.graph.nodes[name].controls:
                if control not in own and self.contexts.get(control, context) == context:
                    found[control] = None
        return list(found)

    def waits_for_itself(self, cluster: Cluster, inputs: Iterable[str]) -> bool:
        writes = self.reach.bits(statement.node.name for statement in cluster.statements)
        return any(self.reach.reaching(name) & writes for name in inputs)

    def levels(self, clusters: Sequence[Cluster]) -> tuple[dict[str, int], list[Cluster]]:
        """How many clusters lie on the longest path to each one, and clusters that would wait for each other.

        Merging all clusters of one level, for all levels at once, forms no cycle: see `reachability.group_levels`.
        """
        own = {c.name: self.reach.bits(s.node.name for s in c.statements) for c in clusters}
        waits = {cluster.name: self.reach.reaching(*cluster.inputs) for cluster in clusters}
        level = group_levels(own, waits)
        return level, [cluster for cluster in clusters if cluster.name not in level]


def _values(statements: Iterable[Statement]) -> list[int]:
    return [write.value for statement in statements for write in statement.writes]

"""Which clusters can be packed: nothing may see a variable in the middle of its update, and no order may be lost."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence

from graph_passes.analysis.control_flow import exclusive, frames
from graph_passes.analysis.tables import Access, table_of
from graph_passes.analysis.update_expressions import STATE, Binding, Program, ProgramBuilder
from graph_passes.ir import Node, TensorRef
from graph_passes.ir.op_defs import can_drop
from graph_passes.packing.update_clusters import Cluster, Clusters
from graph_passes.pipeline.base import Declined
from graph_passes.rewrite.statement import NotPackable, Statement


class Legality:
    """Settles the clusters of one graph.

    Args:
        clusters: what is known about all of them.
    """

    def __init__(self, clusters: Clusters):
        self._all = clusters

    def settle(self, clusters: Sequence[Cluster]) -> tuple[list[Cluster], list[Declined]]:
        """Programs and inputs of the clusters that can be packed, and why the others cannot.

        What a cluster that stays reads is read after all, so the question is asked again until no answer changes.
        """
        left, declined = list(clusters), []
        while True:
            needed = self._needed(left) | self._shared_reads(left)
            refused: list[Cluster] = []
            for cluster in left:
                try:
                    self._settle(cluster, needed)
                except NotPackable as reason:
                    refused.append(cluster)
                    nodes = [statement.node.name for statement in cluster.statements]
                    declined += [Declined(reason.code, name, reason.detail) for name in nodes]
            if not refused:
                return left, declined
            left = [cluster for cluster in left if cluster not in refused]

    def _needed(self, clusters: Sequence[Cluster]) -> set[str]:
        """Nodes whose outputs somebody reads once the clusters are packed."""
        graph = self._all.graph
        gone = {statement.node.name for cluster in clusters for statement in cluster.statements}
        waiting = [node.name for node in graph.nodes.values() if node.name not in gone and not can_drop(node)]
        waiting += [node.name for node in graph.of("_Retval")]
        waiting += [name for name in graph.kept_for_data if name in graph.nodes]
        waiting += [name for cluster in clusters for name in self._all.own_inputs(cluster)]
        needed = set(waiting)
        while waiting:
            for ref in graph.nodes[waiting.pop()].inputs:
                if ref.node not in needed:
                    needed.add(ref.node)
                    waiting.append(ref.node)
        return needed

    def _shared_reads(self, clusters: Sequence[Cluster]) -> set[str]:
        """Reads that two clusters use: one of these may stay after all, for want of gain or of fuel."""
        users = Counter(read for cluster in clusters for _, read in dict.fromkeys(self._all.reads(cluster)))
        return {read for read, count in users.items() if count > 1}

    def _settle(self, cluster: Cluster, needed: set[str]) -> None:
        members = {statement.node.name for statement in cluster.statements}
        reads = self._all.reads(cluster)
        inputs = self._all.own_inputs(cluster)
        for root in self._all.roots(cluster.statements):
            access = self._all.access.get(root, Access([], []))
            own = [s.node.name for s in cluster.statements if any(write.root == root for write in s.writes)]
            self._check_chain(root, own)
            for write in access.writes:
                if write.name not in members:
                    self._check_other_write(write, own, [read for other, read in reads if other == root], members)
            inputs += self._earlier_readers(access, own, needed, members)
        context = self._all.context(cluster.node)
        if any(self._all.contexts.get(name, frozenset()) - context for name in inputs):
            raise NotPackable("other_control_flow", "What it needs is in a branch or loop that it is not in.")
        if self._all.waits_for_itself(cluster, inputs):
            raise NotPackable("would_form_cycle", "What it needs waits for one of its own writes.")
        cluster.inputs = list(dict.fromkeys(inputs))
        cluster.handles = self._handles(cluster)
        cluster.program, cluster.binding = self._program(cluster)
        read = {word for step in cluster.program.instructions for word in step.split()}
        for index, result in enumerate(cluster.program.results):
            if result != f"s{index}" and f"s{index}" not in read:
                raise NotPackable("not_an_update")

    def _handles(self, cluster: Cluster) -> dict[str, TensorRef]:
        nodes = [statement.node.name for statement in cluster.statements]
        nodes += [read for _, read in self._all.reads(cluster)]
        refs = [ref for name in nodes for ref in self._all.graph.nodes[name].inputs]
        found: dict[str, TensorRef] = {}
        for ref in refs:
            if self._all.graph.dtype_of(ref) == "resource":
                found.setdefault(table_of(self._all.graph, ref).root, ref)
        return found

    def _check_chain(self, root: str, own: list[str]) -> None:
        for before, after in itertools.pairwise(own):
            if not self._all.reach.reaching(after) & self._all.reach.bits([before]):
                raise NotPackable("unordered_write", f"Nothing orders '{before}' against '{after}'.")

    def _check_other_write(self, write: Node, own: list[str], reads: list[str], members: set[str]) -> None:
        """A write by somebody else must come before all reads and writes of the cluster, or after all its writes."""
        node = self._all.graph.nodes[next(iter(members))]
        if exclusive(self._all.context(write), self._all.context(node)):
            return
        bit = self._all.reach.bits([write.name])
        if all(self._all.reach.reaching(name) & bit for name in [*own, *reads]):
            return
        writes = self._all.reach.bits(own or members)
        if self._all.reach.reaching(write.name) & writes != writes:
            raise NotPackable(
                "unordered_write", f"'{write.name}' writes the variable too, in the middle of the update."
            )

    def _earlier_readers(self, access: Access, own: list[str], needed: set[str], members: set[str]) -> list[str]:
        """Readers that stay and must come before the update; those that come after all writes do so anyway."""
        found = []
        writes = self._all.reach.bits(own)
        for read in access.reads:
            if read.name not in needed or read.name in members or not own:
                continue
            before = self._all.reach.reaching(read.name) & writes
            if before and before != writes:
                raise NotPackable(
                    "read_between_updates", f"'{read.name}' reads the variable between two of its updates."
                )
            if not before and not self._outside_loop(read, next(iter(members))):
                found.append(read.name)
        return found

    def _outside_loop(self, read: Node, member: str) -> bool:
        """Whether a read lies outside a cluster's loop: no edge may lead in, and what enters waits for it."""
        inner = frames(self._all.context(self._all.graph.nodes[member]))
        return bool(inner - self._all.context(read))

    def _program(self, cluster: Cluster) -> tuple[Program, Binding]:
        """The program of a cluster. Statements that do not wait for each other come in the order of their form."""
        writes_of: dict[str, list[str]] = {}
        for statement in cluster.statements:
            for write in statement.writes:
                writes_of.setdefault(write.root, []).append(statement.node.name)
        versions = {
            (root, read): sum(
                bool(self._all.reach.reaching(read) & self._all.reach.bits([w])) for w in writes_of.get(root, ())
            )
            for root, read in self._all.reads(cluster)
        }
        builder = ProgramBuilder(self._all.expressions)
        for statement in self._in_order(cluster):
            for write in statement.writes:
                builder.add(write, versions)
        return builder.finish()

    def _in_order(self, cluster: Cluster) -> list[Statement]:
        """Statements so that each comes after what it waits for, the smallest form first.

        A statement may read a variable before another one writes it: versions tell what it reads then.
        """
        roles = self._roles(cluster)
        left, done = list(cluster.statements), []
        while left:
            names = [statement.node.name for statement in left]
            ready = [one for one in left if not any(self._waits(one, name) for name in names)]
            ready.sort(key=lambda statement: self._form(statement, roles))
            done.append(ready[0])
            left.remove(ready[0])
        return done

    def _roles(self, cluster: Cluster) -> dict[str, list[tuple[str, bytes]]]:
        """What is done to each variable: it tells apart those that one and the same statement form works on."""
        expressions = self._all.expressions
        roles: dict[str, list[tuple[str, bytes]]] = {}
        for statement in cluster.statements:
            for write in statement.writes:
                roles.setdefault(write.root, []).append((write.op, expressions.form(write.value)))
                for leaf in expressions.leaves([write.value], STATE):
                    roles.setdefault(expressions[leaf].data[0], []).append(("read", expressions.form(write.value)))
        return {root: sorted(role) for root, role in roles.items()}

    def _waits(self, statement: Statement, other: str) -> bool:
        name = statement.node.name
        return other != name and bool(self._all.reach.reaching(name) & self._all.reach.bits([other]))

    def _form(self, statement: Statement, roles: dict[str, list[tuple[str, bytes]]]) -> list[object]:
        """A key to sort by that depends on nothing but what the statement does."""
        expressions = self._all.expressions
        values = [write.value for write in statement.writes]
        states = [expressions[leaf].data[0] for leaf in expressions.leaves(values, STATE)]
        return [
            [(write.op, expressions.form(write.value)) for write in statement.writes],
            [roles[write.root] for write in statement.writes],
            [roles[root] for root in states],
        ]

"""Where the reads of a variable stand among its writes, and what must wait for a gather that takes a read's place."""

from __future__ import annotations

from collections.abc import Sequence

from graph_passes.analysis.control_flow import Context, contexts, frames
from graph_passes.analysis.reachability import Reachability
from graph_passes.analysis.tables import Access, Lookup, accesses, read_of
from graph_passes.ir import CONTROL, Graph, Node


class ReadOrder:
    """The order of reads, gathers and writes of the variables behind some lookups.

    Args:
        graph: the graph.
        lookups: gathers of what a ReadVariableOp gives.
    """

    def __init__(self, graph: Graph, lookups: Sequence[Lookup]):
        self._graph = graph
        self._access = accesses(graph)
        self._contexts = contexts(graph)
        self.opaque = graph.of("EagerPyFunc", "PyFunc", "PyFuncStateless")  # what they do to variables shows nowhere
        names = {node.name for node in self.opaque}
        for lookup in lookups:
            read = read_of(lookup).name
            names |= {lookup.node.name, read, *self.waiting(read), *(write.name for write in self.writes(lookup))}
        self._reach = Reachability(graph, names)

    def context(self, node: Node | str) -> Context:
        """The branches and loops around a node."""
        return self._contexts.get(node if isinstance(node, str) else node.name, frozenset())

    def waiting(self, read: str) -> list[str]:
        """Nodes that wait for a read through a control edge."""
        return [use.node.name for use in self._graph.uses(read) if use.index == CONTROL]

    def writes(self, lookup: Lookup) -> list[Node]:
        """Nodes that may write the variable of a lookup."""
        return self._access.get(lookup.table.root, Access([], [])).writes

    def relation(self, lookup: Lookup, write: Node) -> str:
        """ "after_read", "before_read" or "unordered": where a write stands against the read."""
        read = read_of(lookup).name
        if self._reach.reaches(read, write.name):
            return "after_read"
        return "before_read" if self._reach.reaches(write.name, read) else "unordered"

    def precedes(self, name: str, gather: str) -> bool:
        """Whether a write, or a node that waits for a read, lies upstream of a gather."""
        return self._reach.reaches(name, gather)

    def followers(self, lookup: Lookup) -> list[str] | None:
        """Nodes that must be told to wait for the gather, so that all that waited for the read still does.

        An edge must not lead into a loop or out of a branch: TensorFlow refuses the first, and the second would switch
        off its target with the branch. So, where it can, it leads to a node that waited for the read itself.

        Returns:
            Names; None when a node that must wait is in another branch or loop and no such node leads to it.
        """
        gather, read = lookup.node.name, read_of(lookup).name
        waiting = [name for name in self.waiting(read) if not self.precedes(name, gather)]
        found: dict[str, None] = {}
        for name in [write.name for write in self.writes(lookup)] + self._next_iterations(lookup):
            if not self._reach.reaches(read, name) or self._reach.reaches(gather, name):
                continue
            on_the_way = [other for other in waiting if self._reach.reaches(other, name)]
            if not on_the_way and self.context(name) != self.context(gather):
                return None
            found |= dict.fromkeys(on_the_way or [name])
        return list(found)

    def _next_iterations(self, lookup: Lookup) -> list[str]:
        """In a loop that writes the variable before it reads it: the ways to the next iteration's write."""
        loops = frames(self.context(lookup.node))
        writes = [write for write in self.writes(lookup) if self.relation(lookup, write) == "before_read"]
        if not any(frames(self.context(write)) & loops for write in writes):
            return []
        return [node.name for node in self._graph.of("NextIteration", "RefNextIteration")]

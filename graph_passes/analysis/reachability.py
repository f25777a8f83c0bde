"""Which nodes lie downstream of which, for a few sources, in one sweep over the graph.

Each node carries one integer whose bit i says that source i reaches it: a sweep in topological order takes one `or` per
edge, so the cost is linear in the size of the graph (times sources / 64 for the width of the integer), and no search is
ever started per pair of nodes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from graph_passes.ir import Graph


class Reachability:
    """Answers `reaches(a, b)` for the given sources; paths run through data and control edges.

    Args:
        graph: the graph. Back-edges of v1 loops are not followed.
        sources: names of the nodes that may be asked about as the start of a path.
    """

    def __init__(self, graph: Graph, sources: Iterable[str]):
        self._bit = {name: 1 << index for index, name in enumerate(sorted(set(sources)))}
        self._mask: dict[str, int] = {}
        masks = self._mask
        for node in graph.topological if self._bit else ():
            mask = self._bit.get(node.name, 0)
            for ref in node.inputs:
                mask |= masks.get(ref.node, 0)
            for name in node.controls:
                mask |= masks.get(name, 0)
            if mask:
                masks[node.name] = mask

    def bits(self, sources: Iterable[str]) -> int:
        """The set of some sources, as a number to test `reaching` against."""
        found = 0
        for source in sources:
            found |= self._bit[source]
        return found

    def reaching(self, *nodes: str) -> int:
        """The set of the sources that reach one of some nodes."""
        found = 0
        for node in nodes:
            found |= self._mask.get(node, 0)
        return found

    def reaches(self, source: str, node: str) -> bool:
        """Whether a path leads from `source` to `node`; a node reaches itself."""
        return bool(self._mask.get(node, 0) & self._bit[source])


_SENDERS = ("QueueEnqueueV2", "QueueEnqueueManyV2", "Stage", "MapStage", "OrderedMapStage", "BarrierInsertMany")
_DEQUEUES = ("QueueDequeueV2", "QueueDequeueManyV2", "QueueDequeueUpToV2")
_RECEIVERS = (*_DEQUEUES, "Unstage", "MapUnstage", "OrderedMapUnstage", "BarrierTakeMany")


def hidden_successors(graph: Graph, level: dict[str, int]) -> set[str]:
    """Nodes that may depend on a candidate through a queue, along no edge of the graph.

    What takes from a queue may wait for what puts into one. Empty unless the latter waits for a candidate.

    Args:
        graph: the graph.
        level: see `levels`.
    """
    if not any(level[node.name] for node in graph.of(*_SENDERS)):
        return set()
    found = {node.name for node in graph.of(*_RECEIVERS)}
    for node in graph.topological if found else ():
        if not found.isdisjoint(node.predecessors()):
            found.add(node.name)
    return found


def levels(graph: Graph, candidates: Collection[str]) -> dict[str, int]:
    """How many candidates lie on the longest path that ends at each node, itself included.

    Two candidates of one level cannot reach each other. More: when all candidates of a level are merged into one node,
    for every level at once, no cycle can arise, because each edge between merged nodes leads to a higher level.

    Returns:
        The level by node name; 0 for a node with no candidate upstream.
    """
    level: dict[str, int] = {}
    for node in graph.topological:
        deepest = 0
        for ref in node.inputs:
            deepest = max(deepest, level.get(ref.node, 0))
        for name in node.controls:
            deepest = max(deepest, level.get(name, 0))
        level[node.name] = deepest + (node.name in candidates)
    return level


def group_levels(own: Mapping[str, int], waits: Mapping[str, int]) -> dict[str, int]:
    """How many groups of nodes lie on the longest path to each group, itself included.

    Merging each group, and all groups of one level, forms no cycle: see `levels`.

    Args:
        own: by name of the group, the set of its nodes, as `Reachability.bits` gives it.
        waits: likewise, the set of those nodes that the group waits for.

    Returns:
        The level by name; groups that wait for themselves or for each other, and what waits for those, are absent.
    """
    level: dict[str, int] = {}
    left = list(own)
    while left:
        open_bits = 0
        for name in left:
            open_bits |= own[name]
        ready = [name for name in left if not waits[name] & open_bits]
        if not ready:
            break
        level |= dict.fromkeys(ready, 1 + max(level.values(), default=0))
        left = [name for name in left if name not in level]
    return level


def waits_for(graph: Graph, controls: Iterable[str], removed: set[str], through_data: bool = False) -> list[str]:
    """Control inputs in which a removed node is replaced by what it waited for; `through_data`: its inputs too."""
    found: dict[str, None] = {}
    waiting, seen = list(controls)[::-1], set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in removed:
            node = graph.nodes[name]
            waiting += (node.predecessors() if through_data else node.controls)[::-1]
        else:
            found[name] = None
    return list(found)

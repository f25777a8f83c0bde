"""Parts of a graph that can become one node each, all at once, without a cycle.

Nodes that must stay as they are (here: outside) have a level: the number of outside nodes on the longest path to them.
An inside node has an earliest level, that of what lies upstream, and a latest one, that of the first outside node
downstream less one. Any level in between will do, as long as no node has a lower one than what it reads from; then all
inside nodes of one level form a region: a path that leaves it leads through an outside node, so to a higher level.

A level M that many nodes can have makes the largest region. Nodes whose latest level is below M, and nodes whose
earliest is above it, are divided in the same way: an edge between two parts always leads to the later one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from graph_passes.ir import Graph

_NEVER = 1 << 60


def regions(
    graph: Graph, inside: Collection[str], free: Collection[str], weight: Callable[[str], int]
) -> list[list[str]]:
    """Divides inside nodes into regions, each with its nodes in canonical order; the heaviest first.

    Args:
        graph: the graph.
        inside: names of the nodes to divide.
        free: names of nodes that every region can have a copy of, such as constants: their edges count for nothing.
        weight: how much it is worth to have a node in a region.
    """
    earliest, latest = _levels(graph, inside, free)
    names = [node.name for node in graph.canonical() if node.name in inside]
    found: list[list[str]] = []
    waiting = [names]
    while waiting:
        part = waiting.pop()
        if not part:
            continue
        level = _best(part, earliest, latest, weight)
        found.append([name for name in part if earliest[name] <= level <= latest[name]])
        waiting.append([name for name in part if latest[name] < level])
        waiting.append([name for name in part if earliest[name] > level])
    found.sort(key=lambda region: (-sum(map(weight, region)), min(region)))
    return found


def _levels(graph: Graph, inside: Collection[str], free: Collection[str]) -> tuple[dict[str, int], dict[str, int]]:
    """The earliest and the latest level of every node."""
    order = [node for node in graph.topological if node.name not in free]
    earliest: dict[str, int] = {}
    for node in order:
        level = max((earliest.get(name, 0) for name in node.predecessors()), default=0)
        earliest[node.name] = level if node.name in inside else level + 1
    latest: dict[str, int] = {}
    for node in reversed(order):
        name = node.name
        if name not in inside:
            latest[name] = earliest[name]
        level = latest.setdefault(name, _NEVER) - (name not in inside)
        for source in node.predecessors():
            if source in inside:
                latest[source] = min(latest.get(source, _NEVER), level)
    return earliest, latest


def _best(
    names: Collection[str], earliest: dict[str, int], latest: dict[str, int], weight: Callable[[str], int]
) -> int:
    """The level that the heaviest nodes can have; the lowest one where several are as good."""
    change: dict[int, int] = {}
    for name in names:
        change[earliest[name]] = change.get(earliest[name], 0) + weight(name)
        change[latest[name] + 1] = change.get(latest[name] + 1, 0) - weight(name)
    total, best, most = 0, 0, -1
    for level in sorted(change):
        total += change[level]
        if total > most:
            best, most = level, total
    return best

"""Which pooled lookups can be packed together: those of one level, where each chain counts as one node."""

from __future__ import annotations

from collections.abc import Sequence

from graph_passes.analysis.reachability import Reachability
from graph_passes.ir import Graph
from graph_passes.rewrite.pooled import PooledLookup


def chain_inputs(lookup: PooledLookup) -> list[str]:
    """Nodes that a packed lookup will read or wait for."""
    refs = [lookup.handle, lookup.ids, lookup.segments, *([] if lookup.rows is None else [lookup.rows])]
    controls = [name for part in lookup.chain for name in part.controls]
    return list(dict.fromkeys([*(ref.node for ref in refs), *controls]))


def chain_levels(
    graph: Graph, lookups: Sequence[PooledLookup]
) -> tuple[dict[str, int], list[PooledLookup], dict[str, int]]:
    """How many chains lie on the longest path to each one.

    A chain is not a node yet: something may wait for its gather and still come before what its sum is told by. So a
    lookup depends on all of another's chain as soon as one of its inputs is downstream of any part of it. Merging all
    chains of one level, for all levels at once, forms no cycle: see `analysis.reachability.levels`.

    Returns:
        Levels from 1 on, by name of the lookup; lookups that would wait for each other, or for themselves; and for each
        node of the graph the highest level of a chain upstream of it, 0 where there is none.
    """
    reach = Reachability(graph, [part.name for lookup in lookups for part in lookup.chain])
    own = {lookup.name: reach.bits(part.name for part in lookup.chain) for lookup in lookups}
    waits = {}
    for lookup in lookups:
        waits[lookup.name] = 0
        for name in chain_inputs(lookup):
            waits[lookup.name] |= reach.reaching(name)
    level: dict[str, int] = {}
    left = list(lookups)
    while left:
        open_bits = 0
        for lookup in left:
            open_bits |= own[lookup.name]
        ready = [lookup for lookup in left if not waits[lookup.name] & open_bits]
        if not ready:
            break
        depth = 1 + max(level.values(), default=0)
        level |= dict.fromkeys((lookup.name for lookup in ready), depth)
        left = [lookup for lookup in left if lookup.name not in level]
    of_level: dict[int, int] = {}
    for lookup in lookups:
        if lookup.name in level:
            of_level[level[lookup.name]] = of_level.get(level[lookup.name], 0) | own[lookup.name]
    highest = sorted(of_level.items(), reverse=True)
    nodes = {}
    for name in graph.nodes:
        mask = reach.reaching(name)
        nodes[name] = next((depth for depth, bits in highest if mask & bits), 0) if mask else 0
    return level, left, nodes

"""Which pooled lookups can be packed together: those of one level, where each chain counts as one node."""

from __future__ import annotations

from collections.abc import Sequence

from graph_passes.analysis.reachability import Reachability, group_levels
from graph_passes.ir import Graph
from graph_passes.rewrite.pooled import PooledLookup


def chain_inputs(lookup: PooledLookup) -> list[str]:
    """Nodes that a packed lookup will read or wait for."""
    refs = [*lookup.source.handles, *lookup.inputs]
    controls = [name for part in lookup.chain for name in part.controls]
    return list(dict.fromkeys([*(ref.node for ref in refs), *controls]))


def chain_levels(
    graph: Graph, lookups: Sequence[PooledLookup]
) -> tuple[dict[str, int], list[PooledLookup], dict[str, int]]:
    """How many chains lie on the longest path to each one.

    A chain is not a node yet: something may wait for its gather and still come before what its sum is told by. So a
    lookup depends on all of another's chain as soon as one of its inputs is downstream of any part of it. Merging all
    chains of one level, for all levels at once, forms no cycle: see `analysis.reachability.group_levels`.

    Returns:
        Levels from 1 on, by name of the lookup; lookups that would wait for each other, or for themselves; and for each
        node of the graph the highest level of a chain upstream of it, 0 where there is none.
    """
    reach = Reachability(graph, [part.name for lookup in lookups for part in lookup.chain])
    own = {lookup.name: reach.bits(part.name for part in lookup.chain) for lookup in lookups}
    waits = {lookup.name: reach.reaching(*chain_inputs(lookup)) for lookup in lookups}
    level = group_levels(own, waits)
    of_level: dict[int, int] = {}
    for lookup_name, depth in level.items():
        of_level[depth] = of_level.get(depth, 0) | own[lookup_name]
    highest = sorted(of_level.items(), reverse=True)
    nodes = {}
    for name in graph.nodes:
        mask = reach.reaching(name)
        nodes[name] = next((depth for depth, bits in highest if mask & bits), 0) if mask else 0
    return level, [lookup for lookup in lookups if lookup.name not in level], nodes

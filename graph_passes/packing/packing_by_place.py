"""Packs candidates of one level, device, branch and loop, group by group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from graph_passes.analysis.control_flow import contexts
from graph_passes.analysis.reachability import hidden_successors, levels
from graph_passes.ir import Graph
from graph_passes.pipeline.base import Declined, Packed, PassContext, PassReport, PassResult
from graph_passes.rewrite.grouping import Group, form_groups

T = TypeVar("T")


def pack_by_place(
    graph: Graph,
    context: PassContext,
    report: PassReport,
    find: Callable[[Graph], Mapping[str, T]],
    emit: Callable[[Graph, Sequence[T]], tuple[Graph, Packed]],
) -> PassResult:
    """Packs group after group, until each candidate that is left is alone.

    Args:
        graph: the graph.
        context: whose fuel is taken.
        report: what is packed and what is not is added to it.
        find: the candidates of a graph, each by the name of the one node of it that others are reached through.
        emit: the graph in which one op takes the place of a group.
    """
    groups, hidden = _groups(graph, find(graph))
    while group := next((group for group in groups if len(group.members) > 1), None):
        if not context.take_fuel():
            names = sorted(name for group in groups for name, _ in group.members)
            report.declined += [Declined("out_of_fuel", name) for name in names]
            return PassResult(graph, report)
        graph, packed = emit(graph, [candidate for _, candidate in group.members])
        report.packed.append(packed)
        groups, hidden = _groups(graph, find(graph))  # the others may read what the packed op now gives
    report.declined += [Declined("single_transform", group.members[0][0]) for group in groups]
    report.declined += [Declined("after_queue", name) for name in hidden]
    return PassResult(graph, report)


def _groups(graph: Graph, found: Mapping[str, T]) -> tuple[list[Group[tuple[str, T]]], list[str]]:
    """Groups of candidates, and those that can be in none, as something outside the graph may come before them."""
    if not found:
        return [], []
    level = levels(graph, found.keys())
    hidden = hidden_successors(graph, level)
    around = contexts(graph)
    groups = form_groups(
        [(name, found[name]) for name in sorted(found) if name not in hidden],
        level_of=lambda item: level[item[0]],
        key_of=lambda item: (graph.nodes[item[0]].device, around.get(item[0], frozenset())),
    )
    return groups, sorted(hidden & found.keys())

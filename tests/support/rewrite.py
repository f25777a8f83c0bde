"""`check_rewrite`: one pass, one graph before, one graph after, and everything that must hold of any rewrite."""

from __future__ import annotations

import difflib
import random
import textwrap
from collections.abc import Mapping, Sequence

from graph_passes.ir import Graph, parse_graph, print_graph, verify, verify_rewrite
from graph_passes.pipeline.base import Pass, PassContext, PassReport, PassResult

_SEEDS = (1, 2, 3)


def check_rewrite(
    pass_: Pass,
    before_text: str,
    after_text: str | None,
    declined: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
    fuel: int | None = None,
    again: bool = True,
) -> PassReport:
    """Runs `pass_` on one graph and checks the result, its report, idempotence and independence of node order.

    Args:
        pass_: the pass.
        before_text: the graph to rewrite, in the text form.
        after_text: the graph that must come out; None: the pass must return the very graph that it was given.
        declined: the reason code by node, of all candidates that must be declined and no others.
        notes: names of the nodes that the report must have a note on, in order.
        fuel: limit on rewrites.
        again: the pass must change nothing when it runs on its own result. With fuel there is always more to do.

    Returns:
        The report, for further checks.
    """
    before = graph_of(before_text)
    verify(before)
    result = run(pass_, before, fuel)
    if after_text is None:
        _assert_same_text(print_graph(before), print_graph(result.graph), "The pass must change nothing")
        assert result.graph is before, "A pass without work must return the graph that it was given."
    else:
        after = graph_of(after_text)
        verify_rewrite(before, after, may_touch=result.report.touched, may_add=result.report.functions)
        _assert_same_text(print_graph(after), print_graph(result.graph), "The result is not the expected graph")
    assert {item.node: item.code for item in result.report.declined} == dict(declined or {})
    assert len(result.report.declined) == len(declined or {}), "A candidate is declined twice."
    assert all(item.detail.endswith(".") for item in result.report.declined), "A detail must be a sentence."
    assert [node for node, _ in result.report.notes] == list(notes)
    if again and fuel is None:
        _check_idempotence(pass_, result.graph)
    _check_order_of_nodes(pass_, before, result, fuel)
    return result.report


def run(pass_: Pass, graph: Graph, fuel: int | None = None) -> PassResult:
    """One run of a pass; tests/conftest.py puts the verifier around it."""
    return pass_.run(graph, PassContext(fuel=fuel))


def graph_of(text: str) -> Graph:
    """The graph of an indented text form."""
    return parse_graph(textwrap.dedent(text))


def shuffled(graph: Graph, seed: int) -> Graph:
    """The same graph, its nodes in another order."""
    names = list(graph.nodes)
    random.Random(seed).shuffle(names)
    return graph.with_nodes({name: graph.nodes[name] for name in names})


def _check_idempotence(pass_: Pass, after: Graph) -> None:
    second = run(pass_, after)
    _assert_same_text(print_graph(after), print_graph(second.graph), "A second run must change nothing")
    assert second.graph is after, "A second run made a new graph that is equal to the old one."
    assert not second.report.packed, "A second run reports packs."
    assert not second.report.rewritten, "A second run reports rewrites."


def _check_order_of_nodes(pass_: Pass, before: Graph, expected: PassResult, fuel: int | None) -> None:
    for seed in _SEEDS:
        other = run(pass_, shuffled(before, seed), fuel)
        title = f"The result depends on the order of nodes (seed {seed})"
        _assert_same_text(print_graph(expected.graph), print_graph(other.graph), title)
        assert other.report == expected.report, f"The report depends on the order of nodes (seed {seed})."


def _assert_same_text(expected: str, found: str, title: str) -> None:
    if expected == found:
        return
    lines = difflib.unified_diff(expected.splitlines(), found.splitlines(), "expected", "found", lineterm="", n=2)
    raise AssertionError(f"{title}:\n" + "\n".join(lines))

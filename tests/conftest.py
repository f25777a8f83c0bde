"""Around every test: passes are verified, and a pass that fails fails the test."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import picasso_tf  # noqa: F401  registers Picasso>PackedLookup, which the verifier asks about
from graph_passes.errors import PassError
from graph_passes.ir import Graph, print_graph, verify, verify_graph_def, verify_rewrite
from graph_passes.pipeline.base import Pass, PassContext, PassResult
from graph_passes.pipeline.manager import PassManager, PipelineRun


@pytest.fixture(autouse=True)
def verified_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks every graph that a pass is given and returns, and that the pass leaves what it was given alone."""
    for kind in _pass_types():
        if "run" in vars(kind) and not getattr(kind.run, "__isabstractmethod__", False):
            monkeypatch.setattr(kind, "run", _verified(kind.run))


def _pass_types() -> set[type[Pass]]:
    found: set[type[Pass]] = set()
    waiting: list[type[Pass]] = [Pass]
    while waiting:
        kind = waiting.pop()
        found.add(kind)
        waiting += kind.__subclasses__()
    return found


def _verified(run: Callable[..., PassResult]) -> Callable[..., PassResult]:
    @functools.wraps(run)
    def verified_run(self: Pass, graph: Graph, context: PassContext) -> PassResult:
        verify(graph)
        text = print_graph(graph)
        result = run(self, graph, context)
        assert print_graph(graph) == text, f"'{self.name}' changed the graph that it was given."
        verify_graph_def(result.graph.to_graph_def())
        verify_rewrite(graph, result.graph, may_touch=result.report.touched, may_add=result.report.functions)
        return result

    return verified_run


@pytest.fixture(autouse=True)
def failures_are_failures(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fails a test in which a pass raised and the manager went on, unless it is marked `fail_open`.

    The failure is raised at once, and reported again at the end of the test: the plugin's callback, which stands
    between a pass and TensorFlow, turns whatever is raised into a warning.
    """
    if request.node.get_closest_marker("fail_open"):
        yield
        return
    swallowed: list[PassError] = []
    run = PassManager.run

    def loud_run(self: PassManager, *args: Any, **kwargs: Any) -> PipelineRun:
        finished = run(self, *args, **kwargs)
        if finished.failure is not None:
            swallowed.append(finished.failure)
            raise finished.failure
        return finished

    monkeypatch.setattr(PassManager, "run", loud_run)
    yield
    if swallowed:
        pytest.fail(f"A pass failed and the manager went on: {swallowed[0]}")

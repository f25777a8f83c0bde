"""Runs a pipeline of passes and tells the instruments about each step."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from graph_passes.errors import PassError
from graph_passes.ir import Graph, verify_feeds
from graph_passes.pipeline.base import Pass, PassContext, PassReport

log = logging.getLogger("picasso_tf")


class Instrument:
    """Something that watches a run. Each hook does nothing unless a subclass says otherwise."""

    def begin(self, graph: Graph, pipeline: Sequence[Pass]) -> None:
        """Before the first pass."""

    def before(self, step: int, item: Pass, graph: Graph) -> None:
        """Before pass number `step` (from 1)."""

    def after(self, step: int, item: Pass, before: Graph, after: Graph, report: PassReport) -> None:
        """After a pass that returned."""

    def failed(self, item: Pass, graph: Graph, error: Exception) -> str | None:
        """After a pass, or an instrument around it, that raised. May return the path of a reproducer."""
        return None

    def end(self, run: PipelineRun) -> None:
        """After the last pass, or after the one that failed."""


@dataclass
class PipelineRun:
    """The outcome of one run of a pipeline.

    Attributes:
        before: the graph that came in.
        after: the graph to run; `before` itself when nothing changed or a pass failed.
        reports: one per pass that returned, in order.
        failure: the error of the pass that failed, or None.
        seconds: duration of the whole run.
    """

    before: Graph
    after: Graph
    reports: list[PassReport] = field(default_factory=list)
    failure: PassError | None = None
    seconds: float = 0.0

    @property
    def changed(self) -> bool:
        return self.after is not self.before


class PassManager:
    """Runs passes in order.

    Args:
        pipeline: the passes.
        instruments: told about each step, in order.
        fail_open: when a pass raises, keep the graph that came in (production); False raises the PassError (tests).
    """

    def __init__(self, pipeline: Sequence[Pass], instruments: Sequence[Instrument] = (), fail_open: bool = True):
        self._pipeline = tuple(pipeline)
        self._instruments = tuple(instruments)
        self._fail_open = fail_open

    def run(self, graph: Graph, context: PassContext | None = None) -> PipelineRun:
        """Runs the pipeline over `graph`.

        Raises:
            PassError: a pass raised and `fail_open` is False.
        """
        run = PipelineRun(graph, graph)
        context = context or PassContext()
        start = time.perf_counter()
        for instrument in self._instruments:
            instrument.begin(graph, self._pipeline)
        for step, item in enumerate(self._pipeline, 1):
            try:
                run.after = self._step(step, item, run, context)
            except Exception as error:
                self._fail(run, item, error)
                break
        run.seconds = time.perf_counter() - start
        for instrument in self._instruments:
            instrument.end(run)
        if run.failure is not None and not self._fail_open:
            raise run.failure
        return run

    def _step(self, step: int, item: Pass, run: PipelineRun, context: PassContext) -> Graph:
        graph = run.after
        for instrument in self._instruments:
            instrument.before(step, item, graph)
        start = time.perf_counter()
        result = item.run(graph, context)
        verify_feeds(graph, result.graph)  # always: a wrong number would be the only sign
        report = result.report
        report.seconds = time.perf_counter() - start
        report.nodes_before, report.nodes_after = len(graph), len(result.graph)
        for instrument in self._instruments:
            instrument.after(step, item, graph, result.graph, report)
        log.info("%s", report.summary())
        run.reports.append(report)
        return result.graph

    def _fail(self, run: PipelineRun, item: Pass, error: Exception) -> None:
        path = None
        for instrument in self._instruments:
            path = instrument.failed(item, run.after, error) or path
        run.failure = PassError(item.name, error, path)
        run.failure.__cause__ = error
        run.after = run.before

"""Instruments that check or record each step of a run."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from google.protobuf import text_format

from graph_passes.ir import Graph, diff_graphs, print_graph, verify, verify_graph_def, verify_rewrite
from graph_passes.pipeline.base import Pass, PassReport
from graph_passes.pipeline.manager import Instrument, PipelineRun
from graph_passes.pipeline.report import GraphReport

log = logging.getLogger("picasso_tf")


class Verify(Instrument):
    """Runs the verifier on what comes in and around every pass."""

    def begin(self, graph: Graph, pipeline: Sequence[Pass]) -> None:
        verify_graph_def(graph.to_graph_def())
        verify(graph)

    def after(self, step: int, item: Pass, before: Graph, after: Graph, report: PassReport) -> None:
        if after is not before:
            verify_rewrite(before, after, may_touch=report.touched, may_add=report.functions)


class Dump(Instrument):
    """Writes the graph before and after every pass that changed it into one folder, and the report.

    Args:
        folder: made when missing; files of an earlier run in it are removed.
        report: gives the report of the finished run.
    """

    def __init__(self, folder: Path, report: Callable[[PipelineRun], GraphReport]):
        self._folder = folder
        self._report = report
        self._broken = False

    def begin(self, graph: Graph, pipeline: Sequence[Pass]) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            for old in self._folder.iterdir():
                old.unlink()
        except OSError as error:
            self._give_up(error)
        self._write("000_before.txt", print_graph(graph))
        self._write("before.pbtxt", text_format.MessageToString(graph.to_graph_def()))

    def after(self, step: int, item: Pass, before: Graph, after: Graph, report: PassReport) -> None:
        if after is not before:
            self._write(f"{step:03d}_{item.name}.txt", print_graph(after))
            self._write(f"{step:03d}_{item.name}.diff", diff_graphs(before, after))

    def end(self, run: PipelineRun) -> None:
        report = self._report(run)
        self._write("after.pbtxt", text_format.MessageToString(run.after.to_graph_def()))
        self._write("report.txt", report.to_text())
        self._write("report.json", json.dumps(report.to_dict(), indent=1) + "\n")

    def _write(self, name: str, text: str) -> None:
        if self._broken:
            return
        try:
            (self._folder / name).write_text(text)
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        """A full disk costs the dump, not the rewrite."""
        self._broken = True
        log.warning("The dump in '%s' is incomplete: %s.", self._folder, error)

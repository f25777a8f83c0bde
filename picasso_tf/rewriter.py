"""Runs the pipeline over the graphs that TensorFlow hands to the plugin, and remembers what was done."""

from __future__ import annotations

import contextlib
import gc
import logging
import platform
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import tensorflow as tf
from tensorflow.core.framework import graph_pb2

from graph_passes.analysis.compiled_calls import CALLS
from graph_passes.ir import Graph
from graph_passes.ir.annotations import strip_shapes
from graph_passes.ir.op_defs import PACKED_OPS
from graph_passes.pipeline.base import PassContext
from graph_passes.pipeline.instruments import Dump, Verify
from graph_passes.pipeline.manager import Instrument, PassManager, PipelineRun
from graph_passes.pipeline.naming import graph_name
from graph_passes.pipeline.report import GraphReport
from graph_passes.pipeline.reproducer import Reproduce
from graph_passes.registry import BY_NAME
from picasso_tf.bridge.callback import GraphRequest, annotate_shapes
from picasso_tf.config import Config
from picasso_tf.dumps import DumpRoot
from picasso_tf.report import Report
from picasso_tf.version import __version__

log = logging.getLogger("picasso_tf")


class Rewriter:
    """Rewrites graphs as one config says. Safe to call from several threads.

    Args:
        config: the options.
    """

    def __init__(self, config: Config):
        self._config = config
        self._pipeline = config.pipeline()
        self._dumps = None if config.dump_dir is None else DumpRoot(Path(config.dump_dir))
        self._lock = threading.Lock()
        self._reports: dict[str, GraphReport] = {}

    def __call__(self, request: GraphRequest) -> bytes | None:
        """The plugin's callback: the rewritten graph, or None to run the graph as it came."""
        if not request.allow_non_differentiable:
            return None  # TensorFlow will differentiate this graph in C++, where packed ops have no gradient
        with _without_garbage_collection():
            return self._rewritten(request)

    def _rewritten(self, request: GraphRequest) -> bytes | None:
        graph_def = graph_pb2.GraphDef.FromString(request.graph)
        graph = Graph.from_graph_def(graph_def, request.fetches, request.feeds, request.preserve)
        run = self.run(graph)
        return run.after.to_graph_def().SerializeToString() if run.changed else None

    def run(self, graph: Graph, always_report: bool = False) -> PipelineRun:
        """Runs the pipeline over one graph; a pass that raises leaves one warning and the graph as it came.

        Args:
            graph: the graph.
            always_report: also report on a graph that this package has rewritten before and finds nothing more in.
        """
        name = graph_name(graph)
        known = self._reports.get(name)
        if known is not None and known.failures:
            return PipelineRun(graph, graph)  # it would fail again; TensorFlow asks once per device type
        seen_before = _is_rewritten(graph)
        instruments = [] if seen_before else self._instruments(name)
        run = PassManager(self._pipeline, instruments).run(graph, PassContext(fuel=self._config.max_rewrites))
        if run.failure is not None:
            log.warning("%s The graph runs as it was.", run.failure)
        if run.changed or always_report or not seen_before:
            with self._lock:
                self._reports[name] = GraphReport.of(name, run)
        return run

    def run_graph_def(
        self, graph_def: graph_pb2.GraphDef, fetches: Sequence[str], feeds: Sequence[str]
    ) -> graph_pb2.GraphDef:
        """Infers shapes, runs the pipeline, and takes the shapes off again. `graph_def` is not changed.

        Raises:
            GraphError: a fetch or a feed names no node, or two nodes share a name.
        """
        Graph.from_graph_def(graph_def, fetches, feeds)  # complains about wrong names before any work is done
        annotated = annotate_shapes(graph_def.SerializeToString(), tuple(feeds), tuple(fetches))
        graph = Graph.from_graph_def(graph_pb2.GraphDef.FromString(annotated), fetches, feeds)
        result = self.run(graph, always_report=True).after.to_graph_def()
        strip_shapes(result, graph_def)
        return result

    def _instruments(self, name: str) -> Sequence[Instrument]:
        versions = {"picasso-tf": __version__, "tensorflow": tf.__version__, "python": platform.python_version()}
        instruments: list[Instrument] = [Reproduce(self._config.reproducers(), BY_NAME, versions)]
        if self._config.verify:
            instruments.append(Verify())
        if self._dumps is not None:
            try:
                folder = self._dumps.graph_folder(name)
            except OSError as error:
                log.warning("The graph '%s' is not dumped: %s.", name, error)
            else:
                instruments.append(Dump(folder, lambda run: GraphReport.of(name, run)))
        return instruments

    def report(self) -> Report:
        """What has been done so far."""
        with self._lock:
            return Report(list(self._reports.values()))


@contextlib.contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """A graph is many small objects without cycles; the collector would walk all of the process again and again.

    What is done inside should be over, its objects gone, before the collector is back.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _is_rewritten(graph: Graph) -> bool:
    """Whether a graph is one of ours that comes by again: TensorFlow asks once per registered device type."""
    if graph.of(*PACKED_OPS):
        return True
    return any(node.attr("_picasso_pass") for node in graph.of("ResourceGather", *CALLS))

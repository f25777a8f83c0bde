"""How long the passes take, on generated graphs of 1,000 to 100,000 nodes, and whether that grows linearly.

    python -m benchmarks.pass_time
    python -m benchmarks.pass_time --quick

Times are those of the plugin's own way through Python: bytes in, parse, passes, serialise, bytes out. The shapes that
the C++ side infers beforehand are timed by themselves, as is its gate, which spares all of this to graphs without
lookups.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from rich.table import Table
from tensorflow.core.framework import graph_pb2

from benchmarks import compiled, gate, generated_graph
from benchmarks.harness import BenchmarkError
from benchmarks.table import print_table
from graph_passes.ir import Graph
from picasso_tf.bridge.callback import GraphRequest, annotate_shapes
from picasso_tf.config import Config
from picasso_tf.rewriter import Rewriter

SIZES = (1_000, 10_000, 25_000, 100_000)
QUICK_SIZES = (1_000, 4_000, 10_000)
GATE_SIZE = 25_000
REPEATS = 3


@dataclass
class Phases:
    """Seconds by phase; of several runs the fastest of each.

    Attributes:
        nodes: size of the graph.
        nodes_after: size of the rewritten graph.
        total: seconds of all that Python does, bytes in to bytes out.
        seconds: by name, in the order in which the phases run.
    """

    nodes: int
    nodes_after: int = 0
    total: float = float("inf")
    seconds: dict[str, float] = field(default_factory=dict)

    def timed(self, name: str, work: Callable[[], Any]) -> Any:
        """Runs `work` and keeps its time if it is the fastest so far."""
        start = time.perf_counter()
        result = work()
        self.keep(name, time.perf_counter() - start)
        return result

    def keep(self, name: str, seconds: float) -> None:
        """Keeps a time if it is the fastest so far."""
        self.seconds[name] = min(seconds, self.seconds.get(name, seconds))


def measure(graph: Graph, repeats: int) -> Phases:
    """Sends a graph through the rewriter.

    Args:
        graph: to rewrite.
        repeats: runs; each parses the graph anew, as the plugin does.
    """
    data = _serialise(graph)
    names = (graph.fetches, graph.feeds, graph.preserve)
    phases = Phases(len(graph))
    phases.timed("shapes (C++)", lambda: annotate_shapes(data, graph.feeds, graph.fetches))
    request = GraphRequest(data, "generated", "CPU", graph.feeds, graph.fetches, graph.preserve)
    for _ in range(repeats):
        start = time.perf_counter()
        Rewriter(Config())(request)
        phases.total = min(phases.total, time.perf_counter() - start)
        parsed = phases.timed("parse", lambda: Graph.from_graph_def(graph_pb2.GraphDef.FromString(data), *names))
        run = Rewriter(Config()).run(parsed)
        if run.failure is not None or not run.changed:
            raise BenchmarkError(f"The graph of {len(graph)} nodes was not rewritten: {run.failure or 'no change'}.")
        for step, report in enumerate(run.reports, 1):
            phases.keep(f"{step} {report.name}", report.seconds)  # a pass may run twice
        phases.timed("serialise", partial(_serialise, run.after))
        phases.nodes_after = len(run.after)
    return phases


def _serialise(graph: Graph) -> bytes:
    return graph.to_graph_def().SerializeToString()


def exponent(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """The b of the best fit seconds = a * size ** b; 1 is linear growth."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="smaller graphs")
    quick = parser.parse_args().quick
    measured = [measure(generated_graph.train_step(size), REPEATS) for size in (QUICK_SIZES if quick else SIZES)]
    notes = ["total: bytes in to bytes out, all but the shapes."]
    notes.append("exponent: b in time = a nodes^b, fitted over all sizes; 1 is linear growth.")
    if compiled.has_compiler():
        notes.append(_gate_sentence())
    else:
        notes.append("The gate is not timed: it takes g++.")
    print_table(_table(measured), notes)


def _gate_sentence() -> str:
    graph = generated_graph.without_lookups(GATE_SIZE)
    seconds, interesting = gate.seconds(_serialise(graph))
    if interesting:
        raise BenchmarkError("The gate lets a graph without lookups through.")
    return f"gate: {seconds * 1e3:.2f} ms for a graph of {len(graph):,} nodes with nothing to do."


def _table(measured: Sequence[Phases]) -> Table:
    sizes = [phases.nodes for phases in measured]
    table = Table("ms", title="time of the passes, fastest run")
    for phases in measured:
        table.add_column(f"{phases.nodes:,} nodes", justify="right")
    table.add_column("exponent", justify="right")
    for name in measured[0].seconds:
        seconds = [phases.seconds[name] for phases in measured]
        fit = f"{exponent(sizes, seconds):.2f}" if all(seconds) else ""
        table.add_row(name, *(f"{s * 1e3:.1f}" for s in seconds), fit)
    totals = [phases.total for phases in measured]
    table.add_section()
    table.add_row("total", *(f"{s * 1e3:.1f}" for s in totals), f"{exponent(sizes, totals):.2f}")
    table.add_row("us per node", *(f"{s * 1e6 / n:.1f}" for s, n in zip(totals, sizes, strict=True)), "")
    table.add_row("nodes after", *(f"{phases.nodes_after:,}" for phases in measured), "")
    return table


if __name__ == "__main__":
    main()

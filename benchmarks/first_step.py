"""The first step, the size of the graph and the memory: what packing costs before it pays.

    python -m benchmarks.first_step
    python -m benchmarks.first_step --fields 100 --optimizer adam
    python -m benchmarks.first_step --quick

A Keras 3 model of 200 fields trained by Adagrad. Each run has a process of its own, and none works beside another;
stock and ours take turns. The first step counts from the call of `fit` to its return: tracing, TensorFlow's
optimizers with the plugin among them, and the first run. The nodes are those that TensorFlow runs, after all of its
optimizers; a NoOp among them keeps the name of an op that is gone. The memory is the most that the process had in 20
steps. With the default size a run takes one to two minutes.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from benchmarks import train_race
from benchmarks.harness import Entry, Timing, Worker
from benchmarks.model_arm import OURS, RATES, STOCK
from benchmarks.model_shape import ModelShape
from benchmarks.table import print_table

REPEATS = 3


def measure(entries: Sequence[Entry], repeats: int) -> dict[str, list[dict[str, Any]]]:
    """Runs each entry several times, one after the other, in turns.

    Returns:
        What `model_arm.first_step` says of each run, by the entry's name.
    """
    runs: dict[str, list[dict[str, Any]]] = {entry.name: [] for entry in entries}
    for number in range(repeats):
        for entry in entries if number % 2 == 0 else reversed(entries):
            print(f"run {number + 1} of {repeats}: {entry.name}", file=sys.stderr, flush=True)
            with Worker(entry) as worker:
                worker.receive()
                runs[entry.name].append(worker.ask({"check": True})["check"])
    return runs


def entries(shape: ModelShape, optimizer: str, jit: bool = False) -> list[Entry]:
    """Stock and ours; arguments as of `model_arm.first_step`."""

    def arm(name: str, plugin: bool) -> Entry:
        settings = {"shape": shape.settings(), "optimizer": optimizer, "plugin": plugin, "jit": jit}
        return Entry(name, "benchmarks.model_arm:first_step", settings)

    return [arm(STOCK, False), arm(OURS, True)]


def check(runs: Mapping[str, Sequence[dict[str, Any]]]) -> int:
    """Makes sure that ours learns what stock learns; returns how many steps were compared."""
    timings = {name: Timing(name, [], of_arm[0]) for name, of_arm in runs.items()}
    return train_race.check_losses(timings, [(OURS, STOCK)])


def table(title: str, runs: Mapping[str, Sequence[dict[str, Any]]]) -> Table:
    """A line per figure, and ours as a part of stock's."""
    made = Table("", title=title)
    for heading in (STOCK, OURS, "ours / stock"):
        made.add_column(heading, justify="right")

    def add(name: str, key: str, text: str, scale: float, pick: Any) -> None:
        if key not in runs[STOCK][0]:
            return
        stock, ours = (pick(run[key] for run in runs[arm]) * scale for arm in (STOCK, OURS))
        ratio = f"{ours / stock:.3f}" if stock else ""
        made.add_row(name, text.format(stock), text.format(ours), ratio)

    add("first step, s, min", "first_seconds", "{:.1f}", 1, min)
    add("first step, s, median", "first_seconds", "{:.1f}", 1, statistics.median)
    add("first step, s of CPU, min", "first_cpu_seconds", "{:.1f}", 1, min)
    add("nodes", "nodes", "{:,.0f}", 1, min)
    add("nodes but NoOp", "nodes_that_do_something", "{:,.0f}", 1, min)
    add("peak memory, MB, min", "peak_bytes", "{:,.0f}", 1e-6, min)
    add("peak memory, MB, median", "peak_bytes", "{:,.0f}", 1e-6, statistics.median)
    return made


def run(title: str, arms: Sequence[Entry], repeats: int) -> None:
    """Measures and prints.

    Raises:
        BenchmarkError: an arm failed, or they did not learn the same.
    """
    runs = measure(arms, repeats)
    same = f"Losses agree to {train_race.TOLERANCE:g} in the first {check(runs)} steps."
    print_table(table(title, runs), [f"{repeats} runs of each, in processes of their own.", same])


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--fields", type=int, help="categorical fields; default: 200, with --quick 10")
    parser.add_argument("--optimizer", choices=RATES, default="adagrad")
    parser.add_argument("--repeats", type=int, help=f"runs of each; default: {REPEATS}, with --quick 1")
    parser.add_argument("--quick", action="store_true", help="a small model, once")
    arguments = parser.parse_args()
    fields = arguments.fields or (10 if arguments.quick else 200)
    repeats = arguments.repeats or (1 if arguments.quick else REPEATS)
    model = ModelShape("mlp", fields=fields, rows=20_000, width=16, batch=1024)
    run(f"first steps, {arguments.optimizer}, {model}", entries(model, arguments.optimizer), repeats)


if __name__ == "__main__":
    main()

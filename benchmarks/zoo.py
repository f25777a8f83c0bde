"""Train steps of many models: DLRM, DeepFM, DCN, Wide & Deep and more, in Keras 3 and tf_keras, with three optimizers.

    python -m benchmarks.zoo                                       all cells: hours; can be interrupted and goes on
    python -m benchmarks.zoo --models dlrm dcn --fields 26 --batches 256 --optimizers sgd
    python -m benchmarks.zoo --print                               the table of what has been measured, nothing run
    python -m benchmarks.zoo --quick                               small models, a few rounds, nothing kept

A cell is a model, a front end, an optimizer, a number of fields and a batch size; ours, stock and the dense part
alone take turns in it. What has been measured is a line of JSON in `--results` (default build/benchmarks/zoo.jsonl),
and is not measured again unless `--again` says so. A cell takes between half a minute and three minutes; `--rounds`
shortens it.

The dense part alone is the same model fed with ready-made embeddings: a floor that no embedding work can pass.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks import command_line, train_race
from benchmarks.harness import ROOT, BenchmarkError, Pace, Timing, race
from benchmarks.model_arm import FLOOR, OURS, RATES, STOCK, entries
from benchmarks.model_shape import FRONT_ENDS, KINDS, ModelShape
from benchmarks.table import print_table

RESULTS = ROOT / "build" / "benchmarks" / "zoo.jsonl"
FIELDS = (26, 100)
BATCHES = (256, 4096)
NOISE = 0.02
"""Part of the dense part's time below which a difference to it cannot be told, on the quietest machine."""


@dataclass(frozen=True)
class Cell:
    """What is measured in one race."""

    shape: ModelShape
    optimizer: str

    @property
    def key(self) -> str:
        """Of the results."""
        return f"{self.shape}, {self.optimizer}"


def cells(arguments: argparse.Namespace) -> Iterator[Cell]:
    """The cells that the command line selects."""
    for kind in arguments.models:
        for front_end in arguments.front_ends:
            if front_end not in KINDS[kind]:
                continue
            for fields in arguments.fields:
                for batch in arguments.batches:
                    for optimizer in arguments.optimizers:
                        yield Cell(ModelShape(kind, front_end, fields=fields, batch=batch), optimizer)


def measure(cell: Cell, pace: Pace) -> dict[str, Any]:
    """Races a cell.

    Returns:
        Plain values: what the cell is, times in ms, and how ours compares.

    Raises:
        BenchmarkError: an arm failed, or ours and stock did not learn the same.
    """
    timings = race(cell.key, entries(cell.shape, cell.optimizer), pace)
    train_race.check_losses(timings, [(OURS, STOCK)])
    ours, stock, floor = (timings[name] for name in (OURS, STOCK, FLOOR))
    result: dict[str, Any] = {"key": cell.key, "optimizer": cell.optimizer, **cell.shape.settings()}
    for name, timing in (("ours", ours), ("stock", stock), ("floor", floor)):
        result[name] = {"min_ms": timing.min * 1e3, "median_ms": timing.median * 1e3}
    (above, doubt), (stock_above, _) = _above(ours, floor), _above(stock, floor)
    result["step_ratio"] = stock.ratio_to(ours)
    result["embedding_ratio"] = max(stock_above, NOISE * floor.median) / max(above, doubt)
    result["at_least"] = above < doubt
    result["packs"] = ours.check["packs"]
    return result


def _above(timing: Timing, floor: Timing) -> tuple[float, float]:
    """Seconds by which an arm takes longer than the dense part, and how much that is in doubt.

    The first is the median over rounds; the second half of the quartiles' distance, and at least `NOISE`.
    """
    pairs = zip(timing.rounds, floor.rounds, strict=True)
    low, middle, high = statistics.quantiles(
        [statistics.median(mine) - statistics.median(least) for mine, least in pairs], n=4, method="inclusive"
    )
    return middle, max((high - low) / 2, NOISE * floor.median)


def table(results: Sequence[dict[str, Any]], title: str = "train steps, median ms (min)") -> tuple[Table, list[str]]:
    """A line per cell, and the sentences to stand below."""
    made = Table("model", "front end", "optimizer", title=title)
    for heading in ("fields", "batch", "stock", "ours", "dense part", "x step", "x embedding"):
        made.add_column(heading, justify="right", no_wrap=True)
    for result in results:
        times = (f"{result[n]['median_ms']:.1f} ({result[n]['min_ms']:.1f})" for n in ("stock", "ours", "floor"))
        made.add_row(
            result["kind"],
            FRONT_ENDS[result["front_end"]],
            result["optimizer"],
            str(result["fields"]),
            f"{result['batch']:,}",
            *times,
            f"{result['step_ratio']:.2f}",
            f"{'>' if result['at_least'] else ''}{result['embedding_ratio']:.1f}",
        )
    steps, parts = [r["step_ratio"] for r in results], [r["embedding_ratio"] for r in results]
    slower = [r["key"] for r in results if r["step_ratio"] < 1]
    notes = [
        "x step: stock / ours, median over rounds. x embedding: (stock - dense part) / (ours - dense part), likewise. "
        "Where ours is nearer to the dense part than half the distance of the quartiles of that difference, or than "
        f"{NOISE:.0%} of the dense part, it counts as that far from it, and > stands before the ratio.",
        f"Faster in {len(results) - len(slower)} of {len(results)} cells; geometric means: step "
        f"{_geometric(steps):.2f}, embedding part {_geometric(parts):.2f}, and by optimizer "
        + ", ".join(f"{name} {_geometric(of):.2f}" for name, of in _by(results, "optimizer").items())
        + "; by model "
        + ", ".join(f"{name} {_geometric(of):.2f}" for name, of in _by(results, "kind").items())
        + ".",
        *(f"Slower: {key}." for key in slower),
    ]
    return made, notes


def _by(results: Sequence[dict[str, Any]], key: str) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for result in results:
        found.setdefault(result[key], []).append(result["embedding_ratio"])
    return found


def _geometric(values: Sequence[float]) -> float:
    return math.exp(statistics.fmean(math.log(value) for value in values)) if values else math.nan


def read(path: Path) -> dict[str, dict[str, Any]]:
    """Results by key; of several the last."""
    lines = path.read_text().splitlines() if path.exists() else []
    return {result["key"]: result for result in map(json.loads, lines)}


def run(wanted: Sequence[Cell], pace: Pace, path: Path, again: bool) -> tuple[list[dict[str, Any]], list[str]]:
    """Measures the cells that have no result yet, and appends each result as it comes.

    Returns:
        Results of all wanted cells, and a sentence for each that failed: one model must not end a run of hours.
    """
    known = {} if again else read(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    failed = []
    for number, cell in enumerate(wanted, start=1):
        if cell.key in known:
            continue
        print(f"{number}/{len(wanted)} {cell.key}", file=sys.stderr, flush=True)
        try:
            known[cell.key] = measure(cell, pace)
        except BenchmarkError as error:
            failed.append(f"Failed: {cell.key}: {error}".partition("\n")[0])
            print(failed[-1], file=sys.stderr, flush=True)
            continue
        with path.open("a") as file:
            print(json.dumps(known[cell.key]), file=file)
    return [known[cell.key] for cell in wanted if cell.key in known], failed


def main() -> None:
    """Runs the benchmark."""
    parser = command_line.parser(__doc__, rounds=15)
    parser.add_argument("--models", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--front-ends", nargs="+", choices=FRONT_ENDS, default=list(FRONT_ENDS))
    parser.add_argument("--optimizers", nargs="+", choices=RATES, default=list(RATES))
    parser.add_argument("--fields", nargs="+", type=int, default=FIELDS)
    parser.add_argument("--batches", nargs="+", type=int, default=BATCHES)
    parser.add_argument("--results", type=Path, default=RESULTS, help="file of results, a line of JSON each")
    parser.add_argument("--again", action="store_true", help="measure cells anew that have a result")
    parser.add_argument("--print", action="store_true", help="print what has been measured and run nothing")
    arguments = parser.parse_args()
    wanted, failed = list(cells(arguments)), []
    if arguments.print:
        known = read(arguments.results)
        results = [known[cell.key] for cell in wanted if cell.key in known]
    elif arguments.quick:
        small = {"fields": 4, "rows": 100, "batch": 64, "batches": 2}
        quick = dict.fromkeys(Cell(dataclasses.replace(c.shape, **small), c.optimizer) for c in wanted)
        results = [measure(cell, command_line.pace(arguments)) for cell in quick]
    else:
        results, failed = run(wanted, command_line.pace(arguments), arguments.results, arguments.again)
    made, notes = table(results)
    print_table(made, [*notes, *failed])


if __name__ == "__main__":
    main()

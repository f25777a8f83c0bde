"""Latency of inference: a call of a model with 1, 16 and 256 examples, the median and the 99th percentile.

    python -m benchmarks.latency                                     all cells
    python -m benchmarks.latency --models wide_deep --fields 26 --batches 1
    python -m benchmarks.latency --quick

A call is that of a tf.function, which takes its batch from a dataset: no loop in Python as in `predict`, and no passing
of hundreds of tensors. The models are those of `benchmarks.zoo` and `benchmarks.multi_hot`; no table has seen an
update, as in a server that has only loaded them. Each arm works for five seconds in all, in turns, so calls up to 5 ms
are timed at least 1,000 times; the table says how often. The first calls of a turn are not timed: another process had
the caches until then.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from benchmarks import command_line, train_race
from benchmarks.harness import BenchmarkError, Entry, Pace, Timing, race
from benchmarks.model_arm import OURS, STOCK
from benchmarks.model_shape import FRONT_ENDS, KERAS, TF_KERAS, ModelShape
from benchmarks.multi_hot import MultiHot
from benchmarks.table import print_table

MULTI_HOT = "multi_hot"
MODELS = {"preprocessing": KERAS, "feature_columns": TF_KERAS, "wide_deep": KERAS, MULTI_HOT: KERAS}
"""Each with its front end."""

FIELDS = (26, 200)
BATCHES = (1, 16, 256)
PACE = Pace(rounds=40, chunk=0.125, settle=5, warm_up=50)


@dataclass(frozen=True)
class Cell:
    """What is measured in one race."""

    model: str
    fields: int
    batch: int

    def __str__(self) -> str:
        return f"{self.model} in {FRONT_ENDS[MODELS[self.model]]}, {self.fields} fields, batch {self.batch}"

    def entries(self, **sizes: int) -> list[Entry]:
        """Ours and stock.

        Args:
            sizes: of the model, where it is not to have its usual ones.
        """
        front_end = MODELS[self.model]
        if self.model == MULTI_HOT:
            build = "benchmarks.multi_hot_arm:build"
            shape = dataclasses.asdict(MultiHot(self.fields, batch=self.batch, **sizes))
            settings: dict[str, Any] = {"shape": shape, "front_end": front_end, "train": False}
        else:
            build = "benchmarks.model_arm:predict"
            shape = ModelShape(self.model, front_end, fields=self.fields, batch=self.batch, **sizes).settings()
            settings = {"shape": shape}
        return [Entry(OURS, build, {**settings, "plugin": True}), Entry(STOCK, build, settings)]


def cells(arguments: argparse.Namespace) -> Iterator[Cell]:
    """The cells that the command line selects."""
    fields = arguments.fields or ([4] if arguments.quick else FIELDS)
    batches = arguments.batches or ([16] if arguments.quick else BATCHES)
    for model in arguments.models:
        for count in fields:
            for batch in batches:
                yield Cell(model, count, batch)


def measure(cell: Cell, pace: Pace, **sizes: int) -> dict[str, Timing]:
    """Races a cell.

    Raises:
        BenchmarkError: an arm failed, ours packed nothing, or the two did not predict the same.
    """
    timings = race(str(cell), cell.entries(**sizes), pace, announce=True)
    train_race.check_losses(timings, [(OURS, STOCK)])
    if not timings[OURS].check["packs"]:
        raise BenchmarkError(f"Nothing was packed: {cell}.")
    return timings


def table(measured: Sequence[tuple[Cell, dict[str, Timing]]]) -> tuple[Table, list[str]]:
    """A line per cell, and the sentences to stand below."""
    made = Table("model", "front end", title="inference, us per call")
    for heading in ("fields", "batch", "stock p50", "p99", "ours p50", "p99", "x p50", "x p99", "calls"):
        made.add_column(heading, justify="right", no_wrap=True)
    for cell, timings in measured:
        stock, ours = timings[STOCK], timings[OURS]
        times = (timing.percentile(percent) for timing in (stock, ours) for percent in (50, 99))
        made.add_row(
            cell.model,
            FRONT_ENDS[MODELS[cell.model]],
            str(cell.fields),
            str(cell.batch),
            *(f"{seconds * 1e6:,.0f}" for seconds in times),
            f"{stock.ratio_to(ours):.2f}",
            f"{stock.percentile(99) / ours.percentile(99):.2f}",
            f"{min(stock.steps, ours.steps):,}",
        )
    return made, [
        "x: stock / ours; of p50 the median over rounds of the ratio of their medians, of p99 the ratio of the two.",
        "calls: of the arm that was timed less often. Of fewer than 1,000, fewer than ten are beyond the p99.",
        f"The losses of ours and of stock agree to {train_race.TOLERANCE:g} in the first calls.",
    ]


def main() -> None:
    """Runs the benchmark."""
    parser = command_line.parser(__doc__, rounds=PACE.rounds)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--fields", nargs="+", type=int, help="default: 26 and 200, with --quick 4")
    parser.add_argument("--batches", nargs="+", type=int, help="default: 1, 16 and 256, with --quick 16")
    arguments = parser.parse_args()
    pace = command_line.pace(arguments, PACE)
    print_table(*table([(cell, measure(cell, pace)) for cell in cells(arguments)]))


if __name__ == "__main__":
    main()

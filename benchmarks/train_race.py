"""What the benchmarks of train steps share: their command line, and the check that all arms learn the same."""

from __future__ import annotations

import argparse
import dataclasses
import math
from collections.abc import Sequence

from benchmarks.harness import QUICK, BenchmarkError, Entry, Pace, Timing, race
from benchmarks.table import print_race

TOLERANCE = 1e-5
"""Largest relative difference between losses. Stock TensorFlow does not repeat its own sums bit for bit."""


def parse(doc: str | None, optimizers: Sequence[str]) -> tuple[argparse.Namespace, Pace]:
    """Reads the command line.

    Args:
        doc: of the benchmark's module; its first line is shown by --help.
        optimizers: to choose from; the first is the default.
    """
    parser = argparse.ArgumentParser(description=(doc or "").partition("\n")[0])
    parser.add_argument("--optimizer", choices=optimizers, default=optimizers[0])
    parser.add_argument("--rounds", type=int, help=f"turns of each arm; default: {Pace.rounds}")
    parser.add_argument("--quick", action="store_true", help="a few rounds only")
    arguments = parser.parse_args()
    pace = QUICK if arguments.quick else Pace()
    return arguments, dataclasses.replace(pace, rounds=arguments.rounds or pace.rounds)


def run(title: str, entries: Sequence[Entry], ours: str, pace: Pace, notes: Sequence[str]) -> None:
    """Races train steps and prints the table.

    Args:
        title: of the table.
        entries: the arms.
        ours: name of the arm with the plugin.
        pace: of the race.
        notes: sentences to stand below the table.

    Raises:
        BenchmarkError: an arm failed, or they did not learn the same.
    """
    timings = race(title, entries, pace)
    stock = [timing for timing in timings.values() if timing.name.startswith("Keras 3")]
    for timing in stock:
        _check_losses(timing, timings[ours])
    steps = len(timings[ours].check["losses"])
    same = f"Losses of ours and of stock Keras 3 agree to {TOLERANCE:g} in the first {steps} steps."
    print_race(title, timings.values(), timings[ours], [*notes, same])


def _check_losses(one: Timing, other: Timing) -> None:
    for step, (loss, expected) in enumerate(zip(one.check["losses"], other.check["losses"], strict=True)):
        if not math.isclose(loss, expected, rel_tol=TOLERANCE):
            raise BenchmarkError(
                f"In step {step} the loss of '{one.name}' is {loss!r}, and that of '{other.name}' is {expected!r}."
            )

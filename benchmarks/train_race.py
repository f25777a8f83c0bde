"""What the benchmarks of train steps share: their command line, and the check that all arms learn the same."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence

from benchmarks import command_line
from benchmarks.harness import BenchmarkError, Entry, Pace, Timing, race
from benchmarks.table import print_race

TOLERANCE = 1e-5
"""Largest relative difference between losses. Stock TensorFlow does not repeat its own sums bit for bit."""


def parse(doc: str | None, optimizers: Sequence[str]) -> tuple[argparse.Namespace, Pace]:
    """Reads the command line.

    Args:
        doc: of the benchmark's module; its first line is shown by --help.
        optimizers: to choose from; the first is the default.
    """
    parser = command_line.parser(doc)
    parser.add_argument("--optimizer", choices=optimizers, default=optimizers[0])
    arguments = parser.parse_args()
    return arguments, command_line.pace(arguments)


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
    stock = [name for name in timings if name.startswith("Keras 3")]
    steps = check_losses(timings, [(name, ours) for name in stock])
    same = f"Losses of ours and of stock Keras 3 agree to {TOLERANCE:g} in the first {steps} steps."
    print_race(title, timings.values(), timings[ours], [*notes, same])


def check_losses(timings: Mapping[str, Timing], alike: Sequence[tuple[str, str]]) -> int:
    """Makes sure that arms learn the same.

    Args:
        timings: by name; each check has "losses", one per step.
        alike: names of arms that must agree.

    Returns:
        How many steps were compared.

    Raises:
        BenchmarkError: a loss differs.
    """
    steps = 0
    for name, other in alike:
        pairs = list(zip(timings[name].check["losses"], timings[other].check["losses"], strict=True))
        for step, (loss, expected) in enumerate(pairs):
            if not math.isclose(loss, expected, rel_tol=TOLERANCE):
                raise BenchmarkError(
                    f"In step {step} the loss of '{name}' is {loss!r}, and that of '{other}' is {expected!r}."
                )
        steps = max(steps, len(pairs))
    return steps

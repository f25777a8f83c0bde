"""The tables that benchmarks print, each with the command that made it and the machine it ran on."""

from __future__ import annotations

import os
import platform
import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.harness import Timing

WIDTH = 118
"""Columns of a table; the same everywhere, so that output sent to a file reads as on a terminal."""

_LOAD_AT_START = os.getloadavg()[0]  # later it counts the benchmark itself


def command() -> str:
    """The command line of this process, as one would type it."""
    main = sys.modules["__main__"].__spec__
    program = f"python -m {main.name}" if main else f"python {sys.argv[0]}"
    return " ".join([program, *map(shlex.quote, sys.argv[1:])])


def machine() -> str:
    """CPU model, cores, and how busy the machine was before the benchmark, in words."""
    return f"{_cpu_model()}, {os.cpu_count()} cores, load average {_LOAD_AT_START:.1f} at the start"


def _cpu_model() -> str:
    path = Path("/proc/cpuinfo")
    if path.exists():
        for line in path.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def print_race(title: str, timings: Iterable[Timing], reference: Timing, notes: Sequence[str] = ()) -> None:
    """Prints one line per arm: times in ms, and how many times as long as the reference it takes.

    Args:
        title: what was raced.
        timings: the arms.
        reference: the arm that the others are compared with.
        notes: sentences to stand below.
    """
    table = Table("arm", title=title)
    for heading in ("min ms", "median ms", "x ours, paired", "x ours, min"):
        table.add_column(heading, justify="right")
    for timing in timings:
        table.add_row(
            timing.name,
            f"{timing.min * 1e3:.2f}",
            f"{timing.median * 1e3:.2f}",
            f"{timing.ratio_to(reference):.2f}",
            f"{timing.min / reference.min:.2f}",
        )
    explained = "x ours: how many times as long as ours; paired: median over rounds of the ratio of their medians."
    print_table(table, [explained, *notes])


def print_table(table: Table, notes: Sequence[str] = ()) -> None:
    """Prints a table, sentences about it, the command and the machine."""
    console = Console(width=WIDTH, highlight=False)
    console.print(table)
    for line in (*notes, f"command: {command()}", f"machine: {machine()}"):
        console.print(line, markup=False)
    console.print()

"""Options that benchmarks share."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Mapping
from pathlib import Path

from benchmarks.harness import QUICK, ROOT, Pace
from benchmarks.shapes import SHAPES, Shape

_USUAL = Pace()
PEERS_PYTHON = ROOT / ".venv-peers" / "bin" / "python"
"""Interpreter of the environment that `make bench-peers` installs FBGEMM in."""


def parser(doc: str | None, rounds: int = Pace.rounds) -> argparse.ArgumentParser:
    """A command line with --rounds and --quick.

    Args:
        doc: of the benchmark's module; its first line is shown by --help.
        rounds: turns of each arm, unless the command line says otherwise.
    """
    made = argparse.ArgumentParser(description=(doc or "").partition("\n")[0])
    made.add_argument("--rounds", type=int, help=f"turns of each arm; default: {rounds}")
    made.add_argument("--quick", action="store_true", help="a few rounds only")
    made.set_defaults(default_rounds=rounds)
    return made


def pace(arguments: argparse.Namespace, usual: Pace = _USUAL) -> Pace:
    """What --rounds and --quick ask for; `usual` has what they do not say."""
    base = QUICK if arguments.quick else dataclasses.replace(usual, rounds=arguments.default_rounds)
    return dataclasses.replace(base, rounds=arguments.rounds or base.rounds)


def add_shape(made: argparse.ArgumentParser, known: Mapping[str, Shape] = SHAPES) -> None:
    """Adds --shape, one of the known ones or all, and --peers-python."""
    made.add_argument("--shape", choices=[*known, "all"], default="all", help="what is looked up; default: all")
    made.set_defaults(known_shapes=known)
    made.add_argument("--peers-python", type=Path, default=PEERS_PYTHON, help="interpreter that FBGEMM is in")


def shapes(arguments: argparse.Namespace) -> list[Shape]:
    """What --shape asks for."""
    known = arguments.known_shapes
    return list(known.values()) if arguments.shape == "all" else [known[arguments.shape]]


def peers_python(arguments: argparse.Namespace) -> Path | None:
    """The interpreter that FBGEMM is in; None where there is no such environment."""
    return arguments.peers_python if arguments.peers_python.exists() else None

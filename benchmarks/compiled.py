"""Small pieces of C++ that a benchmark compiles for itself and calls through ctypes."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness import ROOT, BenchmarkError


def has_compiler() -> bool:
    """Whether C++ can be compiled here."""
    return shutil.which("g++") is not None


def load(name: str, sources: Sequence[Path], compile_flags: Sequence[str], link_flags: Sequence[str]) -> ctypes.CDLL:
    """Compiles a library, unless it is there and newer than its sources, and loads it.

    Args:
        name: of the library.
        sources: C++ files.
        compile_flags: come before the sources.
        link_flags: come after the sources.

    Raises:
        BenchmarkError: it does not compile.
    """
    target = ROOT / "build" / "benchmarks" / f"{name}.so"
    if not target.exists() or target.stat().st_mtime < max(source.stat().st_mtime for source in sources):
        target.parent.mkdir(parents=True, exist_ok=True)
        command = ["g++", "-O3", "-shared", "-fPIC", f"-I{ROOT}", *compile_flags, *map(str, sources)]
        result = subprocess.run([*command, "-o", str(target), *link_flags], capture_output=True)
        if result.returncode:
            raise BenchmarkError(f"{name} could not be compiled: {result.stderr.decode(errors='replace')[-1000:]}")
    return ctypes.CDLL(str(target))

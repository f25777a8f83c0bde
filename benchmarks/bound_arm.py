"""Arms that do nothing but move bytes: what the machine's memory allows, measured in the same rounds."""

from __future__ import annotations

import ctypes
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from benchmarks import compiled
from benchmarks.harness import ROOT
from benchmarks.worker import Arm

_COPIED = 128 << 20
"""Bytes that a step copies: several times the last-level cache, so that all of them come from memory and go there."""


def build(moved_bytes: int, threads: int = 2) -> Arm:
    """Copies large arrays, and scales the time to that of moving `moved_bytes`.

    Each thread copies its own part by `np.copyto`, a plain memory copy without the interpreter lock. A copy of n bytes
    counts as 2 n bytes moved, n read and n written, as the roofline formula counts rows.

    Args:
        moved_bytes: bytes that a step of the other arms must move, reads and writes together.
        threads: that copy at once.
    """
    source = [np.ones(_COPIED // threads, np.uint8) for _ in range(threads)]
    target = [np.ones(_COPIED // threads, np.uint8) for _ in range(threads)]  # written once: no page faults later
    pool = ThreadPoolExecutor(threads)
    return Arm(
        step=lambda: list(pool.map(np.copyto, target, source)),
        check=dict,
        scale=moved_bytes / (2 * _COPIED),
    )


def sweep(values: int, threads: int = 2) -> Arm:
    """Reads, changes and writes back a variable and two moments, each float32 [values]: what dense Adam must move.

    The loop is compiled for this machine, does next to no arithmetic, and each thread has its own part of each array.

    Args:
        values: floats of the variable: all rows of all tables.
        threads: that sweep at once.
    """
    flags = ["-march=native"]
    run = compiled.load("stream_sweep", [ROOT / "benchmarks" / "stream_sweep.cc"], flags, []).picasso_stream_sweep
    run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long]
    part = values // threads
    arrays = [[np.ones(part, np.float32) for _ in range(3)] for _ in range(threads)]
    pool = ThreadPoolExecutor(threads)

    def one(of_thread: list[np.ndarray]) -> None:
        run(*(array.ctypes.data for array in of_thread), part)

    def check() -> dict[str, float]:
        return {"moved_bytes": 2 * 3 * 4 * part * threads}

    return Arm(step=lambda: list(pool.map(one, arrays)), check=check)

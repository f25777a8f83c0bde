"""The arm that does nothing but move bytes: what the machine's memory allows, measured in the same rounds."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

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

"""One folder per process below `dump_dir`, so that several processes never write the same file."""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path
from typing import IO


class DumpRoot:
    """Claims `dump_dir/process_0`, or `process_1`, ... when another live process holds it.

    The claim is a file lock, which the system releases when a process ends however it ends: a single process finds its
    dumps in the same place from run to run. A forked child claims a folder of its own.

    Args:
        folder: the `dump_dir`.
    """

    def __init__(self, folder: Path):
        self._folder = folder
        self._lock = threading.Lock()
        self._pid = 0
        self._held: IO[str] | None = None
        self._claimed: Path | None = None

    def graph_folder(self, name: str) -> Path:
        """The folder of graph `name` of this process.

        Raises:
            OSError: the folder cannot be written.
        """
        with self._lock:
            if self._claimed is None or self._pid != os.getpid():
                self._claimed = self._claim()
                self._pid = os.getpid()
            return self._claimed / name

    def _claim(self) -> Path:
        number = 0
        while True:
            path = self._folder / f"process_{number}"
            path.mkdir(parents=True, exist_ok=True)
            held = open(path / ".lock", "w")  # noqa: SIM115 the lock lives as long as the process
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                held.close()
                number += 1
                continue
            self._held = held
            return path

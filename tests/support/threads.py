"""Many threads that read while one writes."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable


def read_while_writing(read: Callable[[], None], write: Callable[[int], None], readers: int, times: int) -> None:
    """Calls `read` in some threads while another one calls `write` with 1, 2, ...; fails if a `read` did.

    Args:
        read: reads and asserts.
        write: writes once.
        readers: number of threads that read.
        times: calls of `read` in each of them.
    """
    stop, failures = threading.Event(), []

    def keep_writing() -> None:
        for number in itertools.count(1):
            if stop.is_set():
                return
            write(number)

    def keep_reading() -> None:
        try:
            for _ in range(times):
                read()
        except Exception as error:  # a thread's exception would be lost
            failures.append(error)

    writer = threading.Thread(target=keep_writing)
    started = [threading.Thread(target=keep_reading) for _ in range(readers)]
    for thread in [writer, *started]:
        thread.start()
    for thread in started:
        thread.join()
    stop.set()
    writer.join()
    assert failures == []

"""Races: several arms do the same work in turns, and are compared round by round.

The plugin is a switch of the whole process, and FBGEMM lives under another interpreter, so each arm gets a process of
its own (`benchmarks.worker`). All of them stay alive, and exactly one works at any time. A machine that others use has
slow phases: arms take turns of a few hundredths of a second, and a ratio is taken within each round before the rounds
are summed up.
"""

from __future__ import annotations

import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.progress import track

ROOT = Path(__file__).resolve().parent.parent
_LOG_TAIL = 2000  # bytes of a worker's log that an error quotes


class BenchmarkError(RuntimeError):
    """An arm failed or computed the wrong thing; the message says which and why."""


@dataclass(frozen=True)
class Entry:
    """One arm of a race.

    Attributes:
        name: for people.
        build: `module:function`, called with `settings` in the arm's process; returns a `benchmarks.worker.Arm`.
        settings: plain values, ready for JSON.
        python: the interpreter that the arm runs under.
    """

    name: str
    build: str
    settings: dict[str, Any] = field(default_factory=dict)
    python: str = sys.executable


@dataclass(frozen=True)
class Pace:
    """How long a race takes.

    Attributes:
        rounds: turns of each arm.
        chunk: seconds of a turn.
        settle: steps at the start of a turn that are not timed.
        warm_up: steps before the first round.
    """

    rounds: int = 40
    chunk: float = 0.06
    settle: int = 2
    warm_up: int = 10


QUICK = Pace(rounds=8, warm_up=5)


@dataclass(frozen=True)
class Timing:
    """What was measured of one arm.

    Attributes:
        name: of the arm.
        rounds: seconds of each step, by round.
        check: what the arm said of its results.
    """

    name: str
    rounds: list[list[float]]
    check: dict[str, Any]

    @property
    def min(self) -> float:
        """Seconds of the fastest step."""
        return min(min(steps) for steps in self.rounds)

    @property
    def median(self) -> float:
        """Seconds of the median step."""
        return statistics.median(second for steps in self.rounds for second in steps)

    @property
    def steps(self) -> int:
        """How many steps were timed."""
        return sum(map(len, self.rounds))

    def percentile(self, percent: int) -> float:
        """Seconds that so many percent of the steps do not exceed."""
        seconds = [second for steps in self.rounds for second in steps]
        return statistics.quantiles(seconds, n=100, method="inclusive")[percent - 1]

    def ratio_to(self, other: Timing) -> float:
        """How many times as long as `other` this arm takes: the median, over rounds, of the ratio within a round."""
        pairs = zip(self.rounds, other.rounds, strict=True)
        return statistics.median(statistics.median(mine) / statistics.median(theirs) for mine, theirs in pairs)


class Worker:
    """The parent's end of an arm's process."""

    def __init__(self, entry: Entry):
        """Starts the process; it builds the arm while the caller goes on."""
        self.name = entry.name
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  (closed on exit)
        self._process = subprocess.Popen(
            [entry.python, "-m", "benchmarks.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=ROOT,
            text=True,
        )
        self._send({"build": entry.build, "settings": entry.settings})

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
        self._log.close()

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Sends a request and waits for its answer."""
        self._send(request)
        return self.receive()

    def receive(self) -> dict[str, Any]:
        """Waits for the answer to the oldest request.

        Raises:
            BenchmarkError: the arm failed.
        """
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        answer = json.loads(line) if line else {"error": f"its process ended with code {self._process.wait()}"}
        if "error" in answer:
            self._log.seek(max(self._log.seek(0, 2) - _LOG_TAIL, 0))
            log = self._log.read().decode(errors="replace").strip()
            raise BenchmarkError(f"The arm '{self.name}' failed: {answer['error']}\n{log}")
        return answer

    def _send(self, request: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # the process has ended; receiving says why
            print(json.dumps(request), file=self._process.stdin, flush=True)


def race(title: str, entries: Sequence[Entry], pace: Pace = Pace(), announce: bool = False) -> dict[str, Timing]:
    """Runs a race.

    Args:
        title: shown while it runs.
        entries: the arms; their names differ.
        pace: how long.
        announce: whether a line on standard error tells when an arm is built; for arms that take minutes.

    Returns:
        The timing of each arm, by name, in the order of `entries`.

    Raises:
        BenchmarkError: an arm failed.
    """
    with contextlib.ExitStack() as stack:
        workers = [stack.enter_context(Worker(entry)) for entry in entries]
        start = time.perf_counter()
        for worker in workers:
            worker.receive()
            if announce:
                print(f"{title}: {worker.name} is built, {time.perf_counter() - start:.0f} s", file=sys.stderr)
        for worker in workers:
            worker.ask({"warm_up": pace.warm_up})
        rounds: dict[str, list[list[float]]] = {worker.name: [] for worker in workers}
        for number in track(range(pace.rounds), title, transient=True):
            # Every other round runs backwards, so that no arm always follows the same one.
            for worker in workers if number % 2 == 0 else reversed(workers):
                answer = worker.ask({"chunk": pace.chunk, "settle": pace.settle})
                rounds[worker.name].append(answer["seconds"])
        return {
            worker.name: Timing(worker.name, rounds[worker.name], worker.ask({"check": True})["check"])
            for worker in workers
        }

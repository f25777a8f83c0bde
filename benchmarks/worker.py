"""The process in which one arm of a race lives: JSON lines in, JSON lines out.

    {"build": "module:function", "settings": {...}}  ->  {}
    {"warm_up": steps}                               ->  {}
    {"chunk": seconds, "settle": steps}              ->  {"seconds": [...]}
    {"check": true}                                  ->  {"check": {...}}

Whatever goes wrong is answered with {"error": sentence}. The module imports nothing but the standard library, so that
it runs under any interpreter, such as the one that FBGEMM is installed in.
"""

import importlib
import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

MIN_STEPS = 3
"""Steps of a chunk at least, however long one takes."""


@dataclass
class Arm:
    """What a builder returns.

    Attributes:
        step: one unit of work; returns when it is done.
        check: values by which the parent sees that the arm computes what it should.
        scale: seconds of a step are multiplied by this: a step may do a known multiple of the unit.
    """

    step: Callable[[], object]
    check: Callable[[], dict[str, Any]]
    scale: float = 1.0


def measure(arm: Arm, seconds: float, settle: int) -> list[float]:
    """Times steps one by one.

    Args:
        arm: whose steps.
        seconds: stop after the step that ends later than this, but not before `MIN_STEPS`.
        settle: steps beforehand that are not timed: another process had the caches until now.

    Returns:
        Seconds of each step.
    """
    for _ in range(settle):
        arm.step()
    taken: list[float] = []
    end = time.perf_counter() + seconds
    while len(taken) < MIN_STEPS or time.perf_counter() < end:
        start = time.perf_counter()
        arm.step()
        taken.append((time.perf_counter() - start) * arm.scale)
    return taken


class Session:
    """Answers requests, one after the other."""

    def __init__(self) -> None:
        self._arm: Arm | None = None

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        if "build" in request:
            module, _, function = request["build"].partition(":")
            self._arm = getattr(importlib.import_module(module), function)(**request["settings"])
            return {}
        assert self._arm is not None, "the first request builds the arm"
        if "warm_up" in request:
            for _ in range(request["warm_up"]):
                self._arm.step()
            return {}
        if "chunk" in request:
            return {"seconds": measure(self._arm, request["chunk"], request["settle"])}
        return {"check": self._arm.check()}


def main() -> None:
    """Serves until standard input ends."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever libraries print must not get between the answers
    session = Session()
    for line in sys.stdin:
        try:
            answer = session.answer(json.loads(line))
        except Exception as error:
            traceback.print_exc()
            first_line = str(error).partition("\n")[0]
            answer = {"error": f"{type(error).__name__}: {first_line}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    # As a module of its own name, so that arms and the session share one class Arm.
    importlib.import_module("benchmarks.worker").main()

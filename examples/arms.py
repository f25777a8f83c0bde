"""One training run in a process of its own, driven step by step from outside.

The demo compares two runs. The plugin is switched on for a whole process, so each run gets its own: first-step time,
memory and results of one are untouched by the other. Both stay alive and work in turns, never at the same time: the
run is a single Keras `fit` whose callback stops between batches until the parent asks for more.
"""

import contextlib
import multiprocessing
import types
from typing import Any, Self

from examples import arm_process
from examples.arm_messages import ArmSettings, Chunk, Summary
from examples.click_data import ClickData


class ArmError(RuntimeError):
    """A run ended before its time; the message says why and where its log is."""


class Arm:
    """The parent's end of a run. Every method returns only when the run is idle again."""

    def __init__(self, settings: ArmSettings, data: ClickData):
        """Starts the process and builds the model in it.

        Args:
            settings: of the run.
            data: what to train and test on.

        Raises:
            ArmError: if the model cannot be built.
        """
        self._settings = settings
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=arm_process.run, args=(theirs, settings, data), daemon=True)
        self._process.start()
        theirs.close()
        self._receive()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: types.TracebackType | None
    ) -> None:
        self._connection.close()
        self._process.terminate()
        self._process.join()

    def train(self, steps: int) -> Chunk:
        """Trains for `steps` more steps."""
        return self._ask(steps)

    def finish(self) -> Summary:
        """Tests the model; to be called after the last step."""
        return self._ask("test")

    def _ask(self, request: int | str) -> Any:
        with contextlib.suppress(BrokenPipeError):  # the process has ended; receiving says why
            self._connection.send(request)
        return self._receive()

    def _receive(self) -> Any:
        try:
            return self._connection.recv()
        except (EOFError, ConnectionResetError):
            self._process.join()
            with open(self._settings.log_path, encoding="utf-8", errors="replace") as log:
                lines = log.read().split("\n")
            reason = next((line for line in reversed(lines) if line.strip()), f"exit code {self._process.exitcode}")
            raise ArmError(
                f"The {self._settings.name} run stopped: {reason} (log: {self._settings.log_path})"
            ) from None

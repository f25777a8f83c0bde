"""A stand-in for `harness.Worker` that builds the arm in the test's own process, which has TensorFlow loaded."""

from __future__ import annotations

import json
from typing import Any

import picasso_tf
from benchmarks.harness import Entry
from benchmarks.worker import Session


class InProcessWorker:
    """Answers as a process of its own would. Arms that want the plugin find it off, and leave it on for their turn."""

    def __init__(self, entry: Entry):
        self.name = entry.name
        self._session = Session()
        if picasso_tf.is_enabled():
            picasso_tf.disable()
        request = {"build": entry.build, "settings": entry.settings}
        self._session.answer(json.loads(json.dumps(request)))

    def __enter__(self) -> InProcessWorker:
        return self

    def __exit__(self, *_: object) -> None:
        if picasso_tf.is_enabled():
            picasso_tf.disable()

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        return json.loads(json.dumps(self._session.answer(json.loads(json.dumps(request)))))

    def receive(self) -> dict[str, Any]:
        return {}

"""Packed updates in processes of their own: TensorFlow Recommenders, two replicas."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.equivalence.update_situations import FULL

ROOT = Path(__file__).parents[2]


def _compared(name: str, *rules: str, **environment: str) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "tests.equivalence.update_script", name, *rules]
    variables = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **environment}
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=variables, timeout=500)
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def test_tensorflow_recommenders() -> None:
    """TFRS's ranking model: 4 tables, one of them shared, which its embedding layer updates."""
    rules = ["SGD", "momentum", "Adagrad", "Adam", "Ftrl"] if FULL else ["Adagrad", "Ftrl"]
    found = _compared("recommenders", *rules, TF_USE_LEGACY_KERAS="1")
    assert [each["rule"] for each in found] == rules
    for each in found:
        assert sum(each["updates"]) >= 4, each
        assert len(each["updates"]) <= 4, each
        assert not each["declined"], each


@pytest.mark.skipif(not FULL, reason="in the full matrix")
def test_two_replicas() -> None:
    """MirroredStrategy on two logical CPUs: one packed update per device."""
    rules = ["SGD", "Adagrad", "Adam", "RMSprop"]
    found = _compared("mirrored", *rules)
    assert [each["rule"] for each in found] == rules
    for each in found:
        assert len(each["updates"]) == 2, each
        assert each["updates"][0] == each["updates"][1] >= 4, each
        assert not each["declined"], each

"""Races in the test's own process."""

import pytest

from benchmarks import first_step, harness
from tests.benchmarks.in_process import InProcessWorker


@pytest.fixture
def in_process(monkeypatch):
    """No processes: TensorFlow is loaded here, and starting it takes longer than what is tested."""
    for module in (harness, first_step):
        monkeypatch.setattr(module, "Worker", InProcessWorker)
    monkeypatch.setenv("TF_USE_LEGACY_KERAS", "0")  # arms of tf_keras set it: to be as it was afterwards

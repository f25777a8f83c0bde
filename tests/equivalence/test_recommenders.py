"""TensorFlow Recommenders: 20 steps with and without the plugin leave the same bits."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

SCRIPT = Path(__file__).with_name("recommenders_script.py")


def _run(command, out):
    environment = {**os.environ, "TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        [*command, str(SCRIPT), str(out)], capture_output=True, text=True, env=environment, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return dict(np.load(out)), done.stderr


def test_training_is_bit_identical(tmp_path):
    stock, _ = _run([sys.executable], tmp_path / "stock.npz")
    picasso = Path(sys.executable).parent / "picasso-tf"
    ours, report = _run([picasso, "run", "--verify"], tmp_path / "ours.npz")
    assert stock.keys() == ours.keys()
    for name, expected in stock.items():
        assert expected.tobytes() == ours[name].tobytes(), name
    rows = [line.split("│") for line in report.splitlines() if "update-" in line]
    assert sorted(int(row[4]) for row in rows)[-1] >= 3  # the three tables of the ranking model

"""The command line, run as a user runs it."""

import subprocess
import sys
from pathlib import Path

import pytest
import tensorflow as tf

from graph_passes.ir import parse_graph
from graph_passes.pipeline.base import PassContext
from graph_passes.pipeline.manager import PassManager
from graph_passes.pipeline.reproducer import Reproduce
from graph_passes.registry import BY_NAME
from tests.api.test_api import Raising

ROOT = Path(__file__).resolve().parents[2]
TRAIN = """
import sys
import numpy as np, tensorflow as tf
tables = [tf.Variable(np.ones((10, width), "f")) for width in (4, 2)]
@tf.function
def step(ids):
    return tf.reduce_sum(tf.concat([tf.gather(table, ids) for table in tables], 1))
print("arguments", sys.argv[1:], "sum", float(step(tf.constant([1, 2]))))
"""


def picasso(*arguments, **kwargs):
    """Runs `picasso-tf` with these arguments."""
    command = [str(Path(sys.executable).parent / "picasso-tf"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120, **kwargs)


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(TRAIN)
    return path


def test_run_enables_the_plugin_for_a_script_that_is_not_edited(script, tmp_path):
    done = picasso("run", f"--dump_dir={tmp_path / 'dumps'}", script, "--batch", "3")
    assert done.returncode == 0, done.stderr
    assert "arguments ['--batch', '3'] sum 12.0" in done.stdout
    assert "lookups packed" in done.stderr
    assert len(list((tmp_path / "dumps" / "process_0").glob("forward-*/000_before.txt"))) == 1


def test_run_shows_a_script_s_own_error_with_its_traceback(tmp_path):
    script = tmp_path / "bad.py"
    script.write_text("raise KeyError('mine')")
    done = picasso("run", "--noreport", script)
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "KeyError: 'mine'" in done.stderr


def test_explain_takes_a_script_a_saved_model_and_a_graph(script, tmp_path):
    assert "packed 2 lookups into" in picasso("explain", script).stdout

    module = tf.Module()
    module.tables = [tf.Variable(tf.ones((10, width))) for width in (4, 2)]
    module.serve = tf.function(
        lambda ids: tf.concat([tf.gather(table, ids) for table in module.tables], 1),
        input_signature=[tf.TensorSpec([None], tf.int32)],
    )
    tf.saved_model.save(module, str(tmp_path / "model"), signatures=module.serve)
    done = picasso("explain", tmp_path / "model")
    assert "packed 2 lookups into" in done.stdout, done.stderr

    with tf.Graph().as_default() as graph:
        ids = tf.compat.v1.placeholder(tf.int32, [None], name="ids")
        tf.identity(tf.gather(tf.Variable(tf.ones((10, 4))), ids), name="rows")
    (tmp_path / "graph.pb").write_bytes(graph.as_graph_def().SerializeToString())
    done = picasso("explain", "--fetches=rows", "--feeds=ids", tmp_path / "graph.pb")
    assert "declined [single_lookup]" in done.stdout, done.stderr


@pytest.mark.fail_open
def test_replay_runs_a_reproducer_again(tmp_path):
    graph = parse_graph("packed = Picasso>PackedLookup() {num_tables = 0}")
    instrument = Reproduce(tmp_path, BY_NAME, {})
    run = PassManager([Raising()], [instrument]).run(graph, PassContext())
    done = picasso("replay", run.failure.reproducer)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Reproduced: Pass 'raising' failed (RuntimeError: made to fail).")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["train"], "There is no command 'train'. Commands: run, explain, replay."),
        (["run"], "`picasso-tf run` needs a script"),
        (["run", "nowhere.py"], "There is no script 'nowhere.py'."),
        (["run", "--max_group_size=1", "x.py"], "`max_group_size` must be an int >= 2. Received: `max_group_size=1`."),
        (["run", "--max_group_size=x", "x.py"], "flag --max_group_size=x"),
        (["run", "--colour", "x.py"], "Unknown command line flag 'colour'"),
        (["run", "--dump_dir=/proc/nowhere", "x.py"], "`dump_dir` cannot be written"),
        (["explain", "nowhere"], "'nowhere' cannot be read as a GraphDef"),
        (["replay", "nowhere"], "'nowhere' is not a reproducer"),
    ],
)
def test_wrong_use_is_answered_by_one_sentence(arguments, sentence):
    done = picasso(*arguments, env={"PATH": "/usr/bin:/bin", "TF_CPP_MIN_LOG_LEVEL": "3"})
    assert done.returncode == 2
    lines = [line for line in done.stderr.splitlines() if line.startswith("picasso-tf:")]
    assert len(lines) == 1
    assert sentence in lines[0]
    assert "Traceback" not in done.stderr


def test_an_unsupported_tensorflow_is_one_sentence():
    code = (
        "import sys; sys.argv = ['picasso-tf']; import tensorflow as tf; tf.__version__ = '2.9.0';"
        "from picasso_tf.cli.main import run; run()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("picasso-tf: picasso-tf 0.1.0 supports TensorFlow >= 2.21.0")
    assert 'pip install "tensorflow>=2.21.0,<2.22.0"' in done.stderr
    assert "Traceback" not in done.stderr

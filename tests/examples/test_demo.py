"""The example model learns, and the demo runs end to end as a user would run it."""

import pathlib
import re
import subprocess
import sys

import keras
import numpy as np
import pytest

from examples import arm_messages, arms, wide_and_deep
from examples.movielens_features import load_movielens

ROOT = pathlib.Path(__file__).parents[2]


def demo(*arguments: str, command: tuple[str, ...] = ("-m", "examples.demo")) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, *command, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )


def small_model(**options) -> keras.Model:
    return wide_and_deep.build_model({"user": 7, "movie": 11}, 3, embedding_dim=4, hidden=(8,), **options)


def test_learning_rates_name_keras_optimizers():
    for name, rate in arm_messages.LEARNING_RATES.items():
        model = small_model()
        wide_and_deep.compile_model(model, name, rate)
        assert type(model.optimizer).__name__.lower() == name
        assert float(model.optimizer.learning_rate) == pytest.approx(rate)


def test_wide_part_has_one_weight_per_id_of_its_fields_only():
    tables = {
        layer.name: layer.embeddings.shape
        for layer in small_model(wide_fields=["movie"]).layers
        if "Emb" in type(layer).__name__
    }
    assert tables == {"deep_user": (7, 4), "deep_movie": (11, 4), "wide_movie": (11, 1)}


@pytest.mark.parametrize("optimizer", ["sgd", "adagrad", "adam"])
def test_model_learns_a_batch(optimizer):
    random = np.random.default_rng(0)
    x = {"user": random.integers(0, 7, 64, "int32"), "movie": random.integers(0, 11, 64, "int32")}
    x["dense"] = random.normal(size=(64, 3)).astype("float32")
    y = (x["user"] > 3).astype("float32")
    keras.utils.set_random_seed(0)
    model = small_model(wide_fields=["user"])
    wide_and_deep.compile_model(model, optimizer, 0.05)
    losses = [float(model.train_on_batch(x, y)) for _ in range(60)]
    assert model.predict(x, verbose=0).shape == (64, 1)
    assert losses[-1] < 0.7 * losses[0]


def test_arm_trains_in_turns_and_reports(tmp_path):
    settings = arm_messages.ArmSettings("stock", False, "sgd", False, 4096, 5, 2, 0, str(tmp_path))
    with arms.Arm(settings, load_movielens()) as arm:
        chunks = [arm.train(2), arm.train(3)]
        summary = arm.finish()
    assert [len(chunk.seconds) for chunk in chunks] == [2, 3]
    losses = chunks[0].losses + chunks[1].losses
    assert len(set(losses)) == 5
    assert np.isfinite(losses).all()
    assert chunks[0].seconds[0] > chunks[1].seconds[-1]  # the first step traces
    assert 0.4 < summary.auc < 1
    assert summary.peak_bytes > 0
    assert summary.graphs == []


def test_arm_that_fails_says_why_and_where_its_log_is(tmp_path):
    settings = arm_messages.ArmSettings("stock", False, "sgd", False, 10**6, 5, 2, 0, str(tmp_path))
    with pytest.raises(arms.ArmError, match=r"The stock run stopped: .*`batch_size=1000000`.*stock\.log"):
        arms.Arm(settings, load_movielens())


@pytest.mark.parametrize("command", [("-m", "examples.demo"), ("examples/demo.py",)])
def test_demo_compares_stock_and_plugin(tmp_path, command):
    result = demo("--steps=8", "--optimizer=sgd", f"--dump_dir={tmp_path / 'dumps'}", command=command)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    for label in ("step, median", "step, minimum", "first step", "peak memory", "test AUC"):
        assert re.search(rf"{label} +│ +[\d.]+.*│ +[\d.]+", result.stdout), result.stdout
    words = " ".join(result.stdout.split())
    before, after = map(int, re.search(r"train step went from (\d+) to (\d+) nodes", words).groups())
    assert 0 < after < before
    assert float(re.search(r"largest difference between the two curves (\S+) over 8 steps", words)[1]) < 1e-5
    assert "Failure" not in words
    assert re.search(r"\d+ lookups and \d+ writes of variables and slots packed into 3 ops, 0 declined", words), words
    assert {path.name for path in (tmp_path / "dumps").iterdir()} > {"stock.log", "plugin.log"}  # and the dumps


def test_demo_on_generated_criteo_packs_the_26_tables(tmp_path):
    result = demo(
        "--steps=6", "--optimizer=sgd", "--dataset=criteo", "--rows=20000", "--batch_size=256", f"--dump_dir={tmp_path}"
    )
    assert result.returncode == 0, result.stderr
    words = " ".join(result.stdout.split())
    assert "26 categorical fields" in words
    assert "26 lookups and 33 writes of variables and slots packed into 3 ops, 0 declined" in words, words


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--optimizer=nope"], "--optimizer=nope"),
        (["--batch_size=0"], "batch_size"),
        (["--no_such_flag"], "no_such_flag"),
        (["--steps=2"], "At least 5 steps are needed"),
        (["--batch_size=1000000"], "`batch_size` must not exceed"),
        (["--criteo=/no/such/file"], "`/no/such/file` cannot be read"),
        (["--dataset=movielens", "--criteo=x"], "`--criteo` needs `--dataset=criteo`"),
        (["train"], "Received: `train`"),
    ],
)
def test_bad_flags_get_one_sentence(arguments, sentence):
    result = demo(*arguments)
    assert result.returncode == 2
    assert result.stdout == ""
    assert re.fullmatch(r"demo: .+\n", result.stderr), result.stderr
    assert sentence in result.stderr

"""A train step over one large table: the case in which stock Keras 3 copies the table in every step.

    python -m benchmarks.one_table
    python -m benchmarks.one_table --quick --optimizer adagrad

tf_keras, which reads rows by themselves, is shown for reference, with its own optimizers and with its legacy ones.
"""

from __future__ import annotations

import importlib

import numpy as np

from benchmarks import train_race
from benchmarks.harness import Entry
from benchmarks.worker import Arm

BATCHES = 16
OURS = "ours, Keras 3"


def build(
    front_end: str,
    optimizer: str,
    rows: int,
    width: int,
    batch: int,
    plugin: bool = False,
    lookup: bool = True,
    legacy: bool = False,
) -> Arm:
    """An embedding and one dense unit on top.

    Args:
        front_end: "keras" (that is Keras 3) or "tf_keras".
        optimizer: name of a Keras optimizer, with its default options.
        rows: of the table.
        width: float32 values of a row.
        batch: examples per step.
        plugin: whether picasso_tf is enabled.
        lookup: False leaves the table out: the dense unit reads its input.
        legacy: tf_keras only: the optimizer of its older generation, which never touches a whole table.
    """
    from benchmarks import train_arm  # imports TensorFlow, which the parent does without

    train_arm.enable(plugin)
    keras = importlib.import_module(front_end)
    keras.utils.set_random_seed(0)
    if lookup:
        inputs = keras.Input((1,), dtype="int32")
        hidden = keras.layers.Flatten()(keras.layers.Embedding(rows, width)(inputs))
    else:
        inputs = hidden = keras.Input((width,))
    model = keras.Model(inputs, keras.layers.Dense(1)(hidden))
    options = {"use_legacy_optimizer": True} if legacy else {}
    model.compile(keras.optimizers.get(optimizer, **options), "mse", jit_compile=False)
    random = np.random.default_rng(0)
    ids = random.integers(0, rows, (BATCHES, batch, 1), np.int32)
    values = random.standard_normal((BATCHES, batch, width), np.float32)
    labels = random.standard_normal((BATCHES, batch, 1), np.float32)
    return train_arm.train(model, ids if lookup else values, labels, rewritten=1 if plugin else 0)


def entries(optimizer: str, rows: int, width: int, batch: int) -> list[Entry]:
    """The arms; arguments as of `build`."""

    shared = {"optimizer": optimizer, "rows": rows, "width": width, "batch": batch}

    def arm(name: str, front_end: str, **settings: bool) -> Entry:
        return Entry(name, "benchmarks.one_table:build", {"front_end": front_end, **shared, **settings})

    return [
        arm(OURS, "keras", plugin=True),
        arm("Keras 3", "keras"),
        arm("tf_keras", "tf_keras"),
        arm("tf_keras, legacy optimizer", "tf_keras", legacy=True),
        arm("dense part alone, Keras 3 stock", "keras", lookup=False),
    ]


def main() -> None:
    """Runs the benchmark."""
    arguments, pace = train_race.parse(__doc__, ["sgd", "adagrad", "adam", "rmsprop"])
    rows, width, batch = 1_000_000, 32, 4096
    title = f"train step, {arguments.optimizer}, one table x {rows:,} rows x {width}, batch {batch:,}"
    arms = entries(arguments.optimizer, rows, width, batch)
    train_race.run(title, arms, OURS, pace, ["dense part alone: the same step with no table."])


if __name__ == "__main__":
    main()

"""A train step over one large table: the case in which stock Keras 3 copies the table in every step.

    python -m benchmarks.one_table
    python -m benchmarks.one_table --quick --optimizer adagrad
"""

from __future__ import annotations

import importlib

import numpy as np

from benchmarks import train_arm, train_race
from benchmarks.harness import Entry
from benchmarks.worker import Arm

BATCHES = 16
OURS = "ours, Keras 3"


def build(front_end: str, plugin: bool, optimizer: str, rows: int, width: int, batch: int, lookup: bool = True) -> Arm:
    """An embedding and one dense unit on top.

    Args:
        front_end: "keras" (that is Keras 3) or "tf_keras".
        plugin: whether picasso_tf is enabled.
        optimizer: name of a Keras optimizer, with its default options.
        rows: of the table.
        width: float32 values of a row.
        batch: examples per step.
        lookup: False leaves the table out: the dense unit reads its input.
    """
    train_arm.enable(plugin)
    keras = importlib.import_module(front_end)
    keras.utils.set_random_seed(0)
    if lookup:
        inputs = keras.Input((1,), dtype="int32")
        hidden = keras.layers.Flatten()(keras.layers.Embedding(rows, width)(inputs))
    else:
        inputs = hidden = keras.Input((width,))
    model = keras.Model(inputs, keras.layers.Dense(1)(hidden))
    model.compile(keras.optimizers.get(optimizer), "mse", jit_compile=False)
    random = np.random.default_rng(0)
    ids = random.integers(0, rows, (BATCHES, batch, 1), np.int32)
    values = random.standard_normal((BATCHES, batch, width), np.float32)
    labels = random.standard_normal((BATCHES, batch, 1), np.float32)
    return train_arm.train(model, ids if lookup else values, labels, plugin)


def entries(optimizer: str, rows: int, width: int, batch: int) -> list[Entry]:
    """The arms; arguments as of `build`."""

    def arm(name: str, front_end: str, plugin: bool = False, lookup: bool = True) -> Entry:
        settings = {"front_end": front_end, "plugin": plugin, "optimizer": optimizer, "lookup": lookup}
        return Entry(name, "benchmarks.one_table:build", settings | {"rows": rows, "width": width, "batch": batch})

    return [
        arm(OURS, "keras", plugin=True),
        arm("Keras 3", "keras"),
        arm("tf_keras", "tf_keras"),
        arm("dense part alone, Keras 3 stock", "keras", lookup=False),
    ]


def main() -> None:
    """Runs the benchmark."""
    arguments, pace = train_race.parse(__doc__, ["sgd", "adagrad", "adam", "rmsprop"])
    rows, width, batch = 1_000_000, 32, 4096
    title = f"train step, {arguments.optimizer}, one table x {rows:,} rows x {width}, batch {batch:,}"
    arms = entries(arguments.optimizer, rows, width, batch)
    train_race.run(title, arms, OURS, lookups=1, pace=pace, notes=["dense part alone: the same step with no table."])


if __name__ == "__main__":
    main()

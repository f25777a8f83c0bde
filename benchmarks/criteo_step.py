"""A train step on data of Criteo's shape: 26 tables of a thousand to a million rows, Wide & Deep in Keras 3.

    python -m benchmarks.criteo_step
    python -m benchmarks.criteo_step --quick --optimizer adagrad

The data and the model are those of `examples.demo --dataset=criteo`.
"""

from __future__ import annotations

import numpy as np

from benchmarks import train_race
from benchmarks.harness import Entry
from benchmarks.worker import Arm

BATCHES = 16
OURS = "ours, Keras 3"


def build(plugin: bool, optimizer: str, width: int, batch: int, lookup: bool = True) -> Arm:
    """The example's model on the example's generated data.

    Args:
        plugin: whether picasso_tf is enabled.
        optimizer: name of a Keras optimizer.
        width: float32 values of an embedding row.
        batch: examples per step.
        lookup: False leaves the tables out: the deep part reads as many dense columns instead.
    """
    from benchmarks import train_arm  # imports TensorFlow, which the parent does without

    train_arm.enable(plugin)
    import keras

    from examples import criteo_features, wide_and_deep
    from examples.arm_messages import LEARNING_RATES

    keras.utils.set_random_seed(0)
    features, labels = criteo_features.generate(BATCHES * batch, seed=0)
    table_rows = criteo_features.TABLE_ROWS
    if not lookup:
        columns = criteo_features.INTEGERS + width * len(table_rows)
        features = {"dense": np.random.default_rng(0).standard_normal((BATCHES * batch, columns), np.float32)}
        table_rows = {}
    model = wide_and_deep.build_model(table_rows, features["dense"].shape[1], embedding_dim=width)
    wide_and_deep.compile_model(model, optimizer, LEARNING_RATES[optimizer])
    batched = {name: values.reshape(BATCHES, batch, *values.shape[1:]) for name, values in features.items()}
    return train_arm.train(model, batched, labels.reshape(BATCHES, batch), len(table_rows) if plugin else 0)


def entries(optimizer: str, width: int, batch: int) -> list[Entry]:
    """The arms; arguments as of `build`."""

    def arm(name: str, plugin: bool = False, lookup: bool = True) -> Entry:
        settings = {"plugin": plugin, "optimizer": optimizer, "width": width, "batch": batch, "lookup": lookup}
        return Entry(name, "benchmarks.criteo_step:build", settings)

    return [
        arm(OURS, plugin=True),
        arm("Keras 3"),
        arm("dense part alone, Keras 3 stock", lookup=False),
    ]


def main() -> None:
    """Runs the benchmark."""
    arguments, pace = train_race.parse(__doc__, ["sgd", "adagrad", "adam"])
    width, batch = 16, 4096
    title = f"train step, {arguments.optimizer}, 26 tables of 1,000 to 1,000,000 rows x {width}, batch {batch:,}"
    arms = entries(arguments.optimizer, width, batch)
    notes = ["dense part alone: the same step with no table, the deep part reading as many dense columns."]
    train_race.run(title, arms, OURS, pace, notes)


if __name__ == "__main__":
    main()

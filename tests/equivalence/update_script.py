"""Comparisons that need a process of their own: python -m tests.equivalence.update_script NAME RULE...

Prints a JSON object per rule: the sizes of the packed updates and what was declined.

    recommenders   TensorFlow Recommenders; wants TF_USE_LEGACY_KERAS=1
    mirrored       tf.distribute.MirroredStrategy on two logical CPUs
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from tests.equivalence.training import Snapshot, compare
from tests.equivalence.update_report import reasons, updates

RATE, STEPS, BATCH = 0.05, 100, 16
ROWS = {"user": (50, 8), "item": (300, 8), "hour": (24, 3), "tag": (7, 1)}
FIELDS = {"user": "user", "item": "item", "other": "item", "hour": "hour", "tag": "tag"}  # two fields of one table


def _columns(seed: int, examples: int) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    columns = {name: np.minimum(generator.zipf(1.3, examples), ROWS[table][0]) - 1 for name, table in FIELDS.items()}
    return {name: column.astype("int32") for name, column in columns.items()}


def _labels(examples: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 2, (examples, 1)).astype("float32")


# ---- TensorFlow Recommenders ---------------------------------------------------------------------------------------


def _legacy(rule: str) -> Any:
    """The optimizer, as TPU embeddings take it."""
    legacy = tf.keras.optimizers.legacy
    options = {"momentum": {"momentum": 0.9}, "Ftrl": {"l1_regularization_strength": 0.01}}.get(rule, {})
    return getattr(legacy, "SGD" if rule == "momentum" else rule)(RATE, **options)


def _ranking(rule: str) -> Any:
    """TFRS's DLRM: tables in the embedding layer for TPUs, run on the CPU, which trains them itself."""
    import tensorflow_recommenders as tfrs

    embedding, blocks = tf.tpu.experimental.embedding, tfrs.layers.blocks
    tables = {name: embedding.TableConfig(rows, 8, combiner="mean", name=name) for name, (rows, _) in ROWS.items()}
    fields = {name: embedding.FeatureConfig(table=tables[table], name=name) for name, table in FIELDS.items()}
    return tfrs.experimental.models.Ranking(
        embedding_layer=tfrs.layers.embedding.TPUEmbedding(fields, _legacy(rule)),
        bottom_stack=blocks.MLP([8], final_activation="relu"),
        top_stack=blocks.MLP([8, 1], final_activation="sigmoid"),
    )


def recommenders(rule: str) -> Snapshot:
    tf.keras.backend.clear_session()
    tf.keras.utils.set_random_seed(1)
    model = _ranking(rule)
    model.compile(optimizer=_legacy(rule))
    examples = STEPS * BATCH
    dense = np.random.default_rng(2).random((examples, 5), np.float32)
    x = {"dense_features": dense, "sparse_features": _columns(0, examples)}
    model.fit(tf.data.Dataset.from_tensor_slices((x, _labels(examples))).batch(BATCH), verbose=0)
    return {f"variable {i}": variable.numpy() for i, variable in enumerate([*model.variables, *_slots(model)])}


def _slots(model: Any) -> list[tf.Variable]:
    optimizers = getattr(model.optimizer, "optimizers", [model.optimizer])
    return [slot for optimizer in optimizers for slot in optimizer.variables() if slot.shape.rank]


# ---- two replicas --------------------------------------------------------------------------------------------------


def mirrored(rule: str) -> Snapshot:
    import tf_keras

    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    generator = np.random.default_rng(3)
    with strategy.scope():
        tables = {name: tf.Variable(generator.normal(size=shape).astype("f")) for name, shape in ROWS.items()}
        optimizer = getattr(tf_keras.optimizers, rule)(RATE)
        variables = list(tables.values())
        optimizer.build(variables)

    @tf.function
    def step(columns: dict[str, Any]) -> Any:
        def replica(columns: dict[str, tf.Tensor]) -> tf.Tensor:
            with tf.GradientTape() as tape:
                rows = [tf.gather(tables[table], columns[name]) for name, table in FIELDS.items()]
                loss = tf.reduce_sum(tf.tanh(tf.concat(rows, axis=-1)) ** 2) * 0.1
            optimizer.apply_gradients(list(zip(tape.gradient(loss, variables), variables, strict=True)))
            return loss

        return strategy.reduce("SUM", strategy.run(replica, (columns,)), axis=None)

    data = tf.data.Dataset.from_tensor_slices(_columns(0, STEPS * BATCH)).batch(BATCH)
    losses = [step(columns).numpy() for columns in strategy.experimental_distribute_dataset(data)]
    slots = optimizer.variables() if callable(optimizer.variables) else optimizer.variables
    values = [
        local.numpy() for variable in [*variables, *slots] for local in strategy.experimental_local_results(variable)
    ]
    return {"losses": np.array(losses), **{f"variable {i}": value for i, value in enumerate(values)}}


NAMES: dict[str, Callable[[str], Snapshot]] = {"recommenders": recommenders, "mirrored": mirrored}


def main(name: str, rules: list[str]) -> None:
    if name == "mirrored":
        (cpu,) = tf.config.list_physical_devices("CPU")
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    for rule in rules:
        report = compare(lambda rule=rule: NAMES[name](rule))
        print(json.dumps({"rule": rule, "updates": updates(report), "declined": sorted(reasons(report))}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])

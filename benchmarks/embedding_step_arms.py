"""Arms of the embedding step in TensorFlow: lookups, concatenation, a given gradient, the optimizer's update."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks import train_arm
from benchmarks.batches import endless
from benchmarks.embedding_step import FIRST_STEPS, LEARNING_RATE
from benchmarks.shapes import Shape
from benchmarks.worker import Arm


def build(shape: dict[str, Any], front_end: str, optimizer: str, plugin: bool = False, jit: bool = False) -> Arm:
    """An Embedding per field, then Concatenate; the gradient of its output is a constant, the same for every arm.

    The output is returned, so that the forward part is computed although no update needs it.

    Args:
        shape: settings of a `Shape`.
        front_end: "keras" (that is Keras 3) or "tf_keras".
        optimizer: name of an optimizer.
        plugin: whether picasso_tf is enabled.
        jit: whether XLA compiles the step, as Keras 3's train step is compiled; the ids come from outside.
    """
    what = Shape(**shape)
    train_arm.enable(plugin)
    keras = importlib.import_module(front_end)
    layers = [keras.layers.Embedding(what.rows, what.width) for _ in range(what.fields)]
    for field, layer in enumerate(layers):
        layer.build(None)
        layer.embeddings.assign(what.table(field))
    tables = [layer.embeddings for layer in layers]
    variables = [table if isinstance(table, tf.Variable) else table.value for table in tables]  # Keras 3 wraps them
    rule = train_arm.optimizer(keras, optimizer, LEARNING_RATE)
    rule.build(tables)
    upstream = tf.constant(what.gradient())

    @tf.function(jit_compile=jit, reduce_retracing=True)
    def update(ids: tuple[tf.Tensor, ...]) -> tf.Tensor:
        with tf.GradientTape() as tape:
            output = tf.concat([layer(column) for layer, column in zip(layers, ids, strict=True)], axis=1)
        gradients = tape.gradient(output, variables, output_gradients=upstream)
        rule.apply_gradients(zip(gradients, tables, strict=True))
        return output

    @tf.function(reduce_retracing=True)
    def step(iterator: Any) -> tf.Tensor:
        return update(next(iterator))

    batches = endless(tuple(what.ids(field) for field in range(what.fields)))
    first = next(iter(batches))
    values = [float(np.square(update(first).numpy(), dtype=np.float64).mean()) for _ in range(FIRST_STEPS)]
    packs = train_arm.packs() if plugin else []
    if plugin and not jit:
        train_arm.check_packed(packs, what.fields)
    iterator = iter(batches)
    return Arm(lambda: step(iterator), lambda: {"losses": values, "packs": packs})

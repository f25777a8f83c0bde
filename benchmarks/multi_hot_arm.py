"""Arms that train a perceptron on pooled multi-hot features: stock or with the plugin, or the dense part alone."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks import gradient_kept, train_arm
from benchmarks.model_shape import FRONT_ENDS
from benchmarks.multi_hot import HIDDEN, MultiHot
from benchmarks.worker import Arm

BATCHES = 8
RATE = 0.05


def build(shape: dict[str, Any], front_end: str, plugin: bool = False, floor: bool = False, train: bool = True) -> Arm:
    """A step of a tf.function: one safe_embedding_lookup_sparse per field, Concatenate, a perceptron, Adagrad.

    Args:
        shape: settings of a `MultiHot`.
        front_end: whose optimizer and dense layers: "keras" (that is Keras 3) or "tf_keras".
        plugin: whether picasso_tf is enabled.
        floor: whether it is the dense part alone, fed with ready-made embeddings.
        train: whether a step trains; else it predicts.
    """
    assert front_end in FRONT_ENDS
    what = MultiHot(**shape)
    train_arm.enable(plugin)
    keras = importlib.import_module(front_end)
    keras.utils.set_random_seed(0)
    tables = [] if floor else [tf.Variable(what.table(field)) for field in range(what.fields)]
    layers = [keras.layers.Dense(units, activation="relu") for units in HIDDEN] + [keras.layers.Dense(1)]
    passed = gradient_kept.layer(keras) if floor else None
    perceptron = keras.Sequential(layers)
    perceptron.build((None, what.fields * what.width))
    rule = train_arm.optimizer(keras, "adagrad", RATE)

    def joined(inputs: Any) -> tf.Tensor:
        if passed is not None:
            return passed(inputs)
        looked_up = [
            tf.nn.safe_embedding_lookup_sparse(table, tf.SparseTensor(*parts), combiner=what.combiner)
            for table, parts in zip(tables, inputs, strict=True)
        ]
        return tf.concat(looked_up, axis=1)

    @tf.function(reduce_retracing=True)
    def step(iterator: Any) -> tf.Tensor:
        inputs, labels = next(iterator)
        with tf.GradientTape() as tape:
            logits = perceptron(joined(inputs))
            loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels, logits))
        if train:
            weights = [
                weight for layer in [perceptron, *filter(None, [passed])] for weight in layer.trainable_variables
            ]
            variables = [*tables, *[w if isinstance(w, tf.Variable) else w.value for w in weights]]
            rule.apply_gradients(zip(tape.gradient(loss, variables), [*tables, *weights], strict=True))
        return loss

    batches = _ready(what) if floor else _sparse(what)
    if floor:
        passed(tf.zeros([1, 1]))
    if train:
        rule.build([*tables, *perceptron.trainable_variables, *(passed.trainable_variables if floor else [])])
    iterator = iter(batches)
    losses = [float(step(iterator)) for _ in range(train_arm.FIRST_STEPS)]
    packs = train_arm.packs() if plugin else []
    return Arm(lambda: step(iterator), lambda: {"losses": losses, "packs": packs})


def _endless(batches: Iterator[Any], signature: Any) -> tf.data.Dataset:
    """Goes through batches of different sizes for ever, as `benchmarks.batches.endless` does through equal ones."""
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.inject_prefetch = False
    made = list(batches)
    dataset = tf.data.Dataset.from_generator(lambda: iter(made), output_signature=signature)
    return dataset.cache().repeat().with_options(options)


def _labels(what: MultiHot) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 2, (BATCHES, what.batch, 1)).astype(np.float32)


def _sparse(what: MultiHot) -> tf.data.Dataset:
    parts = (tf.TensorSpec([None, 2], tf.int64), tf.TensorSpec([None], tf.int64), tf.TensorSpec([2], tf.int64))
    signature = ((parts,) * what.fields, tf.TensorSpec([what.batch, 1]))
    labels = _labels(what)
    return _endless(
        ((tuple(what.ids(field, batch) for field in range(what.fields)), labels[batch]) for batch in range(BATCHES)),
        signature,
    )


def _ready(what: MultiHot) -> tf.data.Dataset:
    random, labels = np.random.default_rng(1), _labels(what)
    width = what.fields * what.width
    signature = (tf.TensorSpec([what.batch, width]), tf.TensorSpec([what.batch, 1]))
    ready = (random.standard_normal((what.batch, width), np.float32) for _ in range(BATCHES))
    return _endless(((one, labels[batch]) for batch, one in enumerate(ready)), signature)

"""Keeps the gradient of an input alive that nobody needs, so that its cost is part of a time."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def layer(keras: Any) -> Any:
    """A layer that passes a nest of float tensors through, with a weight whose gradient reads one value of theirs.

    TensorFlow drops what nobody reads, such as the gradient of an input. Where a trained weight depends on one value of
    it, all of it is computed, at next to no other cost.

    Args:
        keras: the module, Keras 3 or tf_keras.
    """

    class GradientKept(keras.layers.Layer):
        def build(self, _: Any) -> None:
            self.touched = self.add_weight(shape=(), initializer="zeros", name="touched")

        def call(self, values: Any) -> Any:
            return tf.nest.map_structure(lambda value: _passed(value, tf.identity(self.touched)), values)

    return GradientKept()


@tf.custom_gradient
def _passed(values: tf.Tensor, touched: tf.Tensor) -> Any:
    del touched
    return tf.identity(values), lambda upstream: (None, tf.reshape(upstream, [-1])[0])

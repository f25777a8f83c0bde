"""Feeding TensorFlow arms: batches that are ready in memory, taken inside the graph as Keras' fit and predict do."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def endless(tensors: Any) -> tf.data.Dataset:
    """Goes through batches for ever.

    Passing hundreds of tensors to a tf.function costs milliseconds of Python per call, which no model pays that is run
    by `fit` or `predict`. The batches are cached, so that an element costs no copy, and nothing is prefetched, so that
    no work is left over for another arm's turn.

    Args:
        tensors: a nest of arrays of shape [batches, ...].
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.inject_prefetch = False
    return tf.data.Dataset.from_tensor_slices(tensors).cache().repeat().with_options(options)

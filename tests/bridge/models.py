"""Small computations that hold a lookup in a table, which lets them through the gate."""

from collections.abc import Callable

import numpy as np
import tensorflow as tf

IDS = np.array([3, 1, 3], np.int64)


def lookup_times(factor: float) -> tuple[Callable[[], tf.Tensor], np.ndarray]:
    """A fresh tf.function that sums looked-up rows and multiplies them by `factor`, and the row sums themselves."""
    table = tf.Variable(np.arange(20, dtype=np.float32).reshape(5, 4))
    compute = tf.function(lambda ids: tf.reduce_sum(tf.gather(table, ids), axis=1) * factor)
    return lambda: compute(tf.constant(IDS)), table.numpy()[IDS].sum(axis=1)

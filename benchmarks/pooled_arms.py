"""TensorFlow's arms of the benchmark of pooled lookups: our packed op, or stock ops."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks.batches import endless
from benchmarks.shapes import BATCHES, Shape, encoded
from benchmarks.worker import Arm


def build(shape: dict[str, Any], packed: bool = False, splits: bool = False) -> Arm:
    """A tf.function that sums the rows of each bag of each field, and concatenates.

    Args:
        shape: settings of a `Shape`.
        packed: whether one packed op does it; else stock TensorFlow.
        splits: whether bags come as RaggedTensors; else as SparseTensors.
    """
    what = Shape(**shape)
    tables = [tf.Variable(what.table(field)) for field in range(what.fields)]
    batches = endless(tuple((what.ids(field), _bags(what, splits)) for field in range(what.fields)))

    @tf.function(reduce_retracing=True)
    def forward(iterator: Any) -> tf.Tensor:
        ids = [_tensor(what, splits, *parts) for parts in next(iterator)]
        return _packed(tables, ids) if packed else _stock(tables, ids)

    iterator = iter(batches)
    return Arm(lambda: forward(iterator), lambda: {"output": encoded(forward(iter(batches)).numpy())})


def _bags(what: Shape, splits: bool) -> np.ndarray:
    """Which ids belong to which example, [BATCHES, ...]; an array per field, as the fields of a model have."""
    if splits:
        bags = np.arange(0, what.batch * what.pooling + 1, what.pooling)
    else:
        bags = np.argwhere(np.ones((what.batch, what.pooling), bool))
    return np.repeat(bags[None].astype(np.int64), BATCHES, axis=0)


def _tensor(what: Shape, splits: bool, ids: tf.Tensor, bags: tf.Tensor) -> Any:
    if splits:
        return tf.RaggedTensor.from_row_splits(ids, bags, validate=False)
    return tf.SparseTensor(bags, ids, [what.batch, what.pooling])


def _packed(tables: list[tf.Variable], ids: list[Any]) -> tf.Tensor:
    from picasso_tf.ops import packed_pooled_lookup

    return packed_pooled_lookup(tables, ids, combiner="sum", concat=True)


def _stock(tables: list[tf.Variable], ids: list[Any]) -> tf.Tensor:
    pairs = zip(tables, ids, strict=True)
    return tf.concat([tf.nn.embedding_lookup_sparse(table, each, None, combiner="sum") for table, each in pairs], 1)

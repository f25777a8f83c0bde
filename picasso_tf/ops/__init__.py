"""One module per custom op: a thin wrapper and, where the op has one, its gradient."""

from picasso_tf.ops.packed_crosses import Cross, packed_crosses
from picasso_tf.ops.packed_indicators import packed_indicators
from picasso_tf.ops.packed_lookup import packed_lookup
from picasso_tf.ops.packed_pooled_lookup import packed_pooled_lookup
from picasso_tf.ops.packed_transforms import Program, packed_transforms
from picasso_tf.ops.packed_update import UpdateTable, packed_dense_update, packed_sparse_update

__all__ = [
    "Cross",
    "Program",
    "UpdateTable",
    "packed_crosses",
    "packed_dense_update",
    "packed_indicators",
    "packed_lookup",
    "packed_pooled_lookup",
    "packed_sparse_update",
    "packed_transforms",
]

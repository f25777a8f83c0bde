"""One module per custom op: a thin wrapper and the op's gradient."""

from picasso_tf.ops.packed_lookup import packed_lookup

__all__ = ["packed_lookup"]

"""`Picasso>PackedIndicators`: how often each id is among the ids of an example, for many features. The wrapper."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from graph_passes.errors import ConfigError
from picasso_tf.bridge import library


def packed_indicators(
    features: Sequence[tf.SparseTensor], depths: Sequence[int], *, name: str | None = None
) -> list[tf.Tensor]:
    """Counts the ids of each example.

    Args:
        features: SparseTensors of int32 or int64 [examples, any], indices in order; at least one.
        depths: as many numbers: ids from 0 to below it are counted, others are not.
        name: of the op.

    Returns:
        For each feature a float32 matrix [examples, depth].

    Raises:
        ConfigError: the numbers of features and depths differ, or there is none. It is a ValueError.
        tf.errors.InvalidArgumentError: indices are out of bounds or out of order.

    Example:
        >>> feature = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], tf.constant([2, 2, 0], tf.int64), [2, 2])
        >>> packed_indicators([feature], [3])[0].numpy().tolist()
        [[0.0, 0.0, 2.0], [1.0, 0.0, 0.0]]
    """
    if not features or len(features) != len(depths):
        raise ConfigError(
            "`features` and `depths` must be lists of the same length, at least 1. "
            f"Received: {len(features)} features and {len(depths)} depths."
        )
    counts: list[tf.Tensor] = library.ops().picasso_packed_indicators(
        indices=[feature.indices for feature in features],
        ids=[feature.values for feature in features],
        shapes=[feature.dense_shape for feature in features],
        feature_names=[f"features[{i}]" for i in range(len(features))],
        depths=list(depths),
        name=name,
    )
    return list(counts)

"""`Picasso>PackedCrosses`: hashed crosses of many features, by one op. The wrapper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from graph_passes.errors import ConfigError
from picasso_tf.bridge import library

OUTPUTS = ("indices", "values", "shape", "dense")


class Cross(NamedTuple):
    """A cross of columns.

    Attributes:
        columns: SparseTensors [rows, any] and matrices [rows, any], int64 or string. As in SparseCross, the features of
            the last one change fastest.
        num_buckets: how many hashes there are; 0: as many as there are.
        hash_key: what the hashes begin with.
        outputs: some of "indices", "values", "shape" and "dense".
    """

    columns: Sequence[tf.Tensor | tf.SparseTensor]
    num_buckets: int
    hash_key: int
    outputs: Sequence[str] = ("indices", "values", "shape")


def packed_crosses(crosses: Sequence[Cross], *, name: str | None = None) -> list[list[tf.Tensor]]:
    """Computes crosses as SparseCross does; the strings of a column that several cross are hashed once.

    Args:
        crosses: at least one.
        name: of the op.

    Returns:
        For each cross the list of its outputs, all int64: "indices" [crosses, 2], "values" [crosses] and "shape" [2] of
        the SparseTensor, "dense" [rows, most crosses of a row] with zeros where a row has no more.

    Raises:
        ConfigError: there is no cross, or an output has no such name. It is a ValueError.
        tf.errors.InvalidArgumentError: columns of a cross differ in their numbers of rows, or are no matrices.

    Example:
        >>> city, hour = tf.constant([["Rome"], ["Oslo"]]), tf.constant([[7], [9]], tf.int64)
        >>> packed_crosses([Cross([city, hour], 100, 77, ["dense"])])[0][0].shape.as_list()
        [2, 1]
    """
    outputs = [(i, kind) for i, cross in enumerate(crosses) for kind in cross.outputs]
    if not outputs or any(kind not in OUTPUTS for _, kind in outputs):
        raise ConfigError(f"`outputs` must be some of {', '.join(OUTPUTS)}. Received: {[kind for _, kind in outputs]}.")
    columns = list({id(column): column for cross in crosses for column in cross.columns}.values())
    sparse = [column for column in columns if isinstance(column, tf.SparseTensor)]
    dense = [column for column in columns if not isinstance(column, tf.SparseTensor)]
    number = {id(column): i for i, column in enumerate([*sparse, *dense])}
    results = library.ops().picasso_packed_crosses(
        indices=[column.indices for column in sparse],
        values=[column.values for column in sparse],
        shapes=[column.dense_shape for column in sparse],
        dense=[tf.convert_to_tensor(column) for column in dense],
        num_outputs=len(outputs),
        cross_names=[f"crosses[{i}]" for i in range(len(crosses))],
        cross_sizes=[len(cross.columns) for cross in crosses],
        cross_columns=[number[id(column)] for cross in crosses for column in cross.columns],
        cross_buckets=[cross.num_buckets for cross in crosses],
        cross_keys=[cross.hash_key for cross in crosses],
        output_cross=[i for i, _ in outputs],
        output_kind=[kind for _, kind in outputs],
        name=name,
    )
    found: list[list[tf.Tensor]] = [[] for _ in crosses]
    for (i, _), result in zip(outputs, results, strict=True):
        found[i].append(result)
    return found

"""`Picasso>PackedTransforms`: what is done to many features before rows are looked up, by one op. The wrapper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

# Private in TensorFlow: what tells automatic control dependencies that an op only reads a hash table.
from tensorflow.python.framework import auto_control_deps_utils

from graph_passes.errors import ConfigError
from picasso_tf.bridge import library

OP = "Picasso>PackedTransforms"
OUTPUT_DTYPES = ("bool", "int32", "int64", "float32", "float64")

auto_control_deps_utils.register_read_only_resource_op(OP)


class Program(NamedTuple):
    """What is done to one feature.

    Attributes:
        instructions: such as "hash_fast x 1000"; the doc of the op lists them.
        outputs: pairs of a value, such as "v0" or "indices", and its dtype, such as "int64".
    """

    instructions: Sequence[str]
    outputs: Sequence[tuple[str, str]]


def packed_transforms(
    features: Sequence[tf.Tensor],
    programs: Sequence[Program],
    *,
    others: Sequence[tf.Tensor] = (),
    scalars: Sequence[tf.Tensor] = (),
    tables: Sequence[tf.Tensor] = (),
    boundaries: Sequence[float] = (),
    texts: Sequence[str | bytes] = (),
    name: str | None = None,
) -> list[list[tf.Tensor]]:
    """Runs a program over each feature, element by element.

    Args:
        features: tensors of any shape: bool, int32, int64, float32, float64 or string.
        programs: as many programs.
        others: tensors with the shape of each feature whose program reads them; y0, y1, ... in programs.
        scalars: tensors of rank 0, of the same dtypes; c0, c1, ... in programs.
        tables: handles of hash tables with scalar keys and values, `StaticHashTable.resource_handle`.
        boundaries: of all "bucketize" instructions.
        texts: of all "join" instructions.
        name: of the op.

    Returns:
        For each feature the list of its program's outputs. A value is shaped as the feature, or a vector where a mask
        took part of the elements; "indices" is an int64 matrix with a row for each element that was taken.

    Raises:
        ConfigError: the numbers of features and programs differ, or an output has no such dtype. It is a ValueError.
        tf.errors.InvalidArgumentError: a program is wrong, a remainder is taken of a division by zero, or another
            tensor does not have the shape of the feature.

    Example:
        >>> words = tf.constant(["", "a", "b"])
        >>> instructions = ["not_equal x c0", "take x v0", "hash_fast v1 10"]
        >>> program = Program(instructions, [("v2", "int64"), ("indices", "int64")])
        >>> ids, places = packed_transforms([words], [program], scalars=[tf.constant("")])[0]
        >>> places.numpy().tolist()
        [[1], [2]]
    """
    features = [tf.convert_to_tensor(feature) for feature in features]
    if not features or len(features) != len(programs):
        raise ConfigError(
            "`features` and `programs` must be lists of the same length, at least 1. "
            f"Received: {len(features)} features and {len(programs)} programs."
        )
    outputs = [(i, *output) for i, program in enumerate(programs) for output in program.outputs]
    for _, value, dtype in outputs:
        if dtype not in OUTPUT_DTYPES:
            raise ConfigError(f"An output must be one of {', '.join(OUTPUT_DTYPES)}. Received: {value} as {dtype}.")
    results = library.ops().picasso_packed_transforms(
        features=features,
        others=[tf.convert_to_tensor(other) for other in others],
        scalars=[tf.convert_to_tensor(scalar) for scalar in scalars],
        tables=list(tables),
        output_types=[tf.dtypes.as_dtype(dtype) for _, _, dtype in outputs],
        feature_names=[f"features[{i}]" for i in range(len(features))],
        feature_instructions=[len(program.instructions) for program in programs],
        program=[text for program in programs for text in program.instructions],
        boundaries=list(boundaries),
        texts=list(texts),
        output_feature=[i for i, _, _ in outputs],
        output_value=[value for _, value, _ in outputs],
        name=name,
    )
    found: list[list[tf.Tensor]] = [[] for _ in features]
    for (i, _, _), result in zip(outputs, results, strict=True):
        found[i].append(result)
    return found

"""Inputs of models whose fields are no plain ids: strings, floats to be bucketized, ids to be looked up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.model_shape import ModelShape

BOUNDARIES = [0.05 * i for i in range(1, 20)]
"""Between which floats of [0, 1) are bucketized."""


@dataclass(frozen=True)
class Kind:
    """How a field comes in.

    Attributes:
        name: "string", "hash", "bucket", "int" or "identity".
        dtype: of the input.
    """

    name: str
    dtype: str


_PREPROCESSING = (Kind("string", "string"), Kind("hash", "string"), Kind("bucket", "float32"), Kind("int", "int64"))
_FEATURE_COLUMNS = (
    Kind("identity", "int64"),
    Kind("hash", "string"),
    Kind("string", "string"),
    Kind("bucket", "float32"),
)


def preprocessing(field: int) -> Kind:
    """How a field of the kind `preprocessing` comes in."""
    return _PREPROCESSING[field % len(_PREPROCESSING)]


def feature_column(field: int) -> Kind:
    """How a field of the kind `feature_columns` comes in."""
    return _FEATURE_COLUMNS[field % len(_FEATURE_COLUMNS)]


def of(shape: ModelShape) -> dict[str, np.ndarray]:
    """By name, the input of each field, [batches, batch, 1]."""
    kinds = {"preprocessing": preprocessing, "feature_columns": feature_column}
    kind_of = kinds.get(shape.kind, lambda _: Kind("identity", "int32"))
    return {f"C{field}": _values(shape, field, kind_of(field)) for field in range(shape.fields)}


def _values(shape: ModelShape, field: int, kind: Kind) -> np.ndarray:
    ids = shape.ids(field)[..., None]
    if kind.dtype == "string":
        return ids.astype(bytes).astype(object)
    if kind.name == "bucket":
        return np.random.default_rng([field, 2]).random(ids.shape, np.float32)
    return ids.astype(kind.dtype)

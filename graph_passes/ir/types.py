"""Plain Python values for what a NodeDef attribute can hold."""

from __future__ import annotations

import contextlib
from typing import NamedTuple

import tensorflow as tf
from tensorflow.core.framework import types_pb2


class DType(str):
    """A TensorFlow dtype by its name: "float32", "int64", "resource", "float32_ref"."""

    __slots__ = ()

    @classmethod
    def from_enum(cls, enum: int) -> DType:
        return _NAME_OF_ENUM.get(enum) or cls(f"type_{enum}")

    @property
    def enum(self) -> int:
        if self.startswith("type_"):
            return int(self[5:])
        return tf.dtypes.as_dtype(str(self)).as_datatype_enum

    @property
    def base(self) -> DType:
        """The dtype without `_ref`."""
        return DType(self[:-4]) if self.endswith("_ref") else self


def _names() -> dict[int, DType]:
    names = {}
    for enum in types_pb2.DataType.values():
        with contextlib.suppress(TypeError):  # DT_INVALID and enums that this TensorFlow does not expose
            names[enum] = DType(tf.dtypes.as_dtype(enum).name)
    return names


_NAME_OF_ENUM = _names()


class Shape(NamedTuple):
    """A static shape: `dims` is None for an unknown rank; a dimension is None when unknown."""

    dims: tuple[int | None, ...] | None

    def __str__(self) -> str:
        if self.dims is None:
            return "<*>"
        return "<" + ",".join("?" if d is None else str(d) for d in self.dims) + ">"

    @property
    def rank(self) -> int | None:
        return None if self.dims is None else len(self.dims)

    @property
    def unknown_dims(self) -> int:
        """Number of unknown dimensions of a shape of known rank."""
        return sum(d is None for d in self.dims or ())

    def elements(self) -> int | None:
        """Number of elements, or None when any dimension is unknown."""
        return None if self.dims is None else product(self.dims)


UNKNOWN_SHAPE = Shape(None)


def product(dims: tuple[int | None, ...]) -> int | None:
    """The product of dimensions; None when one of them is unknown."""
    result = 1
    for d in dims:
        if d is None:
            return None
        result *= d
    return result


class FunctionRef(NamedTuple):
    """A function by name, as in the attribute `f` of a PartitionedCall."""

    name: str


class TensorRef(NamedTuple):
    """Output `port` of node `node`."""

    node: str
    port: int = 0

    def __str__(self) -> str:
        return self.node if self.port == 0 else f"{self.node}:{self.port}"

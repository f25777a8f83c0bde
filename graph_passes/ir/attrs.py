"""AttrValue protos to plain Python values and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2, tensor_pb2, tensor_shape_pb2

from graph_passes.errors import GraphError
from graph_passes.ir.types import DType, FunctionRef, Shape


def from_proto(value: attr_value_pb2.AttrValue) -> Any:
    """The Python value of an AttrValue: bool, int, float, bytes, DType, Shape, TensorProto, FunctionRef or a list."""
    kind = value.WhichOneof("value")
    if kind == "list":
        return _list_from_proto(value.list)
    if kind is None:
        return []
    return _FROM[kind](getattr(value, kind))


def shape_from_proto(shape: tensor_shape_pb2.TensorShapeProto) -> Shape:
    if shape.unknown_rank:
        return Shape(None)
    return Shape(tuple([d.size if d.size >= 0 else None for d in shape.dim]))


def _list_from_proto(values: attr_value_pb2.AttrValue.ListValue) -> list[Any]:
    for kind, convert in _FROM.items():
        if kind != "placeholder" and (items := getattr(values, kind)):
            return [convert(item) for item in items]
    return []


def _function_from_proto(function: attr_value_pb2.NameAttrList) -> FunctionRef:
    return FunctionRef(function.name)


_FROM: dict[str, Any] = {
    "s": bytes,
    "i": int,
    "f": float,
    "b": bool,
    "type": DType.from_enum,
    "shape": shape_from_proto,
    "tensor": lambda tensor: tensor,
    "func": _function_from_proto,
    "placeholder": str,
}


def to_proto(value: Any) -> attr_value_pb2.AttrValue:
    """The AttrValue of a Python value; see `from_proto`. NumPy arrays become tensors.

    Raises:
        GraphError: the value has no counterpart in an AttrValue.
    """
    if isinstance(value, attr_value_pb2.AttrValue):
        return value
    result = attr_value_pb2.AttrValue()
    if isinstance(value, (list, tuple)) and not isinstance(value, (Shape, FunctionRef)):
        result.list.SetInParent()
        for item in value:
            kind, converted = _item(item)
            getattr(result.list, kind).append(converted)
        return result
    kind, converted = _item(value)
    if kind in ("shape", "tensor", "func"):
        getattr(result, kind).CopyFrom(converted)
    else:
        setattr(result, kind, converted)
    return result


def _item(value: Any) -> tuple[str, Any]:
    if isinstance(value, (bool, np.bool_)):
        return "b", bool(value)
    if isinstance(value, (int, np.integer)):
        return "i", int(value)
    if isinstance(value, float):
        return "f", value
    if isinstance(value, DType):
        return "type", value.enum
    if isinstance(value, (str, bytes)):
        return "s", value.encode() if isinstance(value, str) else value
    if isinstance(value, Shape):
        return "shape", shape_to_proto(value)
    if isinstance(value, FunctionRef):
        return "func", attr_value_pb2.NameAttrList(name=value.name)
    if isinstance(value, np.ndarray):
        return "tensor", tf.make_tensor_proto(value)
    if isinstance(value, tensor_pb2.TensorProto):
        return "tensor", value
    raise GraphError(f"An attribute cannot hold a {type(value).__name__}. Received: {value!r}.")


def shape_to_proto(shape: Shape) -> tensor_shape_pb2.TensorShapeProto:
    if shape.dims is None:
        return tensor_shape_pb2.TensorShapeProto(unknown_rank=True)
    proto = tensor_shape_pb2.TensorShapeProto()
    for d in shape.dims:
        proto.dim.add(size=-1 if d is None else d)
    return proto

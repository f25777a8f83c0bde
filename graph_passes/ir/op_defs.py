"""What TensorFlow's op registry says about a node: arity, types, state."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from tensorflow.core.framework import function_pb2, op_def_pb2
from tensorflow.python.framework import kernels, op_def_registry

from graph_passes.ir.node import Node
from graph_passes.ir.types import DType

# Stateful for TensorFlow (their order against writes matters) but with no effect of their own: they can go when unread.
READ_ONLY = frozenset({"ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VariableShape", "VarIsInitializedOp"})
TABLE_GATHER = "Picasso>TableGather"
PACKED_LOOKUP = "Picasso>PackedLookup"
PACKED_POOLED_LOOKUP = "Picasso>PackedPooledLookup"
PACKED_SPARSE_UPDATE = "Picasso>PackedSparseUpdate"
PACKED_DENSE_UPDATE = "Picasso>PackedDenseUpdate"
PACKED_TRANSFORMS = "Picasso>PackedTransforms"
PACKED_CROSSES = "Picasso>PackedCrosses"
PACKED_INDICATORS = "Picasso>PackedIndicators"
PACKED_UPDATES = (PACKED_SPARSE_UPDATE, PACKED_DENSE_UPDATE)
PACKED_OPS = (
    *(TABLE_GATHER, PACKED_LOOKUP, PACKED_POOLED_LOOKUP, PACKED_TRANSFORMS, PACKED_CROSSES, PACKED_INDICATORS),
    *PACKED_UPDATES,
)
READERS = READ_ONLY | {"LookupTableFindV2", "LookupTableSizeV2"}
READERS |= {TABLE_GATHER, PACKED_LOOKUP, PACKED_POOLED_LOOKUP, PACKED_TRANSFORMS}
# Not stateful for TensorFlow, but they raise errors or write into a buffer that they are given: they matter unread too.
_ACTS = frozenset({"CheckNumerics", "CheckNumericsV2", "ControlTrigger", "_ParallelConcatUpdate"})
_ACTS |= {f"{prefix}{name}" for prefix in ("", "_") for name in ("InplaceAdd", "InplaceSub", "InplaceUpdate")}


@cache
def op_def(op: str) -> op_def_pb2.OpDef | None:
    """The OpDef of a registered op, or None."""
    return op_def_registry.get(op)


@cache
def has_kernel(op: str, device_type: str) -> bool:
    """Whether a kernel of `op` is registered for "CPU" or "GPU"; a GPU kernel may be left out of a build."""
    registered = kernels.get_registered_kernels_for_op(op).kernel
    return any(kernel.device_type == device_type for kernel in registered)


def is_stateful(node: Node) -> bool:
    """Whether TensorFlow calls the node's op stateful, or the op may change one of its inputs, as `AssignAdd` does.

    An unknown op counts as stateful.
    """
    definition = op_def(node.op)
    return definition is None or definition.is_stateful or any(arg.is_ref for arg in definition.input_arg)


def can_drop(node: Node) -> bool:
    """Whether a node without consumers can go: it has no effect but its outputs."""
    return node.op in READERS or not (is_stateful(node) or node.op in _ACTS)


def input_types(node: Node) -> list[DType] | None:
    """The dtypes of the data inputs as the OpDef and the attributes state them; None for an unknown op."""
    definition = op_def(node.op)
    return None if definition is None else _expand(node, definition.input_arg)


def output_types(node: Node, library: function_pb2.FunctionDefLibrary) -> list[DType] | None:
    """The dtypes of the outputs; None for an unknown op."""
    definition = op_def(node.op)
    if definition is not None:
        return _expand(node, definition.output_arg)
    for function in library.function:
        if function.signature.name == node.op:
            return _expand(node, function.signature.output_arg)
    return None


def output_layout(node: Node, functions: Mapping[str, function_pb2.FunctionDef]) -> list[tuple[str, int]] | None:
    """Name and number of tensors of each output argument, in order; None for an unknown op."""
    definition = op_def(node.op)
    if definition is None and node.op in functions:
        definition = functions[node.op].signature
    if definition is None:
        return None
    layout = []
    for arg in definition.output_arg:
        types = _expand(node, [arg])
        if types is None:
            return None
        layout.append((arg.name, len(types)))
    return layout


def _expand(node: Node, args: Any) -> list[DType] | None:
    types: list[DType] = []
    for arg in args:
        if arg.type_list_attr:
            types.extend(node.attr(arg.type_list_attr, []))
            continue
        dtype = DType.from_enum(arg.type) if arg.type else attr_or_default(node, arg.type_attr)
        count = attr_or_default(node, arg.number_attr) if arg.number_attr else 1
        if dtype is None or count is None:
            return None
        types.extend([DType(dtype + "_ref") if arg.is_ref and not dtype.endswith("_ref") else dtype] * count)
    return types


def attr_or_default(node: Node, key: str) -> Any:
    """The value of a type or number attribute, stated by the node or by its OpDef; None when neither does."""
    value = node.attr(key)
    if value is not None:
        return value
    definition = op_def(node.op)
    for attr in definition.attr if definition is not None else ():
        if attr.name == key and attr.HasField("default_value"):
            return DType.from_enum(attr.default_value.type) if attr.type == "type" else attr.default_value.i
    return None

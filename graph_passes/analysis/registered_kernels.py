"""What TensorFlow's registry says about kernels: the types they are for, and what they want or leave in host memory."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from tensorflow.core.framework import kernel_def_pb2
from tensorflow.python.framework import kernels

from graph_passes.analysis.devices import device_type
from graph_passes.ir import DType, Graph, Node, TensorRef
from graph_passes.ir.op_defs import attr_or_default, output_layout

Constraints = Sequence[tuple[str, frozenset[DType]]]
"""Type attributes, each with the types that it may have."""


def constraints_of(kernel: kernel_def_pb2.KernelDef) -> Constraints:
    """What a kernel asks of type attributes."""
    return [
        (item.name, frozenset(DType.from_enum(enum) for enum in item.allowed_values.list.type))
        for item in kernel.constraint
        if item.allowed_values.list.type
    ]


def accepts(constraints: Constraints, node: Node) -> bool:
    """Whether a kernel is for the types of a node."""
    for name, allowed in constraints:
        value = attr_or_default(node, name)
        if any(dtype not in allowed for dtype in (value if isinstance(value, list) else [value])):
            return False
    return True


def in_host_memory(graph: Graph, ref: TensorRef) -> bool:
    """Whether a tensor is in host memory once it is computed; False where nothing is known about its op."""
    node = graph.producer(ref)
    kind = device_type(node.device) or "CPU"
    if kind == "CPU":
        return True
    port = ref.port
    for name, count in output_layout(node, {}) or ():
        if port < count:
            return name in _host_arguments(node, kind)
        port -= count
    return False


def _host_arguments(node: Node, kind: str) -> frozenset[str]:
    """Names of inputs and outputs that the node's kernel has in host memory."""
    for device in (kind, "DEFAULT"):
        for constraints, arguments in _kernels(node.op, device):
            if accepts(constraints, node):
                return arguments
    return frozenset()


@cache
def _kernels(op: str, device: str) -> list[tuple[Constraints, frozenset[str]]]:
    registered = kernels.get_registered_kernels_for_op(op).kernel
    return [
        (constraints_of(kernel), frozenset(kernel.host_memory_arg))
        for kernel in registered
        if kernel.device_type == device and not kernel.label
    ]

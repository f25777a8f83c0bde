"""Which nodes XLA can compile, as TensorFlow's own registry of its kernels says."""

from __future__ import annotations

from functools import cache

from tensorflow.python.framework import kernels

from graph_passes.analysis.registered_kernels import Constraints, accepts, constraints_of
from graph_passes.ir import Functions, Node, called_functions, function_ops, reachable
from graph_passes.ir.op_defs import has_kernel, op_def

# The shape of their result depends on values. XLA pads it to a bound or refuses; outside it has its true size.
DYNAMIC = frozenset(
    {"Where", "Unique", "UniqueV2", "ListDiff", "NonMaxSuppressionV3", "NonMaxSuppressionV4", "DynamicPartition"}
)
# Registered for XLA, but with a meaning only at the edge of a function, or across devices.
_NEVER = frozenset(
    {"_Arg", "_Retval", "_ArrayToList", "_ListToArray", "_EagerConst", "PlaceholderWithDefault", "SymbolicGradient"}
    | {"CollectiveReduceV2", "CollectiveAssignGroupV2", "XlaSend", "XlaRecv", "XlaAllReduce", "XlaReplicaId"}
)


def compiles(node: Node, device_type: str, functions: Functions) -> bool:
    """Whether XLA has a kernel for a node, and for all nodes of the functions that it calls.

    Args:
        node: the node.
        device_type: "CPU" or "GPU".
        functions: the library that the node may call.
    """
    if not _has_xla_kernel(node, device_type):
        return False
    for called in called_functions(node):
        for name in reachable(functions, called):
            if not all(_has_xla_kernel(inner, device_type) for inner in function_ops(functions[name])):
                return False
    return True


def without_kernel(node: Node, functions: Functions) -> bool:
    """Whether a node can only be compiled: it calls no function, and TensorFlow itself has no kernel for it."""
    if node.op in functions:
        return False
    return op_def(node.op) is None or not any(has_kernel(node.op, kind) for kind in ("CPU", "GPU", "DEFAULT"))


def _has_xla_kernel(node: Node, device_type: str) -> bool:
    if node.op in DYNAMIC or node.op in _NEVER:
        return False
    return any(accepts(constraints, node) for constraints in _xla_kernels(node.op, device_type))


@cache
def _xla_kernels(op: str, device_type: str) -> list[Constraints]:
    """What the XLA kernels of an op ask of type attributes; a kernel that asks for anything else is left out."""
    if op not in _ops(device_type):
        return []
    device = f"XLA_{device_type}_JIT"
    registered = kernels.get_registered_kernels_for_op(op).kernel
    return [constraints_of(kernel) for kernel in registered if kernel.device_type == device and not kernel.label]


@cache
def _ops(device_type: str) -> frozenset[str]:
    """Ops with an XLA kernel. Asking also puts these kernels into the registry; a build without XLA has none."""
    try:
        from tensorflow.python.util import pywrap_xla_ops
    except ImportError:
        return frozenset()
    ask = {"CPU": pywrap_xla_ops.get_cpu_kernel_names, "GPU": pywrap_xla_ops.get_gpu_kernel_names}.get(device_type)
    return frozenset() if ask is None else frozenset(ask())

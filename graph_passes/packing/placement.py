"""Whether a packed op can run where the nodes that it replaces run."""

from __future__ import annotations

from graph_passes.analysis.devices import device_type, task_of
from graph_passes.ir import Node
from graph_passes.ir.op_defs import has_kernel
from graph_passes.pipeline.base import Declined


def no_home(name: str, op: str, home: str, *nodes: Node) -> Declined | None:
    """The reason why nodes cannot be replaced by a packed op, or None.

    Args:
        name: of the candidate, for the report.
        op: the packed op.
        home: the task that starts the graph.
        nodes: what it would replace; it would run on the device of the first one.
    """
    kind = device_type(nodes[0].device) or "CPU"
    if not has_kernel(op, kind):
        return Declined("no_kernel", name, f"This build has no {op} for {kind}.")
    for node in nodes:
        if task_of(node.device) != home:
            return Declined("remote_device", name, f"picasso-tf may not be loaded in '{task_of(node.device)}'.")
    return None

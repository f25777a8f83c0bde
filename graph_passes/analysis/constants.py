"""Values that a graph states outright."""

from __future__ import annotations

import numpy as np
from tensorflow.python.framework import tensor_util

from graph_passes.ir import Graph, TensorRef


def constant(graph: Graph, ref: TensorRef) -> np.ndarray | None:
    """The value of a tensor that comes from a Const, through Identity nodes; None otherwise, also when it is fed."""
    node = graph.producer(ref)
    while node.op == "Identity" and node.name not in graph.fed:
        node = graph.producer(node.inputs[0])
    if node.op != "Const" or node.name in graph.fed:
        return None
    value = node.attr("value")  # an array where a pass made the constant
    return value if isinstance(value, np.ndarray) else tensor_util.MakeNdarray(value)


def scalar(graph: Graph, ref: TensorRef) -> int | float | None:
    """The value of a constant of one element (of any rank), else None."""
    value = constant(graph, ref)
    return value.item() if value is not None and value.size == 1 else None

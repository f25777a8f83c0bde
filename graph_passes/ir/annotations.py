"""Shape annotations: put on a graph for the passes, taken off before TensorFlow runs it."""

from __future__ import annotations

from collections.abc import Mapping

from tensorflow.core.framework import graph_pb2

from graph_passes.ir import attrs
from graph_passes.ir.types import DType, Shape

_KEY = "_output_shapes"


def strip_shapes(graph_def: graph_pb2.GraphDef, original: graph_pb2.GraphDef) -> None:
    """Removes `_output_shapes` from every node of `graph_def` that does not carry it in `original`, in place."""
    annotated = {node.name for node in original.node if _KEY in node.attr}
    for node in graph_def.node:
        if _KEY in node.attr and node.name not in annotated:
            del node.attr[_KEY]


def placeholders_to_args(
    graph_def: graph_pb2.GraphDef, handles: Mapping[str, tuple[Shape, DType]]
) -> graph_pb2.GraphDef:
    """A copy in which placeholders of variables have the form that they take in a running function.

    Args:
        graph_def: the body of a function, with a Placeholder per argument.
        handles: shape and dtype of the variable behind each resource placeholder, by node name.
    """
    result = graph_pb2.GraphDef()
    result.CopyFrom(graph_def)
    for index, node in enumerate(node for node in result.node if node.op == "Placeholder"):
        if node.name not in handles:
            continue
        shape, dtype = handles[node.name]
        node.op = "_Arg"
        node.attr.clear()
        node.attr["T"].CopyFrom(attrs.to_proto(DType("resource")))
        node.attr["index"].CopyFrom(attrs.to_proto(index))
        node.attr["_handle_shapes"].CopyFrom(attrs.to_proto([shape]))
        node.attr["_handle_dtypes"].CopyFrom(attrs.to_proto([dtype]))
    return result

"""Which tensors TensorFlow's kernels may write their result to."""

from __future__ import annotations

from graph_passes.ir import Graph, TensorRef
from graph_passes.rewrite.ids import RESHAPES


def may_be_written(graph: Graph, ref: TensorRef) -> bool:
    """Whether the one reader of a tensor may write to its memory: nobody else reads it, under this or another name."""
    node = graph.producer(ref)
    while len(graph.uses_of(ref)) == 1 and node.op in ("Identity", *RESHAPES):  # these share the memory of their input
        ref = node.inputs[0]
        node = graph.producer(ref)
    is_kept = node.op in ("_Arg", "Const", "Placeholder", "ReadVariableOp") or node.name in graph.kept_for_data
    return len(graph.uses_of(ref)) == 1 and not is_kept

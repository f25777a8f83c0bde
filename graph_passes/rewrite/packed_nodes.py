"""What all packed ops are made with: their names, numbered inputs, and the retirement of what they replace."""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from typing import Any, TypeVar

from graph_passes.ir import DType, Graph, Mutation, Node, TensorRef

DTYPES = ("float16", "bfloat16", "float32", "float64")
"""Dtypes of rows that the packed ops have kernels for."""

T = TypeVar("T", bound=Hashable)


class Numbers(dict[T, int]):
    """Numbers distinct keys in the order of their arrival."""

    def of(self, key: T) -> int:
        return self.setdefault(key, len(self))


def packed_name(graph: Graph, pass_name: str, members: Sequence[str]) -> str:
    """`scope/picasso/pass_name/member`: the common scope, the pass and the first member; see `kernel_name`."""
    scope = os.path.commonpath([os.path.dirname(member) for member in members])
    rest = os.path.relpath(members[0], scope) if scope else members[0]
    return kernel_name(graph, "/".join(part for part in (scope, f"picasso/{pass_name}", rest) if part))


def kernel_name(graph: Graph, name: str) -> str:
    """The name of a stateful node that a pass adds.

    A Session keeps the kernels of stateful ops by name, and optimizes its graph anew for each set of feeds and fetches.
    What it packs for one must not run with what was packed for another, so there the name ends in a fingerprint.
    """
    return name if graph.is_function else f"{name}_{graph.fingerprint}"


def substitute(graph: Graph, mutation: Mutation, node: Node, ref: TensorRef, dtype: DType) -> None:
    """Lets all readers of `node` read `ref`; a node whose name must live on becomes an Identity or a NoOp."""
    if node.name in graph.kept_for_data:
        attrs: dict[str, Any] = {"T": dtype}
        if node.attr("_output_shapes"):
            attrs["_output_shapes"] = [node.output_shape()]
        mutation.replace(Node(node.name, "Identity", [ref], (), node.device, attrs))
        return
    mutation.redirect(TensorRef(node.name), ref)
    retire(graph, mutation, node, ref.node)


def retire(graph: Graph, mutation: Mutation, node: Node, packed: str) -> None:
    """Takes a node away; what waited for it waits for the packed op. A control output stays, as a NoOp."""
    if node.name in graph.kept:
        mutation.replace(Node(node.name, "NoOp", (), [packed], node.device))
        return
    mutation.redirect_controls(node.name, packed)
    mutation.remove(node.name)

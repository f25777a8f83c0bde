"""What all packed ops are made with: their names, numbered inputs, and the retirement of what they replace."""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from typing import Any, TypeVar

from graph_passes.analysis.tables import RowSource
from graph_passes.ir import DType, Graph, Mutation, Node, TensorRef
from graph_passes.ir.op_defs import TABLE_GATHER

DTYPES = ("float16", "bfloat16", "float32", "float64")
"""Dtypes of rows that the packed ops have kernels for."""

T = TypeVar("T", bound=Hashable)


class Numbers(dict[T, int]):
    """Numbers distinct keys in the order of their arrival."""

    def of(self, key: T) -> int:
        return self.setdefault(key, len(self))


class Tables:
    """Numbers the tables of a packed op: each stands for its variables, which are inputs of the op one after the other.

    Attributes:
        handles: the inputs.
    """

    def __init__(self) -> None:
        self.handles: list[TensorRef] = []
        self._first: dict[tuple[str, ...], int] = {}

    def of(self, source: RowSource) -> int:
        """The number of the first of the variables that hold the rows of a table."""
        if source.roots not in self._first:
            self._first[source.roots] = len(self.handles)
            self.handles += source.handles
        return self._first[source.roots]


def source_attrs(sources: Sequence[RowSource]) -> dict[str, Any]:
    """The attributes of a packed op that say how tables are spread over variables and how rows are clipped, if any."""
    attrs: dict[str, Any] = {}
    if any(len(source.handles) > 1 for source in sources):
        attrs["lookup_shards"] = [len(source.handles) for source in sources]
        attrs["lookup_shard_rows"] = [source.rows for source in sources]
        attrs["lookup_shard_extras"] = [source.extras for source in sources]
    if any(source.max_norm for source in sources):
        attrs["lookup_max_norm"] = [source.max_norm for source in sources]
    return attrs


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


def put_table_gather(
    graph: Graph,
    mutation: Mutation,
    result: Node,
    inputs: Sequence[TensorRef],
    controls: Sequence[str],
    attrs: dict[str, Any],
) -> str:
    """Puts a `Picasso>TableGather` in the place of the node whose result it gives; returns its name."""
    name = kernel_name(graph, result.name)
    attrs = {**attrs, "_output_shapes": [result.output_shape()]}
    node = Node(name, TABLE_GATHER, inputs, controls, result.device, attrs)
    if name == result.name:
        mutation.replace(node)
    else:
        mutation.add(node)
        substitute(graph, mutation, result, TensorRef(name), attrs["dtype"])
    return name


def retire(graph: Graph, mutation: Mutation, node: Node, packed: str) -> None:
    """Takes a node away; what waited for it waits for the packed op. A control output stays, as a NoOp."""
    if node.name in graph.kept:
        mutation.replace(Node(node.name, "NoOp", (), [packed], node.device))
        return
    mutation.redirect_controls(node.name, packed)
    mutation.remove(node.name)

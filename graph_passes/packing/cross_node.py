"""The node of a `Picasso>PackedCrosses` while it is put together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graph_passes.ir import Graph, Node, Shape, TensorRef
from graph_passes.ir.op_defs import PACKED_CROSSES
from graph_passes.rewrite.crosses import Column, Cross
from graph_passes.rewrite.packed_nodes import Numbers


class PackedCrossesNode:
    """Collects crosses and the outputs that are read of them; a column that several cross is an input once."""

    def __init__(self, name: str):
        self.name = name
        self._types: dict[Column, Any] = {}
        self._sparse: Numbers[Column] = Numbers()
        self._dense: Numbers[Column] = Numbers()
        self._crosses: list[Cross] = []
        self._outputs: list[tuple[int, str, Shape]] = []

    def add_cross(self, graph: Graph, cross: Cross) -> int:
        """The number of the cross."""
        for column in cross.columns:
            self._types[column] = graph.dtype_of(column.values)
            (self._dense if column.indices is None else self._sparse).of(column)
        self._crosses.append(cross)
        return len(self._crosses) - 1

    def add_output(self, cross: int, kind: str, shape: Shape) -> TensorRef:
        self._outputs.append((cross, kind, shape))
        return TensorRef(self.name, len(self._outputs) - 1)

    def node(self, controls: Sequence[str], device: str) -> Node:
        """The finished node."""
        columns = [*self._sparse, *self._dense]
        number = {column: i for i, column in enumerate(columns)}
        nodes = [cross.node for cross in self._crosses]
        attrs: dict[str, Any] = {
            "num_sparse": len(self._sparse),
            "sparse_types": [self._types[column] for column in self._sparse],
            "dense_types": [self._types[column] for column in self._dense],
            "num_outputs": len(self._outputs),
            "cross_names": [node.name.encode() for node in nodes],
            "cross_sizes": [len(cross.columns) for cross in self._crosses],
            "cross_columns": [number[column] for cross in self._crosses for column in cross.columns],
            "cross_buckets": [node.attr("num_buckets") for node in nodes],
            "cross_keys": [node.attr("hash_key") for node in nodes],
            "output_cross": [cross for cross, _, _ in self._outputs],
            "output_kind": [kind.encode() for _, kind, _ in self._outputs],
            "_output_shapes": [shape for _, _, shape in self._outputs],
        }
        parts = ([column.indices for column in self._sparse], [column.shape for column in self._sparse])
        inputs = [*parts[0], *(column.values for column in self._sparse), *parts[1], *(c.values for c in self._dense)]
        return Node(self.name, PACKED_CROSSES, [ref for ref in inputs if ref is not None], controls, device, attrs)

"""Puts a packed update into the graph, in the place of all writes of its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from graph_passes.ir import DType, Graph, Mutation, Node, TensorRef
from graph_passes.ir.op_defs import PACKED_DENSE_UPDATE, PACKED_SPARSE_UPDATE
from graph_passes.packing.update_clusters import Cluster
from graph_passes.rewrite.gradients import GradientSource
from graph_passes.rewrite.packed_nodes import Numbers, packed_name, retire


def emit_update(
    graph: Graph, clusters: Sequence[Cluster], rule: str, sparse: bool, gone: Mapping[str, str]
) -> tuple[Graph, str]:
    """The graph in which one op does the work of all clusters, and the op's name.

    Args:
        graph: the graph.
        clusters: updates with equal programs, none of which waits for another.
        rule: the name of the program, for people.
        sparse: visit only the rows that the ids name.
        gone: for writes that are part of an earlier packed update, its name.
    """
    mutation = Mutation(graph)
    members = [statement.node for cluster in clusters for statement in cluster.statements]
    name = mutation.unique_name(packed_name(graph, "update_packing", [cluster.name for cluster in clusters]))
    node = _UpdateNode(graph, mutation, name, clusters, rule).node(sparse, gone)
    mutation.add(node)
    for member in members:
        retire(graph, mutation, member, name)
    return mutation.apply(), name


class _UpdateNode:
    """Collects the inputs and attributes of one packed update; see cc/ops/packed_update.cc."""

    def __init__(self, graph: Graph, mutation: Mutation, name: str, clusters: Sequence[Cluster], rule: str):
        self._graph = graph
        self._mutation = mutation
        self._name = name
        self._clusters = clusters
        self._rule = rule
        self._dtype = clusters[0].dtype
        self._device = clusters[0].node.device
        self._variables: Numbers[str] = Numbers()
        self._handles: list[TensorRef] = []
        self._ids: Numbers[TensorRef] = Numbers()
        self._ids_types: list[DType] = []
        self._gradients: Numbers[TensorRef] = Numbers()
        self._scalars: Numbers[TensorRef] = Numbers()
        self._pools: Numbers[TensorRef] = Numbers()
        self._weights: Numbers[TensorRef] = Numbers()
        self._segments: list[dict[str, Any]] = []
        self._segment_gradients: list[GradientSource] = []

    def node(self, sparse: bool, gone: Mapping[str, str]) -> Node:
        clusters = self._clusters
        program, first = clusters[0].program, clusters[0].binding
        assert program is not None
        assert first is not None
        table_variables, table_parameters, table_gradients = [], [], []
        for number, cluster in enumerate(clusters):
            binding = cluster.binding
            assert binding is not None
            table_variables += [self._variable(cluster, root) for root in binding.states]
            table_parameters += [self._scalars.of(self._parameter(value)) for value in binding.parameters]
            table_gradients += [self._gradients.of(ref) for ref in binding.tables]
            self._add_segments(number, cluster)
        segment_gradients = [self._gradients.of(source.ref) for source in self._segment_gradients]
        fields = ("ids", "column", "columns", "wrap", "narrow")
        attrs: dict[str, Any] = {
            "dtype": self._dtype,
            "num_variables": len(self._handles),
            "ids_types": self._ids_types,
            "num_gradients": len(self._gradients),
            "num_scalars": len(self._scalars),
            "rule": self._rule.encode(),
            "program": [step.encode() for step in program.instructions],
            "results": [value.encode() for value in program.results],
            "num_states": len(first.states),
            "num_row_gradients": len(first.gradients),
            "num_table_gradients": len(first.tables),
            "num_parameters": len(first.parameters),
            "table_names": [cluster.name.encode() for cluster in clusters],
            "table_variables": table_variables,
            "table_parameters": table_parameters,
            "table_gradients": table_gradients,
            "segment_table": [segment["table"] for segment in self._segments],
            **{f"segment_{field}": [segment[field] for segment in self._segments] for field in fields},
            "segment_gradients": segment_gradients,
            "segment_first": [source.first for source in self._segment_gradients],
            "segment_span": [source.span for source in self._segment_gradients],
            "segment_pitch": [source.pitch for source in self._segment_gradients],
            "drop_negative": _drops_negative(program.instructions),
        }
        sources = self._segment_gradients
        pools = [self._pool(source) for source in sources]
        if any(pool != _NO_POOL for pool in pools):
            attrs["pools_types"] = [self._graph.dtype_of(ref) for ref in self._pools]
            attrs["gradient_pool"] = pools
            attrs["gradient_combiner"] = [source.combiner.encode() for source in sources]
        weights = [-1 if source.weights is None else self._weights.of(source.weights) for source in sources]
        if self._weights:
            attrs["weights_types"] = [self._graph.dtype_of(ref) for ref in self._weights]
            attrs["gradient_weights"] = weights
        if any(segment["fill"] >= 0 for segment in self._segments):
            attrs["segment_fill"] = [segment["fill"] for segment in self._segments]
        members = {statement.node.name for cluster in clusters for statement in cluster.statements}
        inputs = [*self._handles, *self._ids, *self._gradients, *self._scalars, *self._pools, *self._weights]
        read = {ref.node for ref in inputs}
        waits_for = dict.fromkeys(gone.get(name, name) for cluster in clusters for name in cluster.inputs)
        controls = [name for name in waits_for if name not in read and name not in members]
        op = PACKED_SPARSE_UPDATE if sparse else PACKED_DENSE_UPDATE
        return Node(self._name, op, inputs, controls, self._device, attrs)

    def _pool(self, source: GradientSource) -> int:
        if source.even:
            return _EVEN_POOL
        return _NO_POOL if source.pool is None else self._pools.of(source.pool)

    def _variable(self, cluster: Cluster, root: str) -> int:
        number = self._variables.of(root)
        if number == len(self._handles):
            self._handles.append(cluster.handles[root])
        return number

    def _parameter(self, value: TensorRef | float) -> TensorRef:
        """The tensor of a parameter; a number of a rule becomes a constant."""
        if isinstance(value, TensorRef):
            return value
        name = f"{self._name}/{value:g}"
        tensor = np.asarray(value, tf.dtypes.as_dtype(str(self._dtype)).as_numpy_dtype)
        if TensorRef(name) not in self._scalars:
            attrs = {"dtype": self._dtype, "value": tensor}
            self._mutation.add(Node(name, "Const", (), self._const_controls(), self._device, attrs))
        return TensorRef(name)

    def _const_controls(self) -> list[str]:
        """What ties a constant to the branch or loop of the op."""
        binding = self._clusters[0].binding
        assert binding is not None
        return [ref.node for ref in binding.parameters if isinstance(ref, TensorRef)][:1]

    def _add_segments(self, number: int, cluster: Cluster) -> None:
        if cluster.ids is None:
            return
        gradients = cluster.binding.gradients if cluster.binding is not None else ()
        for index, source in enumerate(cluster.ids.segments):
            ids = self._ids.of(source.ref)
            if ids == len(self._ids_types):
                self._ids_types.append(source.dtype)
            read = {field: getattr(source, field) for field in _SOURCE_FIELDS}
            self._segments.append({"table": number, "ids": ids, "fill": cluster.ids.fill, **read})
            self._segment_gradients += [parts[index] for parts in gradients]  # type: ignore[index]


_NO_POOL, _EVEN_POOL = -1, -2  # of a gradient with a row for each id, or for equally many; see cc/ops/packed_update.cc
_SOURCE_FIELDS = ("column", "columns", "wrap", "narrow")


def _drops_negative(instructions: Sequence[str]) -> bool:
    """Whether a negative id is skipped: only tf.math.unsorted_segment_sum does that.

    A sum over distinct ids that is made dense is added to a zero, a parameter.
    """
    writes = [step.split() for step in instructions if step.startswith(("scatter_", "touched_"))]
    return all(target.startswith("p") for _, target, _ in writes)

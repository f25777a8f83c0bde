"""Every node that writes rows of a variable, as a statement of an update program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tensorflow.core.framework import types_pb2

from graph_passes.analysis.constants import scalar
from graph_passes.analysis.control_flow import Context
from graph_passes.analysis.tables import Table, table_of
from graph_passes.analysis.update_expressions import GRADIENT, REDUCTIONS, STATE, TABLE, TOUCHED, Expressions, Write
from graph_passes.analysis.update_rules import FUSED_RULES, fused_writes
from graph_passes.ir import Graph, Node, TensorRef, product
from graph_passes.ir.op_defs import op_def
from graph_passes.rewrite.packed_nodes import DTYPES
from graph_passes.rewrite.pooled_gradients import PACKET
from graph_passes.rewrite.statement import NotPackable, Statement
from graph_passes.rewrite.update_ids import Guards, UpdateIds, trace_update_ids
from graph_passes.rewrite.update_trace import Tracer

_DENSE = {"AssignVariableOp": "assign", "AssignAddVariableOp": "add", "AssignSubVariableOp": "sub"}
_SCATTERS = {
    **{f"ResourceScatter{kind}": kind.lower() for kind in ("Add", "Sub", "Update")},
    **{f"ResourceScatterNd{kind}": kind.lower() for kind in ("Add", "Sub", "Update")},
}
_FUSED = tuple(dict.fromkeys(name.split()[0] for name in FUSED_RULES))
_FAMILIES = ("ResourceApply", "ResourceSparseApply", "ResourceScatter")  # of training ops, known here or not
_TOUCHED = {"add": "touched_add", "sub": "touched_sub", "assign": "touched_update"}


def written(graph: Graph) -> list[Node]:
    """The nodes that may be updates: writes of floats with at least one dimension, by op and name.

    Metrics, counters and schedules are scalars; what changes them is none of ours.
    """
    found = []
    for node in graph.of(*sorted(op for op in graph.by_op if op in _DENSE or op.startswith(_FAMILIES))):
        try:
            table = updated_table(graph, node.inputs[0])
        except NotPackable:
            found.append(node)
            continue
        if table.shape.rank and _dtype(node) in DTYPES:
            found.append(node)
    return found


def updated_table(graph: Graph, handle: TensorRef) -> Table:
    """The variable behind a handle.

    Raises:
        NotPackable: it is chosen at run time, or its shape is not known.
    """
    table = table_of(graph, handle)
    if not table.traceable:
        raise NotPackable("handle_not_traceable")
    if table.shape.dims is None or table.shape.elements() is None:
        raise NotPackable("unknown_shape", f"The shape of the variable '{table.root}' is not known.")
    return table


def _dtype(node: Node) -> str:
    return node.attr("dtype") or node.attr("T") or ""


class _Rows(NamedTuple):
    """A value that is written at some indices.

    Attributes:
        value: its expression.
        per_id: whether it has a row for each id, duplicates included, or for each distinct id.
    """

    value: int
    per_id: bool


class StatementReader:
    """Reads the statements of one graph.

    Args:
        graph: the graph.
        expressions: where expressions are stored.
        contexts: see `graph_passes.analysis.control_flow.contexts`.
        states: roots of all variables that some update writes.
        any_order: whether distinct rows that are no whole packets may come in any order: see `needs_order`.
    """

    def __init__(
        self,
        graph: Graph,
        expressions: Expressions,
        contexts: dict[str, Context],
        states: frozenset[str],
        any_order: bool = True,
    ):
        self._graph = graph
        self._expressions = expressions
        self._contexts = contexts
        self._states = states
        self._any_order = any_order

    def read(self, node: Node) -> Statement:
        """The statement of a node of `written`.

        Raises:
            NotPackable: it is no update that can be packed.
        """
        table = updated_table(self._graph, node.inputs[0])
        try:
            return self._read(node, table, innermost=True)
        except NotPackable:
            return self._read(node, table, innermost=False)

    def _read(self, node: Node, table: Table, innermost: bool) -> Statement:
        for split in (True, False):  # ids that come in parts while the gradient does not are read as a whole
            statement = Statement(node, table.shape, _dtype(node))  # type: ignore[arg-type]
            guards = Guards(self._graph, self._contexts, innermost)
            tracer = Tracer(self._graph, self._expressions, statement, guards, self._states, self._any_order)
            tracer.split = split
            try:
                self._fill(statement, table, tracer, guards)
            except NotPackable as reason:
                if reason.code != "parts_differ":
                    raise
            else:
                if not self._uses_ids(statement):
                    statement.ids = None  # what was read on the way was better taken as a whole
                elif tracer.ids_before_filling is not None:
                    statement.ids = self._filled(statement, tracer.ids_before_filling)
                return statement
        raise NotPackable("update_arithmetic", "Its gradient comes in other parts than its ids.")

    def needs_order(self, statement: Statement) -> bool:
        """Whether the bits depend on the order of the distinct rows, which was not looked at.

        TensorFlow computes rsqrt in packets, and what is left at the end of a tensor in another way.
        """
        values = [write.value for write in statement.writes]
        filled = statement.ids is not None and statement.ids.fill >= 0
        narrow = (product((statement.shape.dims or ())[1:]) or 1) % PACKET != 0
        return filled and narrow and bool(self._expressions.leaves(values, "unique_rsqrt"))

    def _filled(self, statement: Statement, ids: UpdateIds) -> UpdateIds:
        """Ids from before empty rows were filled; gradients with a row for each id know only those from after."""
        for leaf in self._expressions.leaves([write.value for write in statement.writes], GRADIENT):
            if any(source.pool is None for source in self._expressions[leaf].data):
                raise NotPackable("update_arithmetic", "Only a part of its gradient is that of a pooled lookup.")
        return ids

    def _uses_ids(self, statement: Statement) -> bool:
        values = [write.value for write in statement.writes]
        by_id = any(write.op in REDUCTIONS or write.op in TOUCHED for write in statement.writes)
        return by_id or any(self._expressions.leaves(values, op) for op in (GRADIENT, "segment_sum"))

    def _fill(self, statement: Statement, table: Table, tracer: Tracer, guards: Guards) -> None:
        node = statement.node
        if node.op in _DENSE:
            value = tracer.rows(node.inputs[1])
            statement.writes.append(Write(table.root, _DENSE[node.op], value))
            return
        if node.op in _SCATTERS:
            self._check_indices(node)
            rows = self._rows_of(node.inputs[1], node.inputs[2], tracer, guards)
            kind = _SCATTERS[node.op]
            prefix = "scatter_" if rows.per_id else "touched_"
            statement.writes.append(Write(table.root, prefix + kind, rows.value))
            return
        if node.op not in _FUSED:
            raise NotPackable("update_arithmetic", f"Nothing is known about the op {node.op}.")
        self._fused(statement, tracer, guards)

    def _check_indices(self, node: Node) -> None:
        """Of the scatters that take coordinates, those are updates of rows whose coordinates are row numbers."""
        dims = self._graph.shape(node.inputs[1]).dims
        if "ScatterNd" in node.op and (not dims or dims[-1] != 1):
            raise NotPackable("update_arithmetic", "Its coordinates name elements, not rows.")

    def _rows_of(self, indices: TensorRef, values: TensorRef, tracer: Tracer, guards: Guards) -> _Rows:
        """The expression of rows that are written at some indices."""
        found = trace_update_ids(self._graph, indices, guards)
        if found is None:
            raise NotPackable("ids_dtype")
        ids, unique = found
        tracer.use_ids(ids)
        if self._graph.shape(values).dims == ():
            return _Rows(tracer.scalar(values), unique is None)
        if unique is None:
            return _Rows(tracer.per_id(values), True)
        return _Rows(tracer.unique_rows(values, unique), False)

    def _fused(self, statement: Statement, tracer: Tracer, guards: Guards) -> None:
        node = statement.node
        definition = op_def(node.op)
        assert definition is not None, "FUSED_RULES names registered ops"
        refs = {arg.name: ref for arg, ref in zip(definition.input_arg, node.inputs, strict=True)}
        rule = FUSED_RULES.get(node.op + self._variant(statement, refs))
        if rule is None or not _plain(node):
            raise NotPackable("update_arithmetic", f"This form of {node.op} is not known.")
        resources = {arg.name for arg in definition.input_arg if arg.type == types_pb2.DT_RESOURCE}
        roots, inputs = {}, {}
        sparse = "indices" in refs
        for name, ref in refs.items():
            if name in resources:
                table = updated_table(self._graph, ref)
                if table.shape != statement.shape:
                    raise NotPackable("update_arithmetic", "Its slots do not have the shape of the variable.")
                roots[name] = table.root
                inputs[name] = self._expressions.leaf(STATE, (table.root, None))
            elif name in ("grad", "delta"):
                inputs[name] = self._gradient(ref, refs.get("indices"), tracer, guards)
            elif name != "indices":
                inputs[name] = tracer.scalar(ref)
        writes = fused_writes(rule, self._expressions, inputs, roots)
        statement.writes = [Write(w.root, _TOUCHED[w.op], w.value) for w in writes] if sparse else writes

    def _variant(self, statement: Statement, refs: Mapping[str, TensorRef]) -> str:
        """What is added to the name of a training op in FUSED_RULES."""
        node = statement.node
        if node.attr("use_nesterov", False):
            return " nesterov"
        variant = ""
        if "lr_power" in refs:
            variant = " sqrt" if scalar(self._graph, refs["lr_power"]) == -0.5 else ""
        if product((statement.shape.dims or ())[1:]) == 1 and f"{node.op}{variant} column" in FUSED_RULES:
            variant += " column"
        return variant

    def _gradient(self, ref: TensorRef, indices: TensorRef | None, tracer: Tracer, guards: Guards) -> int:
        if indices is None:
            stated = self._graph.shape(ref).elements() is not None
            return tracer.rows(ref) if stated else self._expressions.leaf(TABLE, ref)  # the op checks its shape
        rows = self._rows_of(indices, ref, tracer, guards)
        if rows.per_id:
            raise NotPackable("duplicates_apply_in_turn")
        return rows.value


def _plain(node: Node) -> bool:
    """Whether attributes that change what a training op does have their usual values."""
    return node.attr("update_slots", True) and not node.attr("multiply_linear_by_lr", False)

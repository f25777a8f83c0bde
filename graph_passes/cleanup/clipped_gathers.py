"""Gathers of rows that are then clipped to a norm become gathers of clipped rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from graph_passes.analysis.devices import device_type, home_task, task_of
from graph_passes.analysis.tables import row_source
from graph_passes.ir import Graph, Mutation
from graph_passes.ir.op_defs import TABLE_GATHER, has_kernel
from graph_passes.pipeline.base import Declined, Pass, PassContext, PassReport, PassResult
from graph_passes.rewrite.clipped_rows import ClippedRows, NotClipped, clipped_rows
from graph_passes.rewrite.packed_nodes import put_table_gather, retire


@dataclass(frozen=True)
class ClippedGathers(Pass):
    """A ResourceGather and `tf.clip_by_norm` of its rows become `Picasso>TableGather` with a `max_norm`.

    The gather is one candidate for packing, as a ResourceGather is. Where a gradient reads rows or norms, nothing is
    gained, and all stays.

    Before:
        graph {feeds = [], fetches = [clipped], preserve = []}
        t = _Arg() {T = resource, _handle_dtypes = [float32], _handle_shapes = [<10,4>], index = 0} @ /device:CPU:0
        ids = _Arg() {T = int32, index = 1} @ /device:CPU:0 -> <?>
        one = Const() {dtype = int32, value = int32[1](1)} @ /device:CPU:0 -> <1>
        zero = Const() {dtype = float32, value = float32[](0.0)} @ /device:CPU:0 -> <>
        most = Const() {dtype = float32, value = float32[](2.0)} @ /device:CPU:0 -> <>
        rows = ResourceGather(t, ids) {Tindices = int32, dtype = float32} @ /device:CPU:0 -> <?,4>
        squares = Square(rows) {T = float32} @ /device:CPU:0 -> <?,4>
        total = Sum(squares, one) {T = float32, Tidx = int32, keep_dims = true} @ /device:CPU:0 -> <?,1>
        some = Greater(total, zero) {T = float32} @ /device:CPU:0 -> <?,1>
        shape = Shape(total) {T = float32, out_type = int32} @ /device:CPU:0 -> <2>
        ones = Fill(shape, most) {T = float32, index_type = int32} @ /device:CPU:0 -> <?,1>
        safe = Select(some, total, ones) {T = float32} @ /device:CPU:0 -> <?,1>
        root = Sqrt(safe) {T = float32} @ /device:CPU:0 -> <?,1>
        norm = Select(some, root, total) {T = float32} @ /device:CPU:0 -> <?,1>
        divisor = Maximum(norm, most) {T = float32} @ /device:CPU:0 -> <?,1>
        product = Mul(rows, most) {T = float32} @ /device:CPU:0 -> <?,4>
        clipped = RealDiv(product, divisor) {T = float32} @ /device:CPU:0 -> <?,4>
    After:
        graph {feeds = [], fetches = [clipped], preserve = []}
        t = _Arg() {T = resource, _handle_dtypes = [float32], _handle_shapes = [<10,4>], index = 0} @ /device:CPU:0
        ids = _Arg() {T = int32, index = 1} @ /device:CPU:0 -> <?>
        one = Const() {dtype = int32, value = int32[1](1)} @ /device:CPU:0 -> <1>
        zero = Const() {dtype = float32, value = float32[](0.0)} @ /device:CPU:0 -> <>
        most = Const() {dtype = float32, value = float32[](2.0)} @ /device:CPU:0 -> <>
        clipped = Picasso>TableGather(t, ids) {Tindices = int32, dtype = float32, max_norm = 2.0, num_tables = 1, shard_extras = 0, shard_rows = 0} @ /device:CPU:0 -> <?,4>
    """  # noqa: E501

    name: ClassVar[str] = "clipped_gathers"

    def run(self, graph: Graph, context: PassContext) -> PassResult:
        report, home = PassReport(self.name), home_task(graph)
        mutation = Mutation(graph)
        for result in sorted(graph.of("RealDiv"), key=lambda node: node.name):
            found = clipped_rows(graph, result)
            if isinstance(found, ClippedRows):
                found = _why_not(graph, found, home) or found
            if isinstance(found, NotClipped):
                report.declined.append(Declined(found.code, result.name, found.detail))
            elif found is not None and not context.take_fuel():
                report.declined.append(Declined("out_of_fuel", result.name))
            elif found is not None:
                _clip(graph, mutation, found)
                report.rewritten.append(result.name)
        return PassResult(mutation.apply() if report.rewritten else graph, report)


def _why_not(graph: Graph, rows: ClippedRows, home: str) -> NotClipped | None:
    """Why a gather may not clip its rows, or None. `home` is the task that starts the graph."""
    kind = device_type(rows.result.device) or "CPU"
    if task_of(rows.gather.device) != home:
        return NotClipped("remote_device", f"Its table is in '{task_of(rows.gather.device)}'.")
    if rows.gather.device != rows.result.device:
        return NotClipped("other_device", "The table is on another device than what clips its rows.")
    if not has_kernel(TABLE_GATHER, kind):
        return NotClipped("no_kernel", f"No kernel clips rows on a {kind}.")
    if not row_source(graph, rows.gather).tables[0].traceable:
        return NotClipped("handle_not_traceable")
    return None


def _clip(graph: Graph, mutation: Mutation, rows: ClippedRows) -> None:
    """Puts one gather of clipped rows in the place of the gather and what follows it."""
    gather = rows.gather
    source = row_source(graph, gather)
    attrs = {
        "dtype": gather.attr("dtype"),
        "num_tables": len(source.handles),
        "Tindices": gather.attr("Tindices"),
        "shard_rows": source.rows,
        "shard_extras": source.extras,
        "max_norm": rows.max_norm,
    }
    name = put_table_gather(graph, mutation, rows.result, gather.inputs, gather.controls, attrs)
    retire(graph, mutation, gather, name)
    for other in rows.between:
        mutation.remove(other)

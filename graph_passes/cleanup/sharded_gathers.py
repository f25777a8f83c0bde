"""Lookups in a list of variables become one gather each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from graph_passes.analysis.devices import device_type, home_task, task_of
from graph_passes.analysis.reachability import Reachability, group_levels
from graph_passes.analysis.tables import table_of
from graph_passes.ir import Graph, Mutation, Node
from graph_passes.ir.op_defs import TABLE_GATHER, has_kernel
from graph_passes.pipeline.base import Declined, Pass, PassContext, PassReport, PassResult
from graph_passes.rewrite.packed_nodes import DTYPES, put_table_gather, retire
from graph_passes.rewrite.sharded_rows import ShardedRows, sharded_rows, stitched_gathers


@dataclass(frozen=True)
class ShardedGathers(Pass):
    """Partition, gather and stitch of a table in shards become `Picasso>TableGather`, which finds rows by their ids.

    The gather is one candidate for packing, as a ResourceGather is. Where the shard and the row of an id are computed
    is left without readers, unless gradients need it.

    Before:
        graph {feeds = [], fetches = [rows], preserve = []}
        t1 = _Arg() {T = resource, _handle_dtypes = [float32], _handle_shapes = [<10,4>], index = 0} @ /device:CPU:0
        t2 = _Arg() {T = resource, _handle_dtypes = [float32], _handle_shapes = [<10,4>], index = 1} @ /device:CPU:0
        ids = _Arg() {T = int32, index = 2} @ /device:CPU:0 -> <?>
        zero = Const() {dtype = int32, value = int32[](0)} @ /device:CPU:0 -> <>
        one = Const() {dtype = int32, value = int32[](1)} @ /device:CPU:0 -> <>
        two = Const() {dtype = int32, value = int32[](2)} @ /device:CPU:0 -> <>
        size = Size(ids) {T = int32, out_type = int32} @ /device:CPU:0 -> <>
        range = Range(zero, size, one) {Tidx = int32} @ /device:CPU:0 -> <?>
        shard = FloorMod(ids, two) {T = int32} @ /device:CPU:0 -> <?>
        row = FloorDiv(ids, two) {T = int32} @ /device:CPU:0 -> <?>
        part = DynamicPartition(row, shard) {T = int32, num_partitions = 2} @ /device:CPU:0 -> <?>, <?>
        place = DynamicPartition(range, shard) {T = int32, num_partitions = 2} @ /device:CPU:0 -> <?>, <?>
        a = ResourceGather(t1, part) {Tindices = int32, dtype = float32} @ /device:CPU:0 -> <?,4>
        b = ResourceGather(t2, part:1) {Tindices = int32, dtype = float32} @ /device:CPU:0 -> <?,4>
        rows = ParallelDynamicStitch(place, place:1, a, b) {N = 2, T = float32} @ /device:CPU:0 -> <?,4>
    After:
        graph {feeds = [], fetches = [rows], preserve = []}
        t1 = _Arg() {T = resource, _handle_dtypes = [float32], _handle_shapes = [<10,4>], index = 0} @ /device:CPU:0
        t2 = _Arg() {T = resource, _handle_dtypes = [float32], _handle_shapes = [<10,4>], index = 1} @ /device:CPU:0
        ids = _Arg() {T = int32, index = 2} @ /device:CPU:0 -> <?>
        zero = Const() {dtype = int32, value = int32[](0)} @ /device:CPU:0 -> <>
        one = Const() {dtype = int32, value = int32[](1)} @ /device:CPU:0 -> <>
        two = Const() {dtype = int32, value = int32[](2)} @ /device:CPU:0 -> <>
        size = Size(ids) {T = int32, out_type = int32} @ /device:CPU:0 -> <>
        range = Range(zero, size, one) {Tidx = int32} @ /device:CPU:0 -> <?>
        shard = FloorMod(ids, two) {T = int32} @ /device:CPU:0 -> <?>
        row = FloorDiv(ids, two) {T = int32} @ /device:CPU:0 -> <?>
        part = DynamicPartition(row, shard) {T = int32, num_partitions = 2} @ /device:CPU:0 -> <?>, <?>
        place = DynamicPartition(range, shard) {T = int32, num_partitions = 2} @ /device:CPU:0 -> <?>, <?>
        rows = Picasso>TableGather(t1, t2, ids) {Tindices = int32, dtype = float32, num_tables = 2, shard_extras = 0, shard_rows = 0} @ /device:CPU:0 -> <?,4>
    """  # noqa: E501

    name: ClassVar[str] = "sharded_gathers"

    def run(self, graph: Graph, context: PassContext) -> PassResult:
        report = PassReport(self.name)
        candidates = stitched_gathers(graph)
        if not candidates:
            return PassResult(graph, report)
        found, home = [], home_task(graph)
        for stitch in candidates:
            rows = sharded_rows(graph, stitch)
            declined = _why_not(graph, stitch, rows, home)
            if declined is not None:
                report.declined.append(declined)
            elif rows is not None:
                found.append(rows)
        mutation = Mutation(graph)
        for rows in _without_cycles(graph, found, report):
            if not context.take_fuel():
                report.declined.append(Declined("out_of_fuel", rows.name))
                continue
            _join(graph, mutation, rows)
            report.rewritten.append(rows.name)
        return PassResult(mutation.apply() if report.rewritten else graph, report)


def _why_not(graph: Graph, stitch: Node, rows: ShardedRows | None, home: str) -> Declined | None:
    """The reason why shards stay apart, or None. `home` is the task that starts the graph."""
    if rows is None:
        return Declined("sharded_table", stitch.name)
    dtype, kind = rows.gathers[0].attr("dtype"), device_type(stitch.device) or "CPU"
    away = [gather for gather in rows.gathers if task_of(gather.device) != home]
    if away:
        return Declined("remote_device", stitch.name, f"A shard is in '{task_of(away[0].device)}'.")
    if any(gather.device != stitch.device for gather in rows.gathers):
        return Declined("other_device", stitch.name, "Its shards are on several devices.")
    if dtype not in DTYPES:
        return Declined("dtype_not_supported", stitch.name, f"Its rows are {dtype}.")
    if not has_kernel(TABLE_GATHER, kind):
        return Declined("no_kernel", stitch.name, f"No kernel looks rows up in shards on a {kind}.")
    if not all(table_of(graph, gather.inputs[0]).traceable for gather in rows.gathers):
        return Declined("handle_not_traceable", stitch.name)
    return None


def _without_cycles(graph: Graph, found: list[ShardedRows], report: PassReport) -> list[ShardedRows]:
    """Those that can all become one node each: something may wait for one shard and come before another."""
    reach = Reachability(graph, [member.name for rows in found for member in rows.members])
    own = {rows.name: reach.bits(member.name for member in rows.members) for rows in found}
    waits = {rows.name: reach.reaching(*rows.waits_for()) for rows in found}
    level = group_levels(own, waits)
    report.declined += [Declined("would_form_cycle", rows.name) for rows in found if rows.name not in level]
    return [rows for rows in found if rows.name in level]


def _join(graph: Graph, mutation: Mutation, rows: ShardedRows) -> None:
    """Puts one gather in the place of those of all shards."""
    first = rows.gathers[0]
    attrs = {
        "dtype": first.attr("dtype"),
        "num_tables": len(rows.gathers),
        "Tindices": first.attr("Tindices"),
        "shard_rows": rows.shard_rows,
        "shard_extras": rows.extras,
    }
    inputs = [*(gather.inputs[0] for gather in rows.gathers), rows.ids]
    controls = list(dict.fromkeys(control for member in rows.members for control in member.controls))
    name = put_table_gather(graph, mutation, rows.stitch, inputs, controls, attrs)
    for gather in rows.gathers:
        retire(graph, mutation, gather, name)

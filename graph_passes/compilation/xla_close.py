"""Hands the dense part of an opened function back to XLA."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

from graph_passes.analysis.compiled_calls import opened_marker
from graph_passes.analysis.regions import regions
from graph_passes.compilation.members import Members
from graph_passes.compilation.region_call import emit, region_call
from graph_passes.ir import Graph, Mutation, Node
from graph_passes.ir.op_defs import is_stateful
from graph_passes.pipeline.base import Declined, Pass, PassContext, PassReport, PassResult
from graph_passes.rewrite.packed_nodes import kernel_name

_NAME = "picasso/xla_close/"


@dataclass(frozen=True)
class XlaClose(Pass):
    """Nodes of an opened function that XLA can compile become one call marked `_XlaMustCompile`, or as few as can be.

    Only the body of a function that `xla_open` opened is touched. Packed ops, lookups and updates of rows, strings,
    conditionals, and what they feed with results of unknown size stay outside. All else goes into regions that no path
    leaves and enters again, each of which becomes a function. Constants are copied into it, so that XLA knows shapes and
    axes. Reads and writes of dense variables go along: the call waits for what they waited for, and what waited for them
    waits for the call.

    Args:
        min_weight: what a region must be worth; a product of matrices counts 8, a step of arithmetic 1, a reshape 0.

    Before:
        graph {feeds = [], fetches = [], preserve = [write]}
        table = _Arg() {T = resource, _handle_dtypes = [float32], _handle_shapes = [<10,4>], index = 0}
        kernel = _Arg() {T = resource, _handle_dtypes = [float32], _handle_shapes = [<4,4>], index = 1}
        ids = _Arg() {T = int32, index = 2} -> <8>
        opened = NoOp() {_picasso_opened = true}
        rows = ResourceGather(table, ids) {Tindices = int32, dtype = float32} -> <8,4>
        read = ReadVariableOp(kernel) {dtype = float32} -> <4,4>
        rate = Const() {dtype = float32, value = float32[](0.5)} -> <>
        product = MatMul(rows, read) {T = float32, transpose_a = false, transpose_b = false} -> <8,4>
        gradient = MatMul(rows, product) {T = float32, transpose_a = true, transpose_b = false} -> <4,4>
        step = Mul(gradient, rate) {T = float32} -> <4,4>
        write = AssignSubVariableOp(kernel, step, ^read) {dtype = float32}
        out = _Retval(product) {T = float32, index = 0}
    After:
        graph {feeds = [], fetches = [], preserve = [write]}
        table = _Arg() {T = resource, _handle_dtypes = [float32], _handle_shapes = [<10,4>], index = 0}
        kernel = _Arg() {T = resource, _handle_dtypes = [float32], _handle_shapes = [<4,4>], index = 1}
        ids = _Arg() {T = int32, index = 2} -> <8>
        opened = NoOp()
        rows = ResourceGather(table, ids) {Tindices = int32, dtype = float32} -> <8,4>
        picasso/xla_close/gradient = StatefulPartitionedCall(kernel, rows) {Tin = [resource, float32], Tout = [float32], _XlaMustCompile = true, config = "", config_proto = "", executor_type = "", f = @picasso_xla_c03881d2e21918135957f2b0} -> <8,4>
        write = NoOp(^picasso/xla_close/gradient)
        out = _Retval(picasso/xla_close/gradient) {T = float32, index = 0}
        function @picasso_xla_c03881d2e21918135957f2b0(^read, ^write) {_XlaMustCompile = true, _noinline = true}
        arg_0 = _Arg() {T = resource, index = 0}
        arg_1 = _Arg() {T = float32, index = 1}
        read = ReadVariableOp(arg_0) {dtype = float32}
        rate = Const() {dtype = float32, value = float32[](0.5)}
        product = MatMul(arg_1, read) {T = float32, transpose_a = false, transpose_b = false}
        gradient = MatMul(arg_1, product) {T = float32, transpose_a = true, transpose_b = false}
        step = Mul(gradient, rate) {T = float32}
        write = AssignSubVariableOp(arg_0, step, ^read) {dtype = float32}
        result_0_RetVal = _Retval(product) {T = float32, index = 0}
    """  # noqa: E501

    min_weight: int = 16

    name: ClassVar[str] = "xla_close"

    def run(self, graph: Graph, context: PassContext) -> PassResult:
        report = PassReport(self.name)
        marker = opened_marker(graph)
        if marker is None:
            return PassResult(graph, report)
        members = Members(graph)
        found = self._regions(graph, members)
        graph = _without_mark(graph, marker)
        for names in found:
            first = min(names)
            if not context.take_fuel():
                report.declined.append(Declined("out_of_fuel", first))
                continue
            call = region_call(graph, names, members.free)
            report.moved += [name for name in names if is_stateful(graph.nodes[name])]
            graph, name = emit(graph, kernel_name(graph, _NAME + first), members.device, names, call)
            report.moved.append(name)
            report.functions.append(call.function.signature.name)
            report.rewritten.append(name)
        if not report.rewritten and not report.declined:
            report.declined.append(Declined("nothing_to_compile", marker.name))
        return PassResult(_without_unread(graph, members.free), report)

    def _regions(self, graph: Graph, members: Members) -> list[list[str]]:
        """The regions that are worth it, such that nothing that must not crosses their borders."""
        while True:
            found = regions(graph, members.inside, members.free, members.weight)
            found = [names for names in found if sum(map(members.weight, names)) >= self.min_weight]
            place = {name: number for number, names in enumerate(found) for name in names}
            if not members.leave_out_bound(place):
                return found


def _without_mark(graph: Graph, marker: Node) -> Graph:
    mutation = Mutation(graph)
    mutation.replace(Node(marker.name, "NoOp", (), marker.controls, marker.device))
    return mutation.apply()


def _without_unread(graph: Graph, constants: Collection[str]) -> Graph:
    """The graph without the constants that only regions read, which have a copy of them."""
    unread = [name for name in sorted(constants) if not graph.uses(name)]
    mutation = Mutation(graph)
    for name in unread:
        mutation.remove(name)
    return mutation.apply() if unread else graph

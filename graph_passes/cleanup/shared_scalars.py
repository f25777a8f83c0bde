"""Scalars that are computed for each table again are computed once."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

from graph_passes.analysis.control_flow import Context, contexts
from graph_passes.analysis.reachability import Reachability
from graph_passes.analysis.tables import accesses, table_of
from graph_passes.ir import Graph, Mutation, Node, TensorRef
from graph_passes.ir.op_defs import is_stateful
from graph_passes.pipeline.base import Pass, PassContext, PassReport, PassResult

_PER_FRAME = frozenset({"Enter", "Exit", "Switch", "Merge", "NextIteration", "LoopCond", "Placeholder", "_Arg"})


@dataclass(frozen=True)
class SharedScalars(Pass):
    """Merges scalar computations that must give the same value.

    Front ends read the learning rate and raise the betas to the power of the step anew for each variable; TensorFlow's
    own passes never merge two reads of a variable. Two reads are the same when the same writes come before both. What
    waited for the one that goes waits for the one that stays.

    Before:
        graph {feeds = [], fetches = [out], preserve = []}
        rate = _Arg() {T = resource, _handle_dtypes = [float32], _handle_shapes = [<>], index = 0}
        x = _Arg() {T = float32, index = 1} -> <2>
        read = ReadVariableOp(rate) {dtype = float32} -> <>
        read_1 = ReadVariableOp(rate) {dtype = float32} -> <>
        neg = Neg(read) {T = float32} -> <>
        neg_1 = Neg(read_1) {T = float32} -> <>
        a = Mul(x, neg) {T = float32} -> <2>
        out = Mul(a, neg_1) {T = float32} -> <2>
    After:
        graph {feeds = [], fetches = [out], preserve = []}
        rate = _Arg() {T = resource, _handle_dtypes = [float32], _handle_shapes = [<>], index = 0}
        x = _Arg() {T = float32, index = 1} -> <2>
        read = ReadVariableOp(rate) {dtype = float32} -> <>
        neg = Neg(read) {T = float32} -> <>
        a = Mul(x, neg) {T = float32} -> <2>
        out = Mul(a, neg) {T = float32} -> <2>
    """

    name: ClassVar[str] = "shared_scalars"

    def run(self, graph: Graph, context: PassContext) -> PassResult:
        report = PassReport(self.name)
        same = _merged(graph)
        if not same or not context.take_fuel():
            return PassResult(graph, report)
        mutation = Mutation(graph)
        for name, first in same.items():
            mutation.redirect(TensorRef(name), TensorRef(first))
            if name not in graph.kept:
                mutation.redirect_controls(name, first)
                mutation.remove(name)
        report.rewritten = sorted(name for name in same if name not in graph.kept or graph.uses_of(TensorRef(name)))
        return PassResult(mutation.apply(), report)


def _merged(graph: Graph) -> dict[str, str]:
    """For each node that can go, the one that gives the same scalar."""
    reads = [node for node in graph.of("ReadVariableOp") if _is_scalar(node)]
    if len(reads) < 2:
        return {}
    access = accesses(graph)
    writes = {table_of(graph, node.inputs[0]).root for node in reads}
    reach = Reachability(graph, [write.name for root in writes if root in access for write in access[root].writes])
    around = contexts(graph)
    alike: dict[Hashable, list[str]] = {}
    same: dict[str, str] = {}  # so far, for the first one of those that are alike
    for node in graph.topological:
        if node.op in _PER_FRAME or node.name in graph.kept_for_data or not _is_scalar(node):
            continue
        key = _key(graph, node, reach, around, same)
        if key is not None:
            names = alike.setdefault(key, [])
            names.append(node.name)
            same[node.name] = names[0]
    found = {}
    for names in alike.values():
        first = min(names)
        for name in names:
            if name != first and (name not in graph.kept or graph.uses_of(TensorRef(name))):
                found[name] = first
    return found


def _is_scalar(node: Node) -> bool:
    return node.output_shape().dims == ()


def _key(
    graph: Graph, node: Node, reach: Reachability, around: dict[str, Context], same: dict[str, str]
) -> Hashable | None:
    """What two nodes share when they give the same value; None for a node that is not to be merged."""
    place = (node.device, around.get(node.name, frozenset()))
    controls = tuple(sorted(same.get(name, name) for name in node.controls))
    if node.op == "ReadVariableOp":
        table = table_of(graph, node.inputs[0])
        if not table.traceable or place[1] or controls:
            return None
        return (node.op, place, table.root, reach.reaching(node.name))
    types = graph.output_types(node.name)
    if is_stateful(node) or types is None or len(types) != 1 or types[0] == "resource":
        return None
    inputs = tuple(TensorRef(same.get(ref.node, ref.node), ref.port) for ref in node.inputs)
    attrs = tuple((key, repr(node.attr(key))) for key in node.attr_names() if not key.startswith("_"))
    return (node.op, place, inputs, controls, attrs)

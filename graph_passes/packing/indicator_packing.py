"""K-Packing for indicator columns: the counts of ids of all sparse features of one level become one op."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from graph_passes.analysis.devices import home_task
from graph_passes.ir import DType, Graph, Mutation, Node, TensorRef
from graph_passes.ir.op_defs import PACKED_INDICATORS
from graph_passes.packing.packing_by_place import pack_by_place
from graph_passes.packing.placement import no_home
from graph_passes.pipeline.base import Packed, Pass, PassContext, PassReport, PassResult
from graph_passes.rewrite.indicators import Indicator, find_indicators
from graph_passes.rewrite.packed_nodes import packed_name, substitute


@dataclass(frozen=True)
class IndicatorPacking(Pass):
    """Packs indicator columns into `Picasso>PackedIndicators`, which counts ids without making one-hot vectors.

    Before:
        graph {feeds = [], fetches = [a, b], preserve = []}
        i = _Arg() {T = int64, index = 0} @ /device:CPU:0 -> <?,2>
        v = _Arg() {T = int64, index = 1} @ /device:CPU:0 -> <?>
        w = _Arg() {T = int64, index = 2} @ /device:CPU:0 -> <?>
        d = _Arg() {T = int64, index = 3} @ /device:CPU:0 -> <2>
        none = Const() {dtype = int64, value = int64[](-1)} @ /device:CPU:0 -> <>
        one = Const() {dtype = float32, value = float32[](1.0)} @ /device:CPU:0 -> <>
        zero = Const() {dtype = float32, value = float32[](0.0)} @ /device:CPU:0 -> <>
        ten = Const() {dtype = int32, value = int32[](10)} @ /device:CPU:0 -> <>
        axis = Const() {dtype = int32, value = int32[1](-2)} @ /device:CPU:0 -> <1>
        x = SparseToDense(i, d, v, none) {T = int64, Tindices = int64, validate_indices = true} @ /device:CPU:0 -> <?,?>
        y = OneHot(x, ten, one, zero) {T = float32, TI = int64, axis = -1} @ /device:CPU:0 -> <?,?,10>
        a = Sum(y, axis) {T = float32, Tidx = int32, keep_dims = false} @ /device:CPU:0 -> <?,10>
        s = SparseToDense(i, d, w, none) {T = int64, Tindices = int64, validate_indices = true} @ /device:CPU:0 -> <?,?>
        t = OneHot(s, ten, one, zero) {T = float32, TI = int64, axis = -1} @ /device:CPU:0 -> <?,?,10>
        b = Sum(t, axis) {T = float32, Tidx = int32, keep_dims = false} @ /device:CPU:0 -> <?,10>
    After:
        graph {feeds = [], fetches = [a, b], preserve = []}
        i = _Arg() {T = int64, index = 0} @ /device:CPU:0 -> <?,2>
        v = _Arg() {T = int64, index = 1} @ /device:CPU:0 -> <?>
        w = _Arg() {T = int64, index = 2} @ /device:CPU:0 -> <?>
        d = _Arg() {T = int64, index = 3} @ /device:CPU:0 -> <2>
        none = Const() {dtype = int64, value = int64[](-1)} @ /device:CPU:0 -> <>
        one = Const() {dtype = float32, value = float32[](1.0)} @ /device:CPU:0 -> <>
        zero = Const() {dtype = float32, value = float32[](0.0)} @ /device:CPU:0 -> <>
        ten = Const() {dtype = int32, value = int32[](10)} @ /device:CPU:0 -> <>
        axis = Const() {dtype = int32, value = int32[1](-2)} @ /device:CPU:0 -> <1>
        picasso/indicator_packing/a = Picasso>PackedIndicators(i, i, v, w, d, d) {depths = [10, 10], feature_names = ["a", "b"], id_types = [int64, int64], num_features = 2} @ /device:CPU:0 -> <?,10>, <?,10>
        a = Identity(picasso/indicator_packing/a) {T = float32} @ /device:CPU:0 -> <?,10>
        b = Identity(picasso/indicator_packing/a:1) {T = float32} @ /device:CPU:0 -> <?,10>
    """  # noqa: E501

    name: ClassVar[str] = "indicator_packing"

    def run(self, graph: Graph, context: PassContext) -> PassResult:
        report, home = PassReport(self.name), home_task(graph)
        sums = [item.sum for item in find_indicators(graph)]
        reasons = [no_home(node.name, PACKED_INDICATORS, home, node) for node in sums]
        report.declined += [declined for declined in reasons if declined is not None]
        names = {item.node for item in report.declined}
        return pack_by_place(graph, context, report, lambda graph: _indicators(graph, names), _emit)


def _indicators(graph: Graph, declined: Collection[str]) -> dict[str, Indicator]:
    """Indicators by the names of their sums."""
    return {item.sum.name: item for item in find_indicators(graph) if item.sum.name not in declined}


def _emit(graph: Graph, indicators: Sequence[Indicator]) -> tuple[Graph, Packed]:
    """The graph in which one op takes the place of indicators."""
    mutation = Mutation(graph)
    names = [item.sum.name for item in indicators]
    name = mutation.unique_name(packed_name(graph, "indicator_packing", names))
    attrs: dict[str, Any] = {
        "num_features": len(indicators),
        "id_types": [graph.dtype_of(item.ids) for item in indicators],
        "feature_names": [item.encode() for item in names],
        "depths": [item.depth for item in indicators],
        "_output_shapes": [item.sum.output_shape() for item in indicators],
    }
    inputs = [item.indices for item in indicators] + [item.ids for item in indicators]
    inputs += [item.shape for item in indicators]
    mutation.add(Node(name, PACKED_INDICATORS, inputs, (), indicators[0].sum.device, attrs))
    for port, item in enumerate(indicators):
        substitute(graph, mutation, item.sum, TensorRef(name, port), DType("float32"))
        for part in item.nodes[:2]:
            mutation.remove(part.name)
    members = tuple(node.name for item in indicators for node in item.nodes)
    return mutation.apply(), Packed(name, members, kind="transform")

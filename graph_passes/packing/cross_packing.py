"""K-Packing for crosses: all hashed crosses of features of one level become one op."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar

from graph_passes.analysis.devices import home_task
from graph_passes.ir import CONTROL, DType, Graph, Mutation, Node, TensorRef
from graph_passes.ir.op_defs import PACKED_CROSSES
from graph_passes.packing.cross_node import PackedCrossesNode
from graph_passes.packing.packing_by_place import pack_by_place
from graph_passes.packing.placement import no_home
from graph_passes.pipeline.base import Declined, Packed, Pass, PassContext, PassReport, PassResult
from graph_passes.rewrite.crosses import OPS, PORTS, Cross, find_cross
from graph_passes.rewrite.packed_nodes import packed_name, retire, substitute


@dataclass(frozen=True)
class CrossPacking(Pass):
    """Packs hashed crosses, of sparse features and of dense ones, into `Picasso>PackedCrosses`.

    Crosses of one level become one op, which hashes the strings of a feature once for all its crosses. The SparseToDense
    by which preprocessing layers make a matrix of a cross is part of it.

    Before:
        graph {feeds = [], fetches = [a, b], preserve = []}
        city = _Arg() {T = string, index = 0} @ /device:CPU:0 -> <?,1>
        hour = _Arg() {T = int64, index = 1} @ /device:CPU:0 -> <?,1>
        zero = Const() {dtype = int64, value = int64[](0)} @ /device:CPU:0 -> <>
        x = SparseCross(city, hour) {N = 0, dense_types = [string, int64], hash_key = 77, hashed_output = true, internal_type = int64, num_buckets = 100, out_type = int64, sparse_types = []} @ /device:CPU:0 -> <?,2>, <?>, <2>
        a = SparseToDense(x, x:2, x:1, zero) {T = int64, Tindices = int64, validate_indices = true} @ /device:CPU:0 -> <?,?>
        y = SparseCross(hour, city) {N = 0, dense_types = [int64, string], hash_key = 77, hashed_output = true, internal_type = int64, num_buckets = 9, out_type = int64, sparse_types = []} @ /device:CPU:0 -> <?,2>, <?>, <2>
        b = Identity(y:1) {T = int64} @ /device:CPU:0 -> <?>
    After:
        graph {feeds = [], fetches = [a, b], preserve = []}
        city = _Arg() {T = string, index = 0} @ /device:CPU:0 -> <?,1>
        hour = _Arg() {T = int64, index = 1} @ /device:CPU:0 -> <?,1>
        zero = Const() {dtype = int64, value = int64[](0)} @ /device:CPU:0 -> <>
        picasso/cross_packing/x = Picasso>PackedCrosses(city, hour) {cross_buckets = [100, 9], cross_columns = [0, 1, 1, 0], cross_keys = [77, 77], cross_names = ["x", "y"], cross_sizes = [2, 2], dense_types = [string, int64], num_outputs = 2, num_sparse = 0, output_cross = [0, 1], output_kind = ["dense", "values"], sparse_types = []} @ /device:CPU:0 -> <?,?>, <?>
        a = Identity(picasso/cross_packing/x) {T = int64} @ /device:CPU:0 -> <?,?>
        b = Identity(picasso/cross_packing/x:1) {T = int64} @ /device:CPU:0 -> <?>
    """  # noqa: E501

    name: ClassVar[str] = "cross_packing"

    def run(self, graph: Graph, context: PassContext) -> PassResult:
        report, home = PassReport(self.name), home_task(graph)
        report.declined += [declined for node in graph.of(*OPS) if (declined := _why_not(graph, node, home))]
        names = {item.node for item in report.declined}
        return pack_by_place(graph, context, report, lambda graph: _crosses(graph, names), _emit)


def _why_not(graph: Graph, node: Node, home: str) -> Declined | None:
    """The reason why a cross can be in no pack, or None."""
    if find_cross(graph, node) is None:
        return Declined("string_cross", node.name)
    if node.name in graph.fed or node.name in graph.kept_for_data:
        return Declined("fed", node.name, "The caller feeds or fetches the outputs of the cross by its name.")
    return no_home(node.name, PACKED_CROSSES, home, node)


def _crosses(graph: Graph, declined: Collection[str]) -> dict[str, Cross]:
    """Crosses that somebody reads, by name."""
    nodes = [node for node in graph.of(*OPS) if node.name not in declined and _is_read(graph, node)]
    return {node.name: cross for node in nodes if (cross := find_cross(graph, node)) is not None}


def _is_read(graph: Graph, node: Node) -> bool:
    return any(use.index != CONTROL for use in graph.uses(node.name))


def _emit(graph: Graph, crosses: Sequence[Cross]) -> tuple[Graph, Packed]:
    """The graph in which one op takes the place of crosses."""
    mutation = Mutation(graph)
    name = mutation.unique_name(packed_name(graph, "cross_packing", [cross.node.name for cross in crosses]))
    packed = PackedCrossesNode(name)
    for cross in crosses:
        number = packed.add_cross(graph, cross)
        for port, kind in enumerate(PORTS):
            ref = TensorRef(cross.node.name, port)
            if any(use.node != cross.dense for use in graph.uses_of(ref)):
                mutation.redirect(ref, packed.add_output(number, kind, graph.shape(ref)))
        if cross.dense is not None:
            ref = packed.add_output(number, "dense", cross.dense.output_shape())
            substitute(graph, mutation, cross.dense, ref, DType("int64"))
        retire(graph, mutation, cross.node, name)
    controls = dict.fromkeys(control for cross in crosses for control in cross.node.controls)
    mutation.add(packed.node(list(controls), crosses[0].node.device))
    members = tuple(node.name for cross in crosses for node in cross.members)
    return mutation.apply(), Packed(name, members, kind="transform")

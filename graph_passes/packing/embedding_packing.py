"""D-Packing for single-hot lookups: all lookups of one device and row type become one op over N tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import tensorflow as tf

from graph_passes.analysis.control_flow import contexts
from graph_passes.analysis.devices import home_task
from graph_passes.analysis.reachability import hidden_successors, levels
from graph_passes.analysis.tables import Lookup, refreshed, resource_lookups
from graph_passes.errors import ConfigError
from graph_passes.ir import Graph
from graph_passes.ir.op_defs import PACKED_LOOKUP, TABLE_GATHER
from graph_passes.packing.lookup_emit import emit
from graph_passes.packing.lookup_plan import LookupKey, Surroundings, plan_group
from graph_passes.packing.placement import no_home
from graph_passes.pipeline.base import Declined, Packed, Pass, PassContext, PassReport, PassResult
from graph_passes.rewrite.grouping import form_groups
from graph_passes.rewrite.packed_nodes import DTYPES

_CACHE_BYTES = 1 << 20  # level 2 of a core of today's servers, which is 1 to 2 MiB


@dataclass(frozen=True)
class EmbeddingPacking(Pass):
    """Packs ResourceGather ops into `Picasso>PackedLookup`.

    Members of a pack cannot reach each other; their widths may differ. The packed op reads ids where they are (through
    casts, wraps of negative ids, reshapes and columns of a matrix), and where all inputs of a following ConcatV2 or Pack
    are lookups of the pack or can be had before it, it writes straight into that op's result. Original names are recorded
    in the attribute `lookup_names`.

    Args:
        max_group_size: the most lookups in one pack; None: no limit.

    Before:
        graph {feeds = [], fetches = [joined], preserve = []}
        t1 = _Arg() {T = resource, _handle_dtypes = [float32], _handle_shapes = [<10,4>], index = 0} @ /device:CPU:0
        t2 = _Arg() {T = resource, _handle_dtypes = [float32], _handle_shapes = [<20,8>], index = 1} @ /device:CPU:0
        ids = _Arg() {T = int32, index = 2} @ /device:CPU:0 -> <?>
        axis = Const() {dtype = int32, value = int32[](1)} @ /device:CPU:0
        a = ResourceGather(t1, ids) {Tindices = int32, dtype = float32} @ /device:CPU:0 -> <?,4>
        b = ResourceGather(t2, ids) {Tindices = int32, dtype = float32} @ /device:CPU:0 -> <?,8>
        joined = ConcatV2(a, b, axis) {N = 2, T = float32, Tidx = int32} @ /device:CPU:0 -> <?,12>
    After:
        graph {feeds = [], fetches = [joined], preserve = []}
        t1 = _Arg() {T = resource, _handle_dtypes = [float32], _handle_shapes = [<10,4>], index = 0} @ /device:CPU:0
        t2 = _Arg() {T = resource, _handle_dtypes = [float32], _handle_shapes = [<20,8>], index = 1} @ /device:CPU:0
        ids = _Arg() {T = int32, index = 2} @ /device:CPU:0 -> <?>
        axis = Const() {dtype = int32, value = int32[](1)} @ /device:CPU:0
        picasso/embedding_packing/a = Picasso>PackedLookup(t1, t2, ids) {dtype = float32, ids_types = [int32], lookup_column = [-1, -1], lookup_columns = [0, 0], lookup_ids = [0, 0], lookup_names = ["a", "b"], lookup_narrow = [false, false], lookup_table = [0, 1], lookup_wrap = [0, 0], num_dense = 0, num_outputs = 1, num_shapes = 0, num_tables = 2, output_shapes = [<?,12>], piece_output = [0, 0], piece_source = [0, 1], piece_width = [4, 8], shape_lookup = [], shape_templates = []} @ /device:CPU:0 -> <?,12>
        joined = Identity(picasso/embedding_packing/a) {T = float32} @ /device:CPU:0 -> <?,12>
    """  # noqa: E501

    max_group_size: int | None = None

    name: ClassVar[str] = "embedding_packing"

    def __post_init__(self) -> None:
        if self.max_group_size is not None and self.max_group_size < 2:
            raise ConfigError(f"`max_group_size` must be >= 2. Received: `max_group_size={self.max_group_size}`.")

    def run(self, graph: Graph, context: PassContext) -> PassResult:
        report = PassReport(self.name)
        lookups = []
        home = home_task(graph)
        for lookup in resource_lookups(graph):
            declined = _why_not(graph, lookup, home)
            if declined is None:
                lookups.append(lookup)
            else:
                report.declined.append(declined)
        if not lookups:
            return PassResult(graph, report)
        around = Surroundings(levels(graph, {lookup.node.name for lookup in lookups}), contexts(graph))
        hidden = hidden_successors(graph, around.levels)
        report.declined += [Declined("after_queue", m.node.name) for m in lookups if m.node.name in hidden]
        lookups = [lookup for lookup in lookups if lookup.node.name not in hidden]
        groups = form_groups(
            lookups,
            level_of=lambda lookup: around.levels[lookup.node.name],
            key_of=lambda lookup: _key(graph, lookup, around),
            max_size=self.max_group_size,
        )
        for group in groups:
            members = [refreshed(graph, lookup) for lookup in group.members]  # an earlier pack may have rewired them
            plan = plan_group(graph, members, group.level, around)
            if len(group.members) == 1 and not plan.joins and not _gains_alone(members[0]):
                report.declined.append(Declined("single_lookup", group.members[0].node.name))
            elif not context.take_fuel():
                report.declined += [Declined("out_of_fuel", m.node.name) for m in group.members]
            else:
                graph, packed = emit(graph, plan)
                around.add(packed, group.level, group.members[0].node.name)
                names = tuple(lookup.node.name for lookup in group.members)
                report.packed.append(Packed(packed, names, tuple(join.node.name for join in plan.joins)))
                report.notes += plan.notes
        absorbed = {join for packed in report.packed for join in packed.absorbed}  # some by a later pack than the noted
        report.notes = [note for note in report.notes if note[0] not in absorbed]
        return PassResult(graph, report)


def _gains_alone(lookup: Lookup) -> bool:
    """Whether even a lone lookup gains: from prefetched rows, where its table is too large for a core's cache.

    A gather from shards or of clipped rows has gained already; as a pack it is reported so.
    """
    if lookup.node.op == TABLE_GATHER:
        return True
    elements = lookup.table.shape.elements()
    return elements is not None and elements * tf.dtypes.as_dtype(str(lookup.dtype)).size > _CACHE_BYTES


def _key(graph: Graph, lookup: Lookup, around: Surroundings) -> LookupKey:
    name, device = lookup.node.name, lookup.node.device or graph.producer(lookup.handle).device
    return LookupKey(device, lookup.dtype, around.context(name))


def _why_not(graph: Graph, lookup: Lookup, home: str) -> Declined | None:
    """The reason why a lookup can be in no pack at all, or None. `home` is the task that starts the graph."""
    node = lookup.node
    if lookup.dtype not in DTYPES:
        return Declined("dtype_not_supported", node.name, f"Its rows are {lookup.dtype}.")
    if node.attr("batch_dims", 0):
        return Declined("batch_dims", node.name)
    declined = no_home(node.name, PACKED_LOOKUP, home, node)
    if declined is not None:
        return declined
    if graph.dtype_of(lookup.ids) not in ("int32", "int64"):
        return Declined("ids_dtype", node.name)
    dims = graph.shape(lookup.ids).dims or ()
    if 0 in dims and None in dims:  # the number of elements does not tell the other dimension
        return Declined("no_ids", node.name)
    if node.name in graph.fed:
        return Declined("fed", node.name)
    return None

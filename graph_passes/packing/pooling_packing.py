"""D-Packing for multi-hot lookups: the chains of all pooled lookups of one device and dtype become one op."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from graph_passes.analysis.control_flow import contexts
from graph_passes.analysis.devices import device_type, home_task
from graph_passes.analysis.registered_kernels import in_host_memory
from graph_passes.ir import Graph, TensorRef
from graph_passes.ir.op_defs import PACKED_POOLED_LOOKUP
from graph_passes.packing.lookup_plan import LookupKey, Surroundings
from graph_passes.packing.placement import no_home
from graph_passes.packing.pooled_shapes import served_shapes
from graph_passes.packing.pooling_emit import emit_pooling, plan_pooling
from graph_passes.packing.pooling_levels import chain_levels
from graph_passes.pipeline.base import Declined, Packed, Pass, PassContext, PassReport, PassResult
from graph_passes.rewrite.grouping import form_groups
from graph_passes.rewrite.packed_nodes import DTYPES
from graph_passes.rewrite.pooled import SHAPE_READERS, PooledLookup, only_leads_to, pooled_lookups
from graph_passes.rewrite.pooled_others import other_pools

AXIS_DTYPES = ("float32", "float64")  # TensorFlow's reductions round some sums of half types after each addition


@dataclass(frozen=True)
class PoolingPacking(Pass):
    """Packs the chains of `embedding_lookup_sparse` and `safe_embedding_lookup_sparse` into `Picasso>PackedPooledLookup`.

    So are sums and means along axis 1 of the rows of a matrix of ids, and sums of the rows of ragged ids. The packed op
    reads ids and indices of the SparseTensors where they are; what was between them and the sums (which ids are valid,
    which rows are empty, which ids are distinct) is left without readers. A chain stays as it is where something else
    reads what is summed, such as a gradient that is not packed.

    Args:
        max_group_size: the most lookups in one pack; None: no limit.

    Before:
        graph {feeds = [], fetches = [a, b], preserve = []}
        t = _Arg() {T = resource, _handle_dtypes = [float32], _handle_shapes = [<10,4>], index = 0} @ /device:CPU:0
        ids = _Arg() {T = int64, index = 1} @ /device:CPU:0 -> <?>
        rows = _Arg() {T = int64, index = 2} @ /device:CPU:0 -> <?>
        unique = Unique(ids) {T = int64, out_idx = int32} @ /device:CPU:0 -> <?>, <?>
        gather = ResourceGather(t, unique) {Tindices = int64, dtype = float32} @ /device:CPU:0 -> <?,4>
        a = SparseSegmentMean(gather, unique:1, rows) {T = float32, Tidx = int32, Tsegmentids = int64} @ /device:CPU:0 -> <?,4>
        more = _Arg() {T = int64, index = 3} @ /device:CPU:0 -> <?>
        unique_1 = Unique(more) {T = int64, out_idx = int32} @ /device:CPU:0 -> <?>, <?>
        gather_1 = ResourceGather(t, unique_1) {Tindices = int64, dtype = float32} @ /device:CPU:0 -> <?,4>
        b = SparseSegmentSum(gather_1, unique_1:1, rows) {T = float32, Tidx = int32, Tsegmentids = int64} @ /device:CPU:0 -> <?,4>
    After:
        graph {feeds = [], fetches = [a, b], preserve = []}
        ids = _Arg() {T = int64, index = 1} @ /device:CPU:0 -> <?>
        more = _Arg() {T = int64, index = 3} @ /device:CPU:0 -> <?>
        rows = _Arg() {T = int64, index = 2} @ /device:CPU:0 -> <?>
        t = _Arg() {T = resource, _handle_dtypes = [float32], _handle_shapes = [<10,4>], index = 0} @ /device:CPU:0
        picasso/pooling_packing/a = Picasso>PackedPooledLookup(t, ids, more, rows) {dtype = float32, ids_types = [int64, int64], lookup_combiner = ["mean", "sum"], lookup_drop = [false, false], lookup_fill = [-1, -1], lookup_ids = [0, 1], lookup_names = ["a", "b"], lookup_rows = [-1, -1], lookup_segments = [0, 0], lookup_table = [0, 0], num_dense = 0, num_outputs = 2, num_tables = 1, output_shapes = [<?,4>, <?,4>], piece_output = [0, 1], piece_source = [0, 1], piece_width = [4, 4], rows_types = [], segments_are_splits = [false], segments_types = [int64]} @ /device:CPU:0 -> <?,4>, <?,4>
        a = Identity(picasso/pooling_packing/a) {T = float32} @ /device:CPU:0 -> <?,4>
        b = Identity(picasso/pooling_packing/a:1) {T = float32} @ /device:CPU:0 -> <?,4>
        unique = Unique(ids) {T = int64, out_idx = int32} @ /device:CPU:0 -> <?>, <?>
        unique_1 = Unique(more) {T = int64, out_idx = int32} @ /device:CPU:0 -> <?>, <?>
    """  # noqa: E501

    max_group_size: int | None = None

    name: ClassVar[str] = "pooling_packing"

    def run(self, graph: Graph, context: PassContext) -> PassResult:
        report = PassReport(self.name)
        lookups = []
        home, found = home_task(graph), pooled_lookups(graph)
        others = other_pools(graph, {part.name for lookup in found for part in lookup.chain})
        report.declined += [Declined(other.code, other.node.name, other.detail) for other in others]
        for lookup in found:
            declined = _why_not(graph, lookup, home)
            if declined is None:
                lookups.append(lookup)
            else:
                report.declined.append(declined)
        if not lookups:
            return PassResult(graph, report)
        level, cyclic, node_levels = chain_levels(graph, lookups)
        report.declined += [Declined("would_form_cycle", lookup.name) for lookup in cyclic]
        around = Surroundings(node_levels, contexts(graph))
        groups = form_groups(
            [lookup for lookup in lookups if lookup.name in level],
            level_of=lambda lookup: level[lookup.name],
            key_of=lambda lookup: LookupKey(lookup.sum.device, lookup.dtype, around.context(lookup.name)),
            max_size=self.max_group_size,
        )
        for group in groups:
            names = [lookup.name for lookup in group.members]
            if not context.take_fuel():
                report.declined += [Declined("out_of_fuel", name) for name in names]
                continue
            # An earlier pack may have rewired what the members read.
            members = [lookup for lookup in pooled_lookups(graph) if lookup.name in names]
            plan = plan_pooling(graph, members, group.level, around)
            graph, packed = emit_pooling(graph, plan)
            around.add(packed, group.level, names[0])
            report.packed.append(Packed(packed, tuple(names), tuple(join.node.name for join in plan.joins)))
        return PassResult(graph, report)


def _why_not(graph: Graph, lookup: PooledLookup, home: str) -> Declined | None:
    """The reason why a pooled lookup can be in no pack, or None. `home` is the task that starts the graph."""
    node, name = lookup.sum, lookup.name
    kind = device_type(node.device) or "CPU"
    reader = _other_reader(graph, lookup)
    if reader is not None:
        return Declined("gradient_needed", name, f"What it sums is also read by {reader}.")
    if lookup.dtype not in DTYPES:
        return Declined("dtype_not_supported", name, f"Its rows are {lookup.dtype}.")
    if lookup.in_other_order and lookup.dtype not in AXIS_DTYPES:
        return Declined("dtype_not_supported", name, f"A {node.op} of rows is packed for {' and '.join(AXIS_DTYPES)}.")
    if lookup.in_other_order and kind != "CPU":
        return Declined("no_kernel", name, f"A {node.op} of rows is packed on the CPU only.")
    declined = no_home(name, PACKED_POOLED_LOOKUP, home, node, lookup.gather)
    if declined is not None:
        return declined
    if any(part.device != node.device for part in lookup.chain):
        return Declined("other_device", name, "The table and the sum are on different devices.")
    if kind != "CPU" and (rows := _rows_on_device(graph, lookup)):
        return Declined("rows_on_device", name, rows)
    if not all(table.traceable for table in lookup.source.tables):
        return Declined("handle_not_traceable", name)
    if len(lookup.source.tables[0].shape.dims or ()) != 2 or not lookup.row_shape(graph).elements():
        return Declined("row_shape", name)
    if any(part.name in graph.fed for part in lookup.chain):
        return Declined("fed", name)
    return None


def _rows_on_device(graph: Graph, lookup: PooledLookup) -> str:
    """Why the host would have to wait for a GPU to know how many rows a lookup gives; "": it would not."""
    if lookup.rows is None:
        return "Only its last segment tells how many rows it gives."
    if not in_host_memory(graph, lookup.rows):
        return f"How many rows it gives is computed on the GPU, by '{lookup.rows.node}'."
    return ""


def _other_reader(graph: Graph, lookup: PooledLookup) -> str | None:
    """What else, if anything, needs the rows that are summed, or the sum before its empty rows are zeroed."""
    chain = {part.name for part in lookup.chain}
    results, served = {part.name for part in lookup.results}, served_shapes(graph, lookup)
    for part in lookup.chain:
        if part.name in results:
            continue
        if part.name in graph.kept_for_data:
            return "the caller"
        for use in graph.uses_of(TensorRef(part.name)):
            if part is lookup.sum and use.node.op in SHAPE_READERS:
                continue  # it may as well read the result
            if use.node.name in served:
                continue
            if use.node.name not in chain and only_leads_to(graph, use.node.name, chain) is None:
                return f"{use.node.op} '{use.node.name}'"
    return None

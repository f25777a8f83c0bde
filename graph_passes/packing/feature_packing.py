"""K-Packing for features: what is done to features before rows are looked up becomes one op."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from graph_passes.analysis.control_flow import Context, contexts
from graph_passes.analysis.devices import device_type, home_task, task_of
from graph_passes.analysis.reachability import hidden_successors
from graph_passes.ir import Graph
from graph_passes.ir.op_defs import PACKED_TRANSFORMS, has_kernel
from graph_passes.packing.feature_emit import emit_transforms, leaves_as
from graph_passes.pipeline.base import Declined, Packed, Pass, PassContext, PassReport, PassResult
from graph_passes.rewrite.grouping import form_groups
from graph_passes.rewrite.transforms import ANCHORS, OTHERS, Finder, Transform, table_sizes, worth_while


@dataclass(frozen=True)
class PlaceKey:
    """What transforms of one pack share: device, branch or loop."""

    device: str
    context: Context


@dataclass(frozen=True)
class FeaturePacking(Pass):
    """Packs hashes, lookups in hash tables, buckets, remainders and masks into `Picasso>PackedTransforms`.

    What is computed element by element from one tensor and from scalars is the program of that tensor, the feature. All
    programs of one level become one op, which writes what others read of them; strings never leave it. The pair of
    Where and GatherNd, which makes a dense feature sparse, is part of a program too.

    Before:
        graph {feeds = [], fetches = [a, b], preserve = []}
        name = _Arg() {T = string, index = 0} @ /device:CPU:0 -> <?>
        age = _Arg() {T = float32, index = 1} @ /device:CPU:0 -> <?,1>
        a = StringToHashBucketFast(name) {num_buckets = 100} @ /device:CPU:0 -> <?>
        buckets = Bucketize(age) {T = float32, boundaries = [18.0, 65.0]} @ /device:CPU:0 -> <?,1>
        b = Cast(buckets) {DstT = int64, SrcT = int32, Truncate = false} @ /device:CPU:0 -> <?,1>
    After:
        graph {feeds = [], fetches = [a, b], preserve = []}
        age = _Arg() {T = float32, index = 1} @ /device:CPU:0 -> <?,1>
        name = _Arg() {T = string, index = 0} @ /device:CPU:0 -> <?>
        picasso/feature_packing/a = Picasso>PackedTransforms(age, name) {boundaries = [18.0, 65.0], feature_instructions = [2, 1], feature_names = ["buckets", "a"], feature_types = [float32, string], num_tables = 0, output_feature = [0, 1], output_types = [int64, int64], output_value = ["v1", "v0"], program = ["bucketize x 0 2", "cast v0 int64", "hash_fast x 100"], scalar_types = []} @ /device:CPU:0 -> <?,1>, <?>
        a = Identity(picasso/feature_packing/a:1) {T = int64} @ /device:CPU:0 -> <?>
        b = Identity(picasso/feature_packing/a) {T = int64} @ /device:CPU:0 -> <?,1>
    """  # noqa: E501

    name: ClassVar[str] = "feature_packing"

    def run(self, graph: Graph, context: PassContext) -> PassResult:
        report = PassReport(self.name)
        report.declined += [Declined("no_instruction", node.name) for node in graph.of(*OTHERS)]
        if not graph.of(*ANCHORS):
            return PassResult(graph, report)
        keys = _keys(graph)
        found, level = _candidates(graph, keys)
        sizes = table_sizes(graph, found)
        home = home_task(graph)
        for node in graph.of(*ANCHORS):
            declined = _why_not(graph, node.name, found, home)
            if declined is not None:
                report.declined.append(declined)
        groups = form_groups(
            [found[name] for name in sorted(found) if task_of(found[name].node.device) == home],
            level_of=lambda transform: level[transform.node.name],
            key_of=lambda transform: keys[transform.node.name],
        )
        for group in groups:
            names = {transform.node.name for transform in group.members}
            members = [transform for name, transform in found.items() if name in names]  # upstream ones first
            if len(members) == 1:
                report.declined.append(Declined("single_transform", members[0].node.name))
            elif not context.take_fuel():
                report.declined += [Declined("out_of_fuel", name) for name in sorted(names)]
            else:
                graph, packed = emit_transforms(graph, members, sizes)
                report.packed.append(Packed(packed, tuple(sorted(names)), kind="transform"))
        return PassResult(graph, report)


def _keys(graph: Graph) -> dict[str, PlaceKey]:
    around = contexts(graph)
    return {name: PlaceKey(node.device, around.get(name, frozenset())) for name, node in graph.nodes.items()}


def _candidates(graph: Graph, keys: dict[str, PlaceKey]) -> tuple[dict[str, Transform], dict[str, int]]:
    """What can be packed, upstream ones first, and its levels. Strings that something else reads are not computed."""
    banned: set[str] = set()
    while True:
        found = worth_while(Finder(graph, lambda a, b: keys[a] == keys[b], banned).found)
        level = _levels(graph, found, keys)
        hidden = hidden_successors(graph, level) & found.keys()
        bad = {name for name in found if leaves_as(graph, found, level, name) == "string"} | hidden
        if not bad:
            return found, level
        banned |= bad


def _levels(graph: Graph, found: dict[str, Transform], keys: dict[str, PlaceKey]) -> dict[str, int]:
    """How many packs lie on the longest path to each node, the node's own included.

    A path from one pack into another one, or back into the same, leads through a higher level, so that merging all
    transforms of each level and place, for all at once, forms no cycle.
    """
    packed = found.keys() | table_sizes(graph, found)
    level: dict[str, int] = {}
    for node in graph.topological:
        mine = node.name in packed
        level[node.name] = int(mine)
        for name in node.predecessors():
            apart = mine and not (name in packed and keys[name] == keys[node.name])
            level[node.name] = max(level[node.name], level.get(name, 0) + apart)
    return level


def _why_not(graph: Graph, name: str, found: dict[str, Transform], home: str) -> Declined | None:
    """The reason why an anchor can be in no pack, or None. A gather by other indices is no transform at all."""
    node = graph.nodes[name]
    if node.op == "GatherNd" and name not in found:
        return None
    if task_of(node.device) != home:
        return Declined("remote_device", name, f"picasso-tf may not be loaded in '{task_of(node.device)}'.")
    kind = device_type(node.device) or "CPU"
    if not has_kernel(PACKED_TRANSFORMS, kind):
        return Declined("no_kernel", name, f"This build has no packed transforms for {kind}.")
    return None if name in found else Declined("not_elementwise", name)

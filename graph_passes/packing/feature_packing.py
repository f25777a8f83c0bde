"""K-Packing for features: what is done to features before rows are looked up becomes one op."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import ClassVar

from graph_passes.analysis.control_flow import Context, contexts
from graph_passes.analysis.devices import home_task, task_of
from graph_passes.analysis.reachability import hidden_successors
from graph_passes.ir import CONTROL, Graph, Node
from graph_passes.ir.op_defs import PACKED_TRANSFORMS
from graph_passes.packing.feature_emit import emit_transforms, leaves_as
from graph_passes.packing.placement import no_home
from graph_passes.pipeline.base import Declined, Packed, Pass, PassContext, PassReport, PassResult
from graph_passes.rewrite.grouping import Group, form_groups
from graph_passes.rewrite.parsed_features import OPS as PARSERS
from graph_passes.rewrite.parsed_features import has_unread_features
from graph_passes.rewrite.transform_rules import ANCHORS, OTHERS, RULES
from graph_passes.rewrite.transforms import Finder, Transform, is_read_outside, table_sizes, worth_while


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
        picasso/feature_packing/a = Picasso>PackedTransforms(age, name) {boundaries = [18.0, 65.0], feature_instructions = [2, 1], feature_names = ["buckets", "a"], feature_types = [float32, string], num_tables = 0, other_types = [], output_feature = [0, 1], output_types = [int64, int64], output_value = ["v1", "v0"], program = ["bucketize x 0 2", "cast v0 int64", "hash_fast x 100"], scalar_types = [], texts = []} @ /device:CPU:0 -> <?,1>, <?>
        a = Identity(picasso/feature_packing/a:1) {T = int64} @ /device:CPU:0 -> <?>
        b = Identity(picasso/feature_packing/a) {T = int64} @ /device:CPU:0 -> <?,1>
    """  # noqa: E501

    name: ClassVar[str] = "feature_packing"

    def run(self, graph: Graph, context: PassContext) -> PassResult:
        report = PassReport(self.name)
        report.declined += [Declined(OTHERS[node.op], node.name) for node in graph.of(*OTHERS)]
        parsers = [node for node in graph.of(*PARSERS) if has_unread_features(graph, node)]
        report.declined += [Declined("parsed_unread", node.name) for node in parsers]
        if not graph.of(*ANCHORS):
            return PassResult(graph, report)
        home = home_task(graph)
        found, sizes, groups = _groups(graph, home)
        report.declined += [d for node in graph.of(*ANCHORS, "StringJoin") if (d := _why_not(graph, node, found, home))]
        while group := next((group for group in groups if len(group.members) > 1), None):
            names = {transform.node.name for transform in group.members}
            if not context.take_fuel():
                names = {transform.node.name for group in groups for transform in group.members}
                report.declined += [Declined("out_of_fuel", name) for name in sorted(names)]
                return PassResult(graph, report)
            members = [transform for name, transform in found.items() if name in names]  # upstream ones first
            graph, packed = emit_transforms(graph, members, sizes)
            report.packed.append(Packed(packed, tuple(sorted(names)), kind="transform"))
            found, sizes, groups = _groups(graph, home)  # the others may read what the packed op now gives
        report.declined += [Declined("single_transform", group.members[0].node.name) for group in groups]
        return PassResult(graph, report)


def _groups(graph: Graph, home: str) -> tuple[dict[str, Transform], set[str], list[Group[Transform]]]:
    """What can be packed, upstream ones first; see `table_sizes`; and the groups that it falls into."""
    keys = _keys(graph)
    found, sizes, level = _candidates(graph, keys)
    return (
        found,
        sizes,
        form_groups(
            [found[name] for name in sorted(found) if task_of(found[name].node.device) == home],
            level_of=lambda transform: level[transform.node.name],
            key_of=lambda transform: keys[transform.node.name],
        ),
    )


def _keys(graph: Graph) -> dict[str, PlaceKey]:
    around = contexts(graph)
    nodes = graph.of(*RULES, "LookupTableSizeV2")
    return {node.name: PlaceKey(node.device, around.get(node.name, frozenset())) for node in nodes}


def _candidates(graph: Graph, keys: dict[str, PlaceKey]) -> tuple[dict[str, Transform], set[str], dict[str, int]]:
    """What can be packed, upstream ones first, sizes of tables that go with it, and levels.

    Strings that something else reads are not computed. A transform that is packed after what it reads begins a program
    of its own. Either changes what can be found, so it is found anew until nothing changes.
    """
    nodes = [node for node in graph.canonical() if node.op in RULES]
    banned: set[str] = set()
    apart: set[tuple[str, str]] = set()

    def together(one: str, other: str) -> bool:
        return keys[one] == keys[other] and (one, other) not in apart

    while True:
        found = worth_while(graph, Finder(graph, nodes, together, banned).found)
        sizes = table_sizes(graph, found, banned)
        level = _levels(graph, found.keys() | sizes, together)
        bad = hidden_successors(graph, level) & found.keys()
        bad |= {name for name in found if leaves_as(graph, found, level, name) == "string"}
        reads = {
            (name, use.node.name)
            for name in found.keys() | sizes
            for use in graph.uses(name)
            if use.index != CONTROL and use.node.name in found
        }
        cut = {(name, reader) for name, reader in reads if (level[name], keys[name]) != (level[reader], keys[reader])}
        bad |= {name for name, _ in cut} & sizes
        if bad <= banned and cut <= apart:
            return found, sizes, level
        banned.update(bad)
        apart.update(cut)


def _levels(graph: Graph, packed: Collection[str], together: Callable[[str, str], bool]) -> dict[str, int]:
    """How many packs lie on the longest path to each node, the node's own included.

    A path from one pack into another one, or back into the same, leads through a higher level, so that merging all
    nodes to be `packed` of each level and place, for all at once, forms no cycle.
    """
    level: dict[str, int] = {}
    for node in graph.topological:
        mine = node.name in packed
        level[node.name] = int(mine)
        for name in node.predecessors():
            apart = mine and not (name in packed and together(name, node.name))
            level[node.name] = max(level[node.name], level.get(name, 0) + apart)
    return level


def _why_not(graph: Graph, node: Node, found: dict[str, Transform], home: str) -> Declined | None:
    """The reason why an anchor, or a join of strings, can be in no pack, or None.

    A gather by other indices is no transform at all; what is a scalar is no feature; what nobody reads is none to pack.
    """
    name = node.name
    is_none = node.op == "GatherNd" or node.output_shape().rank == 0 or not is_read_outside(graph, name, ())
    if name not in found and is_none:
        return None
    declined = no_home(name, PACKED_TRANSFORMS, home, node)
    if declined is not None:
        return declined
    code = "strings_leave" if node.op == "StringJoin" else "not_elementwise"
    return None if name in found else Declined(code, name)

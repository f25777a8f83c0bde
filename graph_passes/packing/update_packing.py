"""The optimizer's update of all tables becomes one op per rule, sparse or dense."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from graph_passes.analysis.control_flow import Context, contexts
from graph_passes.analysis.devices import device_type, home_task, task_of
from graph_passes.analysis.tables import table_of
from graph_passes.analysis.update_expressions import STATE, Expressions, Program
from graph_passes.analysis.update_rules import rule_name
from graph_passes.errors import ConfigError
from graph_passes.ir import DType, Graph, Node, TensorRef
from graph_passes.ir.op_defs import PACKED_DENSE_UPDATE, PACKED_SPARSE_UPDATE, has_kernel
from graph_passes.packing.update_clusters import Cluster, Clusters
from graph_passes.packing.update_emit import emit_update
from graph_passes.packing.update_legality import Legality
from graph_passes.pipeline.base import Declined, Packed, Pass, PassContext, PassReport, PassResult
from graph_passes.rewrite.grouping import Group, form_groups
from graph_passes.rewrite.statement import NotPackable, Statement
from graph_passes.rewrite.update_statements import StatementReader, written


@dataclass(frozen=True)
class UpdateKey:
    """What updates of one pack share: device, dtype, branch or loop, and what is done with each row."""

    device: str
    dtype: DType
    context: Context
    program: Program


@dataclass(frozen=True)
class UpdatePacking(Pass):
    """Packs optimizer updates into `Picasso>PackedSparseUpdate` and `Picasso>PackedDenseUpdate`.

    Each write of a variable is traced back to the gradient, the slots and the scalars that it is made from. Writes that
    share variables form a cluster, a cluster is turned into a program, and all clusters with the same program become one
    op. Where every write touches only rows that some id names, that op visits those rows alone; a rule that changes other
    rows too, such as Adam's decay, visits them all, but never makes a gradient dense.

    Args:
        max_group_size: the most tables in one pack; None: no limit.
        row_only: leave rows alone that no id names, whatever the rule does with them. This changes what is learned: slots
            of such rows keep their values instead of decaying, and so do the rows. Tables that also have a gradient for
            every row, such as that of a regularizer, are updated as they were.

    Before:
        graph {feeds = [], fetches = [], preserve = []}
        table = _Arg() {T = resource, _handle_dtypes = [float32], _handle_shapes = [<10,4>], index = 0} @ /device:CPU:0
        ids = _Arg() {T = int32, index = 1} @ /device:CPU:0 -> <?>
        gradient = _Arg() {T = float32, index = 2} @ /device:CPU:0 -> <?,4>
        rate = _Arg() {T = float32, index = 3} @ /device:CPU:0 -> <>
        step = Mul(gradient, rate) {T = float32} @ /device:CPU:0 -> <?,4>
        update = ResourceScatterSub(table, ids, step) {Tindices = int32, dtype = float32} @ /device:CPU:0
    After:
        graph {feeds = [], fetches = [], preserve = []}
        table = _Arg() {T = resource, _handle_dtypes = [float32], _handle_shapes = [<10,4>], index = 0} @ /device:CPU:0
        ids = _Arg() {T = int32, index = 1} @ /device:CPU:0 -> <?>
        gradient = _Arg() {T = float32, index = 2} @ /device:CPU:0 -> <?,4>
        rate = _Arg() {T = float32, index = 3} @ /device:CPU:0 -> <>
        step = Mul(gradient, rate) {T = float32} @ /device:CPU:0 -> <?,4>
        picasso/update_packing/update = Picasso>PackedSparseUpdate(table, ids, gradient, rate) {drop_negative = false, dtype = float32, ids_types = [int32], num_gradients = 1, num_parameters = 1, num_row_gradients = 1, num_scalars = 1, num_states = 1, num_table_gradients = 0, num_variables = 1, program = ["mul p0 g0", "scatter_sub s0 v0"], results = ["v1"], rule = "SGD, sparse gradient (Keras 3)", segment_column = [-1], segment_columns = [0], segment_first = [0], segment_gradients = [0], segment_ids = [0], segment_narrow = [false], segment_pitch = [0], segment_span = [0], segment_table = [0], segment_wrap = [0], table_gradients = [], table_names = ["update"], table_parameters = [0], table_variables = [0]} @ /device:CPU:0
    """  # noqa: E501

    max_group_size: int | None = None
    row_only: bool = False

    name: ClassVar[str] = "update_packing"

    def __post_init__(self) -> None:
        if self.max_group_size is not None and self.max_group_size < 2:
            raise ConfigError(f"`max_group_size` must be >= 2. Received: `max_group_size={self.max_group_size}`.")

    def run(self, graph: Graph, context: PassContext) -> PassResult:
        report = PassReport(self.name)
        around, expressions = contexts(graph), Expressions()
        statements = _statements(graph, expressions, around, report)
        if not statements:
            return PassResult(graph, report)
        found = Clusters(graph, expressions, around, statements)
        clusters, declined = Legality(found).settle(found.form())
        report.declined += declined
        levels, cyclic = found.levels(clusters)
        clusters = [cluster for cluster in clusters if cluster not in cyclic]
        report.declined += [Declined("would_form_cycle", name) for cluster in cyclic for name in _names(cluster)]
        groups = form_groups(
            clusters,
            level_of=lambda cluster: levels[cluster.name],
            key_of=lambda cluster: _key(cluster, around),
            max_size=self.max_group_size,
        )
        gone: dict[str, str] = {}
        for group in groups:
            members, others = _of_distinct_variables(group)
            report.declined += [Declined("shared_variable", name) for cluster in others for name in _names(cluster)]
            names = tuple(name for cluster in members for name in _names(cluster))
            if reason := _no_gain(members):
                report.declined += [Declined(reason, name) for name in names]
            elif not context.take_fuel():
                report.declined += [Declined("out_of_fuel", name) for name in names]
            else:
                program = members[0].program
                assert program is not None
                sparse = program.sparse or (self.row_only and _has_ids_only(members[0]))
                rule = rule_name(program)
                graph, packed = emit_update(graph, members, rule, sparse, gone)
                gone |= dict.fromkeys(names, packed)
                report.packed.append(Packed(packed, names, kind="update", rule=rule or str(program)))
        report.declined.sort(key=lambda item: item.node)
        return PassResult(graph, report)


def _statements(
    graph: Graph, expressions: Expressions, around: dict[str, Context], report: PassReport
) -> list[Statement]:
    """The writes that can be read as updates; the others are reported."""
    candidates = written(graph)
    states = frozenset(table_of(graph, ref).root for node in candidates for ref in _handles(graph, node))
    for any_order in (True, False):
        declined: list[Declined] = []
        reader = StatementReader(graph, expressions, around, states, any_order)
        statements = _readable(graph, candidates, reader, expressions, declined)
        # Statements that share variables must agree on their ids, so all are read anew.
        if not any(reader.needs_order(statement) for statement in statements):
            break
    report.declined += declined
    return statements


def _readable(
    graph: Graph,
    candidates: Sequence[Node],
    reader: StatementReader,
    expressions: Expressions,
    declined: list[Declined],
) -> list[Statement]:
    """The candidates that can be read as updates; the others are added to `declined`."""
    home = home_task(graph)
    statements = []
    for node in candidates:
        kind = device_type(node.device) or "CPU"
        try:
            if task_of(node.device) != home:
                raise NotPackable("remote_device", f"picasso-tf may not be loaded in '{task_of(node.device)}'.")
            if not has_kernel(PACKED_SPARSE_UPDATE, kind) or not has_kernel(PACKED_DENSE_UPDATE, kind):
                raise NotPackable("no_kernel", f"This build has no packed update for {kind}.")
            statement = reader.read(node)
            if _only_assigns(statement, expressions):
                continue
        except NotPackable as reason:
            declined.append(Declined(reason.code, node.name, reason.detail))
        else:
            statements.append(statement)
    return statements


def _only_assigns(statement: Statement, expressions: Expressions) -> bool:
    """Whether a variable is given a value without arithmetic on an old one: its first, or one that was kept."""
    (write, *more) = statement.writes
    if more or write.op != "assign":
        return False
    return not expressions[write.value].args or not expressions.leaves([write.value], STATE)


def _handles(graph: Graph, node: Node) -> list[TensorRef]:
    return [ref for ref in node.inputs if graph.dtype_of(ref) == "resource"]


def _has_ids_only(cluster: Cluster) -> bool:
    """Whether ids name all rows that have a gradient."""
    return cluster.ids is not None and cluster.binding is not None and not cluster.binding.tables


def _names(cluster: Cluster) -> list[str]:
    return [statement.node.name for statement in cluster.statements]


def _key(cluster: Cluster, around: dict[str, Context]) -> UpdateKey:
    node, program = cluster.node, cluster.program
    assert program is not None
    return UpdateKey(node.device, cluster.dtype, around.get(node.name, frozenset()), program)


def _of_distinct_variables(group: Group[Cluster]) -> tuple[list[Cluster], list[Cluster]]:
    """The members of a group without those that read or write a variable which an earlier one has."""
    taken: set[str] = set()
    members: list[Cluster] = []
    others: list[Cluster] = []
    for cluster in group.members:
        states = cluster.binding.states if cluster.binding is not None else ()
        (others if taken.intersection(states) else members).append(cluster)
        taken.update(states)
    return members, others


def _no_gain(members: Sequence[Cluster]) -> str:
    """The code of why one op would be no better than what is there, or ""."""
    program = members[0].program
    assert program is not None
    if len(members) == 1 and len(program.instructions) <= 2 and not program.sparse:
        return "single_update"
    return ""

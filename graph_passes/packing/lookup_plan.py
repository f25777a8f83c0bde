"""What one packed lookup will do: which ids it reads, what it writes, which nodes it replaces. It changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from graph_passes.analysis.constants import scalar
from graph_passes.analysis.control_flow import Context
from graph_passes.analysis.tables import Lookup
from graph_passes.ir import CONTROL, DType, Graph, Node, Shape, TensorRef, Use, product
from graph_passes.rewrite.ids import RESHAPES, IdsSource, trace_ids


@dataclass(frozen=True)
class LookupKey:
    """What lookups of one pack share: device, dtype of the rows, branch or loop."""

    device: str
    dtype: DType
    context: Context


@dataclass
class Surroundings:
    """Level and control flow context of every node; kept up to date while groups are packed one after the other."""

    levels: dict[str, int]
    contexts: dict[str, Context]

    def before(self, name: str, level: int) -> bool:
        """Whether a node lies before every lookup of `level`. Nodes that a pack just added do not count as such."""
        return self.levels.get(name, level) < level

    def context(self, name: str) -> Context:
        return self.contexts.get(name, frozenset())

    def add(self, name: str, level: int, like: str) -> None:
        """Registers a packed node of `level` in the context of node `like`."""
        self.levels[name] = level
        if like in self.contexts:
            self.contexts[name] = self.contexts[like]


class HasRows(Protocol):
    """A lookup of any kind."""

    def row_shape(self, graph: Graph) -> Shape:
        """Static shape of one row of the table."""


class Piece(NamedTuple):
    """One input of a concatenation: member `lookup`, or the tensor `dense` that passes through (lookup is -1)."""

    lookup: int
    dense: TensorRef | None
    width: int


@dataclass
class Join:
    """A ConcatV2 or Pack whose result the packed op writes itself.

    Attributes:
        node: the node.
        pieces: what its rows consist of.
        shape: shape of its result, at most one dimension unknown.
    """

    node: Node
    pieces: list[Piece]
    shape: Shape


@dataclass
class View:
    """A tensor that holds exactly the result of one lookup: the gather's own output or a reshape of it."""

    ref: TensorRef
    lookup: int
    shape: Shape
    shape_uses: list[Use] = field(default_factory=list)


@dataclass
class GroupPlan:
    """All that `emit` needs to know.

    Attributes:
        lookups: the members.
        sources: where each member's ids are read.
        joins: concatenations to write into.
        views: per member, the gather's output and its reshapes.
        separate: members whose result some node reads by itself get an output of their own, of this shape; its rank is
            unknown when more than one dimension or the row's size is, then the op takes it from the ids and the table.
        controls: names that the packed op must wait for.
        notes: (node, sentence) for the report.
    """

    lookups: Sequence[Lookup]
    sources: list[IdsSource]
    joins: list[Join]
    views: list[list[View]]
    separate: dict[int, Shape]
    controls: list[str]
    notes: list[tuple[str, str]]


def plan_group(graph: Graph, lookups: Sequence[Lookup], level: int, around: Surroundings) -> GroupPlan:
    """Plans the pack of `lookups`, which cannot reach each other.

    Args:
        graph: the graph.
        lookups: members, sorted by name.
        level: their level; only nodes of a lower level may become inputs of the pack.
        around: levels and contexts of the graph.
    """
    context = around.context(lookups[0].node.name)
    views = [_views(graph, index, lookup, level, around) for index, lookup in enumerate(lookups)]
    by_ref = {view.ref: view for member in views for view in member}
    joins: dict[str, Join] = {}
    notes: list[tuple[str, str]] = []
    for node in join_candidates(graph, by_ref):
        if around.context(node.name) != context or node.device != lookups[0].node.device:
            notes.append((node.name, "It is in another branch or on another device, so it is left as it is."))
            continue
        join = find_join(graph, node, lookups, by_ref, level, around)
        if isinstance(join, Join):
            joins[node.name] = join
        else:
            notes.append((node.name, join))
    separate = {
        index: _own_shape(graph, lookups[index])
        for index, member in enumerate(views)
        if _needs_output(graph, member, joins)
    }
    sources = []
    for index, lookup in enumerate(lookups):
        shape_stated = index not in separate or separate[index].dims is not None
        source = trace_ids(graph, lookup.ids, through_layout=shape_stated)
        assert source is not None, "lookups with other ids were declined"
        sources.append(source)
    waits_for = [lookup.node for lookup in lookups] + [join.node for join in joins.values()]
    waits_for += [graph.producer(v.ref) for i, member in enumerate(views) if i not in separate for v in member[1:]]
    controls = list(dict.fromkeys(name for node in waits_for for name in node.controls))
    return GroupPlan(lookups, sources, list(joins.values()), views, separate, controls, notes)


def _own_shape(graph: Graph, lookup: Lookup) -> Shape:
    """The shape of an output with nothing but this lookup: see `GroupPlan.separate`."""
    return _template(lookup.node.output_shape()) if lookup.row_shape(graph).elements() else Shape(None)


def _template(shape: Shape) -> Shape:
    """The shape when at most one dimension is unknown, else an unknown rank."""
    return shape if shape.dims is not None and shape.unknown_dims <= 1 else Shape(None)


def _views(graph: Graph, index: int, lookup: Lookup, level: int, around: Surroundings) -> list[View]:
    """The gather's output and everything that merely reshapes it."""
    found = [View(TensorRef(lookup.node.name), index, lookup.node.output_shape())]
    context = around.context(lookup.node.name)
    for view in found:  # grows while it is walked
        for use in graph.uses_of(view.ref):
            node = use.node
            if node.name in graph.kept:
                continue
            if node.op in ("Shape", "ShapeN") and not node.controls and _template(view.shape).dims is not None:
                view.shape_uses.append(use)
            elif use.index == 0 and _is_reshape(node, lookup) and all(around.before(c, level) for c in node.controls):
                if around.context(node.name) != context:  # it is dead when its branch is not taken, a pack is not
                    continue
                found.append(View(TensorRef(node.name), index, node.output_shape()))
    return found


def _is_reshape(node: Node, lookup: Lookup) -> bool:
    return (node.op in RESHAPES or node.op == "Identity") and node.device == lookup.node.device


def join_candidates(graph: Graph, views: dict[TensorRef, View]) -> list[Node]:
    """The concatenations that read one of the views, by name."""
    found = {}
    for ref in views:
        for use in graph.uses_of(ref):
            if use.node.op == "Pack" or (use.node.op == "ConcatV2" and use.index < len(use.node.inputs) - 1):
                found[use.node.name] = use.node
    return [found[name] for name in sorted(found)]


def find_join(
    graph: Graph,
    node: Node,
    lookups: Sequence[HasRows],
    views: dict[TensorRef, View],
    level: int,
    around: Surroundings,
) -> Join | str:
    """How to write the result of a concatenation directly, or a sentence that says why not.

    Args:
        graph: the graph.
        node: a ConcatV2 or Pack.
        lookups: the members of a pack.
        views: tensors that hold the result of a member.
        level: of the members.
        around: levels and contexts of the graph.
    """
    shape = _template(node.output_shape())
    if shape.dims is None:
        return "More than one dimension of the concatenation is unknown."
    axis = scalar(graph, node.inputs[-1]) if node.op == "ConcatV2" else node.attr("axis", 0)
    if axis is None or node.name in graph.fed:
        return "The axis of the concatenation is not a constant, or its result is fed."
    axis = int(axis) + (len(shape.dims) if axis < 0 else 0)
    if not all(around.before(name, level) for name in node.controls):
        return "It waits for something that depends on a lookup of the same pack."
    pieces = []
    for ref in node.inputs[:-1] if node.op == "ConcatV2" else node.inputs:
        view = views.get(ref)
        dims = (graph.shape(ref) if view is None else view.shape).dims
        width = None if dims is None else product(dims[axis:])
        if not width:
            return f"The row width of its input '{ref}' is not known."
        if node.op == "ConcatV2" and not _same_rows(dims or (), shape.dims, axis):
            return f"The shape of its input '{ref}' does not fit the others."
        if view is not None:
            row = lookups[view.lookup].row_shape(graph).elements()
            if not row or width % row:
                return f"The rows of '{ref}' do not hold whole table rows."
            pieces.append(Piece(view.lookup, None, width))
        elif around.before(ref.node, level):
            pieces.append(Piece(-1, ref, width))
        else:
            return f"Its input '{ref}' depends on a lookup of the same pack."
    return Join(node, pieces, shape)


def _same_rows(one: tuple[int | None, ...], other: tuple[int | None, ...], axis: int) -> bool:
    """Whether two shapes can agree before `axis`; stock's own error comes where they do not."""
    pairs = zip(one[:axis], other[:axis], strict=False)
    return len(one) == len(other) and all(None in pair or len(set(pair)) == 1 for pair in pairs)


def _needs_output(graph: Graph, member: list[View], joins: dict[str, Join]) -> bool:
    """Whether something besides the joins, reshapes and shape reads uses the result of a lookup."""
    inner = {view.ref.node for view in member}
    if member[0].ref.node in graph.kept_for_data:
        return True
    joined = False
    for view in member:
        shapes = {use.node.name for use in view.shape_uses}
        for use in graph.uses_of(view.ref):
            if use.node.name in joins:
                joined = True
            elif use.node.name not in inner and use.node.name not in shapes and use.index != CONTROL:
                return True
    return not joined

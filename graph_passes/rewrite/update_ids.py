"""Which rows an update touches: the ids behind the indices of a scatter, seen through Keras 3's guarded division."""

from __future__ import annotations

from typing import NamedTuple

from graph_passes.analysis.constants import constant, scalar
from graph_passes.analysis.control_flow import Context
from graph_passes.ir import Graph, Node, TensorRef, parse_ref
from graph_passes.rewrite.ids import IdsSource, trace_ids

_INTS = ("int32", "int64")


class UpdateIds(NamedTuple):
    """The ids of one update, as a graph gives them.

    Attributes:
        segments: where they are read, one after the other.
        joined: whether they were concatenated; gradient rows then come in the same parts.
        ref: all of them as one tensor.
        fill: of pooled ids, the row that stands for what has no id once negative ones are left out; -1: all ids count.
    """

    segments: tuple[IdsSource, ...]
    joined: bool
    ref: TensorRef
    fill: int = -1

    def agrees(self, other: UpdateIds) -> bool:
        """Whether both name the same rows, in the same order."""
        return (self.segments, self.fill) == (other.segments, other.fill)

    def whole(self, graph: Graph) -> UpdateIds:
        """The same ids in one segment."""
        source = trace_ids(graph, self.ref, through_layout=True)
        assert source is not None, "ids with other dtypes were refused"
        return UpdateIds((source,), False, self.ref)


class Guards:
    """Conditionals that Keras 3 puts around the division of sparse by dense values.

    Where the divisor holds a zero or a NaN anywhere, the quotient is made for more rows than the ids name; else, in the
    false branch, for those. A divisor of an optimizer is a root plus epsilon, so that the true branch is only taken
    once NaNs have spread. A packed update does what the false branch does.

    Args:
        graph: the graph.
        contexts: see `graph_passes.analysis.control_flow.contexts`.
        innermost: where distinct ids are made distinct again, which changes nothing, whether ids are those before the
            first time, or before the last.
    """

    def __init__(self, graph: Graph, contexts: dict[str, Context], innermost: bool = True):
        self._graph = graph
        self._contexts = contexts
        self.innermost = innermost
        self.predicates: dict[TensorRef, None] = {}

    def through(self, ref: TensorRef) -> TensorRef | None:
        """What a Merge or a Switch gives when the false branch is taken; None for any other node."""
        node = self._graph.producer(ref)
        if node.name in self._graph.fed:
            return None
        if node.op == "Merge" and ref.port == 0 and len(node.inputs) == 2:
            return self._false_branch(node)
        if node.op == "Switch" and ref.port == 0 and node.inputs[1] in self.predicates:
            return node.inputs[0]
        return None

    def number(self, ref: TensorRef) -> float | None:
        """The value of a constant scalar, also of one that is cut out of a constant that comes through a guard."""
        value = scalar(self._graph, ref)
        node = self._graph.producer(ref)
        if value is not None or node.op != "StridedSlice" or node.name in self._graph.fed:
            return value
        begin = constant(self._graph, node.inputs[1])
        source = node.inputs[0]
        while (inner := self.through(source) or self._through_identity(source)) is not None:
            source = inner
        vector = constant(self._graph, source)
        if vector is None or begin is None or vector.ndim != 1 or len(begin) != 1 or node.attr("shrink_axis_mask") != 1:
            return None
        return vector[begin[0]].item() if -len(vector) <= begin[0] < len(vector) else None

    def _through_identity(self, ref: TensorRef) -> TensorRef | None:
        node = self._graph.producer(ref)
        return node.inputs[0] if node.op == "Identity" and node.name not in self._graph.fed else None

    def _false_branch(self, merge: Node) -> TensorRef | None:
        outer = self._contexts.get(merge.name, frozenset())
        for ref in merge.inputs:
            inner = self._contexts.get(ref.node, frozenset()) - outer
            for kind, side in sorted(inner, key=str):
                predicate = _predicate(self._graph, kind) if side == 0 else None
                if predicate is not None and self.divisor(predicate) is not None:
                    self.predicates[predicate] = None
                    return ref
        return None

    def divisor(self, predicate: TensorRef) -> TensorRef | None:
        """The tensor whose zeros and NaNs a predicate looks for, when it is one that holds none."""
        node = self._graph.producer(predicate)
        while node.op in ("Any", "Identity"):
            node = self._graph.producer(node.inputs[0])
        if node.op != "LogicalOr":
            return None
        tests = {self._graph.producer(ref).op: self._graph.producer(ref) for ref in node.inputs}
        if set(tests) != {"Equal", "IsNan"}:
            return None
        divisor = tests["IsNan"].inputs[0]
        others = [ref for ref in tests["Equal"].inputs if ref != divisor]
        if len(others) != 1 or scalar(self._graph, others[0]) != 0:
            return None
        return divisor if _has_epsilon(self._graph, divisor) else None


def _predicate(graph: Graph, kind: str) -> TensorRef | None:
    """The tensor that a branch of `contexts` is named after."""
    name = kind.removeprefix("branch ")
    if name == kind:
        return None
    ref = parse_ref(name)
    return ref if ref.node in graph.nodes else None


def _has_epsilon(graph: Graph, ref: TensorRef, depth: int = 6) -> bool:
    """Whether a positive constant is added somewhere in the arithmetic that leads to a tensor."""
    node = graph.producer(ref)
    if not depth or node.op not in ("AddV2", "Add", "Sub", "Sqrt", "Identity", "Switch"):
        return False
    if node.op in ("AddV2", "Add") or node.op == "Sub":
        constants = [scalar(graph, item) for item in (node.inputs if node.op != "Sub" else node.inputs[:1])]
        if any(value is not None and value > 0 for value in constants):
            return True
    return any(_has_epsilon(graph, item, depth - 1) for item in node.inputs)


def trace_update_ids(graph: Graph, ref: TensorRef, guards: Guards) -> tuple[UpdateIds, Node | None] | None:
    """The ids behind the indices of an update.

    Returns:
        The ids, and the Unique node after them when the indices are its distinct values; None when they are no
        integers.
    """
    ref = through_casts(graph, ref, guards)
    unique = None
    node = graph.producer(ref)
    while node.op in ("Unique", "UniqueV2") and ref.port == 0 and node.name not in graph.fed:
        if unique is not None and not guards.innermost:
            break
        unique = node
        ref = through_casts(graph, node.inputs[0], guards)
        node = graph.producer(ref)
    joined = node.op == "ConcatV2" and node.name not in graph.fed and scalar(graph, node.inputs[-1]) in (0, -1)
    joined = joined and graph.shape(ref).rank == 1
    parts = node.inputs[:-1] if joined else (ref,)
    sources = [trace_ids(graph, part, through_layout=True) for part in parts]
    if any(source is None for source in sources):
        return None
    return UpdateIds(tuple(source for source in sources if source is not None), joined, ref), unique


def through_casts(graph: Graph, ref: TensorRef, guards: Guards) -> TensorRef:
    """The ids that a tensor holds, before they were widened or passed on."""
    while True:
        node = graph.producer(ref)
        branch = guards.through(ref)
        if branch is not None:
            ref = branch
        elif node.name in graph.fed:
            return ref
        elif node.op == "Identity" or (node.op == "Cast" and _widens(node)):
            ref = node.inputs[0]
        else:
            return ref


def _widens(node: Node) -> bool:
    return node.attr("SrcT") in _INTS and node.attr("DstT") in ("int64", node.attr("SrcT"))

"""Declarative patterns over a graph.

A pattern is a small tree of node patterns. It states, for each node that it matches, what becomes of it: `keep` (others
may use it), or `remove` (the rewrite replaces it, so nothing outside the match may use it). A failed match is data: it
says which node stopped it and why, so that a near miss can be shown. (The idea of fates is TensorFlow's
pattern_utils.h, that of failures as data is onnxscript's rewriter.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from graph_passes.analysis.constants import constant
from graph_passes.ir import CONTROL, Graph, Node, TensorRef

Fate = Literal["keep", "remove"]


@dataclass(frozen=True)
class AnyTensor:
    """Any tensor. The same name twice in a pattern must be the same tensor."""

    name: str


@dataclass(frozen=True)
class Scalar:
    """A constant of rank 0, which broadcasts without a new dimension: of a given value, or bound under a name."""

    name: str = ""
    value: float | None = None


@dataclass(frozen=True)
class Op:
    """One node: its op, the patterns of its inputs, what becomes of it.

    Attributes:
        ops: accepted op types.
        inputs: one pattern per data input.
        name: key of the node in the match.
        fate: "keep" or "remove".
        commutative: the two inputs may come in either order.
        where: a further condition on the node.
    """

    ops: tuple[str, ...]
    inputs: tuple[Pattern, ...]
    name: str = ""
    fate: Fate = "keep"
    commutative: bool = False
    where: Callable[[Node], bool] = field(default=lambda node: True)


Pattern = AnyTensor | Scalar | Op


@dataclass(frozen=True)
class MatchFailure:
    """Why a pattern does not match: a stable code and the node that stopped it."""

    code: str
    node: str


@dataclass
class Match:
    """A successful match.

    Attributes:
        tensors: tensors bound by `AnyTensor`.
        scalars: values bound by `Scalar`.
        nodes: nodes bound by `Op`, those without a name under their own node name.
    """

    tensors: dict[str, TensorRef] = field(default_factory=dict)
    scalars: dict[str, float] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)

    def copy(self) -> Match:
        return Match(dict(self.tensors), dict(self.scalars), dict(self.nodes))


def match(graph: Graph, pattern: Op, ref: TensorRef) -> Match | MatchFailure:
    """Matches `pattern` against the producer of `ref` and what is upstream of it.

    A fed node never matches, since its value is the caller's; nor does one whose fate is `remove` and which has control
    inputs or is used outside the match.
    """
    found = Match()
    to_remove: list[Node] = []
    failure = _match(graph, pattern, ref, found, to_remove)
    if failure is not None:
        return failure
    inside = {node.name for node in found.nodes.values()}
    for node in to_remove[1:]:  # the root's users are the rewrite's to redirect
        if any(use.node.name not in inside or use.index == CONTROL for use in graph.uses(node.name)):
            return MatchFailure("used_elsewhere", node.name)
    return found


def _match(graph: Graph, pattern: Pattern, ref: TensorRef, found: Match, to_remove: list[Node]) -> MatchFailure | None:
    node = graph.producer(ref)
    if isinstance(pattern, AnyTensor):
        bound = found.tensors.setdefault(pattern.name, ref)
        return None if bound == ref else MatchFailure("other_tensor", node.name)
    if isinstance(pattern, Scalar):
        return _match_scalar(graph, pattern, ref, found)
    if node.op not in pattern.ops:
        return MatchFailure("other_op", node.name)
    if node.name in graph.fed or ref.port:
        return MatchFailure("fed_or_port", node.name)
    if len(node.inputs) != len(pattern.inputs) or not pattern.where(node):
        return MatchFailure("attributes", node.name)
    if pattern.fate == "remove":
        if node.controls or node.name in graph.kept:
            return MatchFailure("must_stay", node.name)
        to_remove.append(node)
    found.nodes[pattern.name or node.name] = node
    return _match_inputs(graph, pattern, node, found, to_remove)


def _match_inputs(graph: Graph, pattern: Op, node: Node, found: Match, to_remove: list[Node]) -> MatchFailure | None:
    failure = None
    orders = [node.inputs, node.inputs[::-1]] if pattern.commutative else [node.inputs]
    for inputs in orders:
        attempt, removed = found.copy(), list(to_remove)
        for child, ref in zip(pattern.inputs, inputs, strict=True):
            failure = _match(graph, child, ref, attempt, removed)
            if failure is not None:
                break
        else:
            found.__dict__.update(attempt.__dict__)
            to_remove[:] = removed
            return None
    return failure


def _match_scalar(graph: Graph, pattern: Scalar, ref: TensorRef, found: Match) -> MatchFailure | None:
    value = constant(graph, ref)
    if value is None or value.ndim or (pattern.value is not None and value != pattern.value):
        return MatchFailure("not_the_constant", ref.node)
    if pattern.name:
        found.scalars[pattern.name] = value.item()
    return None

"""Finds what is done to features before rows are looked up, by the rules of `transform_rules`.

Nodes that are computed from one tensor, the feature, and from scalars form its program; `Picasso>PackedTransforms` runs
the programs of many features. A join of strings may read further features, which must have the shape of the first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from graph_passes.analysis.constants import constant
from graph_passes.analysis.devices import device_type
from graph_passes.ir import CONTROL, Graph, Node, TensorRef
from graph_passes.rewrite.transform_rules import ANCHORS, DTYPES, INDICES, JOIN, RULES


class Filled(NamedTuple):
    """A constant of zeros or ones, which has the shape and the dtype of another operand.

    Attributes:
        like: the other operand.
        opcode: "zeros_like" or "ones_like".
    """

    like: TensorRef
    opcode: str


class Transform(NamedTuple):
    """A node that a program can do the work of.

    Attributes:
        node: the node.
        feature: the tensor that its elements are computed from; of a join of several, the first.
        operands: its operands: other transforms' results, features, scalars, or constants of its shape.
        words: further words of its instruction.
        mask: the Where that says which elements it is computed for; "": for all.
    """

    node: Node
    feature: TensorRef
    operands: tuple[TensorRef | Filled, ...]
    words: str
    mask: str = ""

    @property
    def opcode(self) -> str:
        return RULES[self.node.op].opcode

    @property
    def reads(self) -> tuple[TensorRef, ...]:
        """The operands that are tensors of the graph."""
        return tuple(operand for operand in self.operands if isinstance(operand, TensorRef))


class Finder:
    """Finds all transforms of a graph, upstream ones first.

    Args:
        graph: the graph.
        nodes: those with a rule, in an order that does not depend on the graph's own, upstream ones first.
        together: whether two nodes, of which the second reads the first, may be in one program.
        banned: nodes that must be no transforms.
    """

    def __init__(
        self, graph: Graph, nodes: Iterable[Node], together: Callable[[str, str], bool], banned: Collection[str]
    ):
        self._graph = graph
        self._together = together
        self._masks: dict[TensorRef, str] = {}  # the one Where of each feature
        self.found: dict[str, Transform] = {}
        for node in nodes:
            if node.name not in banned:
                transform = self._transform(node)
                if transform is not None:
                    self.found[node.name] = transform

    def _transform(self, node: Node) -> Transform | None:
        graph, rule = self._graph, RULES[node.op]
        words = rule.words(node)
        if words is None or node.name in graph.fed or (device_type(node.device) or "CPU") != "CPU":
            return None
        if rule.opcode == "find":
            return self._lookup(node)
        if rule.opcode == "bucketize" and list(node.attr("boundaries", [])) != sorted(node.attr("boundaries", [])):
            return None  # TensorFlow's own error
        if rule.opcode == "take":
            return self._taken(node)
        operands = node.inputs[: rule.operands]
        if node.op == "Select" and any(graph.shape(ref).rank == 0 for ref in operands):
            return None  # unlike SelectV2 it does not broadcast
        transform = self._elementwise(node, operands, words)
        if transform is None or rule.opcode != INDICES:
            return transform
        if transform.mask or self._masks.setdefault(transform.feature, node.name) != node.name:
            return None  # one mask for each feature
        return transform

    def _elementwise(self, node: Node, operands: tuple[TensorRef, ...], words: str) -> Transform | None:
        """A transform of operands that all are scalars, or have the elements of one feature."""
        graph = self._graph
        if any(graph.dtype_of(ref) not in DTYPES for ref in operands):
            return None
        filled = tuple([self._filled(ref, operands) or ref for ref in operands])
        elements = [ref for ref in filled if isinstance(ref, TensorRef) and graph.shape(ref).rank != 0]
        sources = list(dict.fromkeys(self._source(node, ref) for ref in elements))
        if not sources or (len(sources) > 1 and not self._is_aligned(node, elements, sources)):
            return None
        feature, mask = sources[0]
        return Transform(node, feature, filled, words, mask)

    def _is_aligned(self, node: Node, elements: Sequence[TensorRef], sources: Iterable[tuple[TensorRef, str]]) -> bool:
        """Whether operands that are computed from several features must all have one shape, or the node fails."""
        return (
            RULES[node.op].opcode == JOIN
            and all(self._graph.shape(ref).rank for ref in elements)  # a scalar would be joined with each element
            and not any(mask for _, mask in sources)
        )

    def _filled(self, ref: TensorRef, operands: tuple[TensorRef, ...]) -> Filled | None:
        """A constant of zeros or ones, such as constant folding makes of ZerosLike when the shape is known."""
        graph = self._graph
        if graph.producer(ref).op != "Const" or graph.shape(ref).rank == 0:
            return None
        value = constant(graph, ref)
        if value is None or value.dtype.kind == "f" or not value.size or (value != value.flat[0]).any():
            return None
        opcode = {0: "zeros_like", 1: "ones_like", b"": "zeros_like"}.get(value.flat[0])
        alike = (graph.shape(ref), graph.dtype_of(ref))
        for other in operands:
            if opcode and graph.producer(other).op != "Const" and (graph.shape(other), graph.dtype_of(other)) == alike:
                return Filled(other, opcode)
        return None

    def _source(self, node: Node, ref: TensorRef) -> tuple[TensorRef, str]:
        """The feature and the mask of an operand that is no scalar."""
        made = self.found.get(ref.node)
        if made is None or made.opcode == INDICES or not self._together(ref.node, node.name):
            return ref, ""
        return made.feature, made.mask

    def _lookup(self, node: Node) -> Transform | None:
        """A lookup whose default is a scalar: the values of the table are scalars then."""
        _, keys, default = node.inputs
        if node.attr("Tout") in ("string", None) or self._graph.shape(default).rank != 0:
            return None
        return self._elementwise(node, (keys, default), str(node.attr("Tout")))

    def _taken(self, node: Node) -> Transform | None:
        """What GatherNd takes of a feature, or of its transform, by the indices of a Where."""
        values, indices = node.inputs
        where = self.found.get(indices.node)
        if where is None or where.opcode != INDICES or not self._together(indices.node, node.name):
            return None
        if self._graph.dtype_of(values) not in DTYPES or node.attr("bad_indices_policy", b""):
            return None
        if self._source(node, values) != (where.feature, ""):
            return None
        return Transform(node, where.feature, (values, *where.reads), "", where.node.name)


def worth_while(graph: Graph, found: Mapping[str, Transform]) -> dict[str, Transform]:
    """Anchors, the transforms that they are computed from, and those that are computed from them, if somebody reads it.

    A Where comes along with a GatherNd only: alone it is no part of a program.
    """
    wanted: set[str] = set()
    for name, transform in found.items():
        is_derived = transform.opcode != INDICES and any(ref.node in wanted for ref in transform.node.inputs)
        if transform.node.op in ANCHORS or is_derived:
            wanted.add(name)
    kept: set[str] = set()
    for name, transform in list(found.items())[::-1]:
        if name in kept or (name in wanted and is_read_outside(graph, name, wanted)):
            needed = [ref.node for ref in transform.reads] + [transform.mask]
            kept.update(other for other in (name, *needed) if other in found)
    return {name: transform for name, transform in found.items() if name in kept}


def is_read_outside(graph: Graph, name: str, inside: Collection[str]) -> bool:
    """Whether the caller, or a node that is not `inside`, reads a node."""
    return name in graph.kept_for_data or any(
        use.index != CONTROL and use.node.name not in inside for use in graph.uses(name)
    )


def table_sizes(graph: Graph, found: Collection[str], banned: Collection[str]) -> set[str]:
    """Nodes that tell transforms, and nobody else, how many keys a hash table has: programs can tell that too.

    They may wait for transforms, as a size that is read after a lookup does, but for nothing else.
    """
    return {
        node.name
        for node in graph.of("LookupTableSizeV2")
        if node.name not in graph.fed
        and node.name not in banned
        and set(node.controls) <= set(found)
        and not is_read_outside(graph, node.name, found)
        and any(use.index != CONTROL for use in graph.uses(node.name))
    }

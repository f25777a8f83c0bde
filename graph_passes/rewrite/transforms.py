"""What models do to features before rows are looked up: hashes, lookups in hash tables, buckets, remainders, masks.

Such nodes work element by element. Those that are computed from one tensor, the feature, and from scalars form its
program; `Picasso>PackedTransforms` runs the programs of many features.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from graph_passes.analysis.constants import constant
from graph_passes.analysis.devices import device_type
from graph_passes.ir import CONTROL, Graph, Node, TensorRef

INTEGERS = ("int32", "int64")
DTYPES = ("bool", *INTEGERS, "float32", "float64", "string")
INDICES = "indices"

Words = str | None  # parameters of an instruction; None: the node has a form that no instruction has


class Rule(NamedTuple):
    """How a node becomes an instruction.

    Attributes:
        opcode: of the instruction.
        operands: how many of the node's inputs, from the first on, are operands.
        words: the parameters that follow them.
        first: an instruction that its operand goes through before.
    """

    opcode: str
    operands: int
    words: Callable[[Node], Words] = lambda node: ""
    first: str = ""


def _of_integers(node: Node) -> Words:
    return "" if node.attr("T") in INTEGERS else None


def _cast(node: Node) -> Words:
    types = node.attr("SrcT"), node.attr("DstT")
    return str(types[1]) if set(types) <= {*DTYPES} - {"string"} and not node.attr("Truncate", False) else None


def _as_string(node: Node) -> Words:
    plain = (("precision", -1), ("scientific", False), ("shortest", False), ("width", -1), ("fill", b""))
    return "" if node.attr("T") in INTEGERS and all(node.attr(key, value) == value for key, value in plain) else None


def _buckets(node: Node) -> Words:
    return str(node.attr("num_buckets")) if node.attr("T", "int64") in INTEGERS else None


def _hash_strong(node: Node) -> Words:
    key = node.attr("key", [])
    return " ".join(map(str, [node.attr("num_buckets"), *key])) if len(key) == 2 else None


_BINARY = {
    **dict.fromkeys(("AddV2", "Add"), "add"),
    "Sub": "sub",
    "Mul": "mul",
    "FloorMod": "floor_mod",
    "Mod": "trunc_mod",  # not TruncateMod, which has an error of its own for a division by zero
    "Maximum": "max",
    "Minimum": "min",
}
_TESTS = {
    "Equal": "equal",
    "NotEqual": "not_equal",
    "Less": "less",
    "LessEqual": "less_equal",
    "Greater": "greater",
    "GreaterEqual": "greater_equal",
    "LogicalAnd": "and",
    "LogicalOr": "or",
}
RULES: Mapping[str, Rule] = {
    **{op: Rule(opcode, 2, _of_integers) for op, opcode in _BINARY.items()},
    **{op: Rule(opcode, 2) for op, opcode in _TESTS.items()},
    "LogicalNot": Rule("not", 1),
    **dict.fromkeys(("Select", "SelectV2"), Rule("select", 3)),
    "ZerosLike": Rule("zeros_like", 1),
    "OnesLike": Rule("ones_like", 1, lambda node: None if node.attr("T") == "string" else ""),
    "Cast": Rule("cast", 1, _cast),
    "AsString": Rule("as_string", 1, _as_string),
    "StringToHashBucketFast": Rule("hash_fast", 1, _buckets),
    "_TensorToHashBucketFast": Rule("hash_fast", 1, _buckets, "as_string"),  # as TensorFlow's remapper joins the two
    "StringToHashBucketStrong": Rule("hash_strong", 1, _hash_strong),
    "Bucketize": Rule("bucketize", 1),
    "LookupTableFindV2": Rule("find", 0),
    "Where": Rule(INDICES, 1, lambda node: "" if node.attr("T") == "bool" else None),
    "GatherNd": Rule("take", 1),
}
ANCHORS = (
    *("StringToHashBucketFast", "_TensorToHashBucketFast", "StringToHashBucketStrong"),
    *("Bucketize", "LookupTableFindV2", "FloorMod", "Mod", "GatherNd"),
)
"""What makes it worth while to pack a program; the rest of `RULES` only comes along."""


OTHERS = ("SparseCross", "SparseCrossHashed", "SparseCrossV2", "StringToHashBucket", "StringSplitV2", "StringJoin")
"""What features go through besides, and has no instruction."""


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
        feature: the tensor that its elements are computed from.
        operands: its operands: other transforms' results, the feature, scalars, or constants of its shape.
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
        sources = {self._source(node, ref) for ref in elements}
        if len(sources) != 1:
            return None
        feature, mask = sources.pop()
        return Transform(node, feature, filled, words, mask)

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

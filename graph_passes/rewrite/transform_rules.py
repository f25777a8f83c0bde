"""What models do to features before rows are looked up: hashes, lookups in hash tables, buckets, remainders, masks.

Such nodes work element by element. Each has a rule by which it becomes an instruction of a feature's program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from graph_passes.ir import Node

INTEGERS = ("int32", "int64")
DTYPES = ("bool", *INTEGERS, "float32", "float64", "string")
INDICES = "indices"
JOIN = "join"

Words = str | None  # parameters of an instruction; None: the node has a form that no instruction has


class Rule(NamedTuple):
    """How a node becomes an instruction.

    Attributes:
        opcode: of the instruction.
        operands: how many of the node's inputs, from the first on, are operands; None: all.
        words: the parameters that follow them.
        first: an instruction that its operand goes through before.
    """

    opcode: str
    operands: int | None
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
    "StringJoin": Rule(JOIN, None, lambda node: "" if len(node.inputs) > 1 else None),
    "StringToHashBucket": Rule("hash_legacy", 1, _buckets),
    "StringToHashBucketFast": Rule("hash_fast", 1, _buckets),
    "_TensorToHashBucketFast": Rule("hash_fast", 1, _buckets, "as_string"),  # as TensorFlow's remapper joins the two
    "StringToHashBucketStrong": Rule("hash_strong", 1, _hash_strong),
    "Bucketize": Rule("bucketize", 1),
    "LookupTableFindV2": Rule("find", 0),
    "Where": Rule(INDICES, 1, lambda node: "" if node.attr("T") == "bool" else None),
    "GatherNd": Rule("take", 1),
}
ANCHORS = (
    *("StringToHashBucket", "StringToHashBucketFast", "_TensorToHashBucketFast", "StringToHashBucketStrong"),
    *("Bucketize", "LookupTableFindV2", "FloorMod", "Mod", "GatherNd"),
)
"""What makes it worth while to pack a program; the rest of `RULES` only comes along."""

OTHERS = {
    **dict.fromkeys(("StringSplit", "StringSplitV2"), "string_split"),
    "SparseCrossHashed": "no_instruction",
}
"""What features go through besides, with the reason why it stays."""

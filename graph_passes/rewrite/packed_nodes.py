"""What all packed ops are made with: their names, numbered inputs, and the retirement of what they replace."""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from typing import TypeVar

from graph_passes.ir import Graph, Mutation, Node

T = TypeVar("T", bound=Hashable)


class Numbers(dict[T, int]):
    """Numbers distinct keys in the order of their arrival."""

    def of(self, key: T) -> int:
        return self.setdefault(key, len(self))


def packed_name(pass_name: str, members: Sequence[str]) -> str:
    """`scope/picasso/pass_name/member`: the common scope, the pass and the first member."""
    scope = os.path.commonpath([os.path.dirname(member) for member in members])
    rest = os.path.relpath(members[0], scope) if scope else members[0]
    return "/".join(part for part in (scope, f"picasso/{pass_name}", rest) if part)


def retire(graph: Graph, mutation: Mutation, node: Node, packed: str) -> None:
    """Takes a node away; what waited for it waits for the packed op. A control output stays, as a NoOp."""
    if node.name in graph.kept:
        mutation.replace(Node(node.name, "NoOp", (), [packed], node.device))
        return
    mutation.redirect_controls(node.name, packed)
    mutation.remove(node.name)

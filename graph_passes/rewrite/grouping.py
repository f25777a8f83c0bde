"""Groups of candidates that can be packed into one op without a cycle."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Candidate = TypeVar("Candidate")


@dataclass(frozen=True)
class Group(Generic[Candidate]):
    """Candidates of one key and one level, in the order of their names.

    Attributes:
        key: what the members share; a frozen dataclass.
        level: see `graph_passes.analysis.reachability.levels`. All groups of all levels can be merged together.
        members: the candidates.
    """

    key: Hashable
    level: int
    members: tuple[Candidate, ...]


def form_groups(
    candidates: Sequence[Candidate],
    level_of: Callable[[Candidate], int],
    key_of: Callable[[Candidate], Hashable],
    max_size: int | None = None,
) -> list[Group[Candidate]]:
    """Partitions candidates by level and key; groups come in the order of level, then of their first member.

    Args:
        candidates: what can be packed, sorted by name.
        level_of: the level of a candidate, computed over all candidates of the graph whatever their key.
        key_of: what members of a group must share.
        max_size: larger groups are cut into runs of this many members; None: never.
    """
    found: dict[tuple[int, Hashable], list[Candidate]] = {}
    for candidate in candidates:
        found.setdefault((level_of(candidate), key_of(candidate)), []).append(candidate)
    groups = []
    for (level, key), members in found.items():
        size = max_size or len(members)
        for start in range(0, len(members), size):
            groups.append(Group(key, level, tuple(members[start : start + size])))
    return sorted(groups, key=lambda group: group.level)

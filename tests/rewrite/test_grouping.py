"""Candidates of one level and one key become a group."""

from graph_passes.rewrite.grouping import Group, form_groups

CANDIDATES = ["a1", "b1", "c2", "d1", "e2", "f1"]


def level(candidate: str) -> int:
    return int(candidate[1])


def vowel(candidate: str) -> bool:
    return candidate[0] in "aeiou"


def test_groups_share_level_and_key_and_come_by_level() -> None:
    assert form_groups(CANDIDATES, level, vowel) == [
        Group(True, 1, ("a1",)),
        Group(False, 1, ("b1", "d1", "f1")),
        Group(False, 2, ("c2",)),
        Group(True, 2, ("e2",)),
    ]


def test_a_deeper_level_comes_later_even_when_its_name_comes_first() -> None:
    assert [group.level for group in form_groups(["a3", "b1", "c2"], level, vowel)] == [1, 2, 3]


def test_large_groups_are_cut_into_runs() -> None:
    groups = form_groups(["a1", "b1", "c1", "d1", "e1"], level, lambda candidate: None, max_size=2)
    assert [group.members for group in groups] == [("a1", "b1"), ("c1", "d1"), ("e1",)]
    assert form_groups([], level, vowel) == []

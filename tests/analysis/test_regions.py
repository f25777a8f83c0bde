"""Regions: as few as can be, the heaviest first, and merging all of them at once forms no cycle."""

import random

import pytest

from graph_passes.analysis.regions import regions
from graph_passes.ir import Graph, Node, TensorRef


def built(edges: dict[str, list[str]]) -> Graph:
    """A graph of NoOps from the control inputs of each; names that begin with `o` are meant to stay outside."""
    return Graph({name: Node(name, "NoOp", controls=controls) for name, controls in edges.items()})


def divided(edges: dict[str, list[str]], free: tuple[str, ...] = (), weights: dict[str, int] | None = None):
    graph = built(edges)
    inside = {name for name in edges if not name.startswith("o") and name not in free}
    return regions(graph, inside, free, lambda name: (weights or {}).get(name, 1))


def test_a_graph_without_outside_nodes_is_one_region() -> None:
    assert divided({"a": [], "b": ["a"], "c": [], "d": ["b", "c"]}) == [["a", "b", "c", "d"]]
    assert divided({}) == []
    assert divided({"o": []}) == []


def test_an_outside_node_in_between_makes_two_regions_and_beside_makes_one() -> None:
    assert divided({"a": [], "o": ["a"], "b": ["o"]}) == [["a"], ["b"]]
    assert divided({"a": [], "o": [], "b": ["o", "a"], "c": ["b"]}) == [["a", "b", "c"]]
    assert divided({"a": [], "b": ["a"], "o": ["a"], "c": ["b"]}) == [["a", "b", "c"]]


def test_nodes_that_can_wait_join_the_heavier_region() -> None:
    edges = {"early": [], "o1": [], "dense": ["o1", "early"], "grad": ["dense"], "o2": ["grad"], "late": ["o2"]}
    assert divided(edges) == [["early", "dense", "grad"], ["late"]]
    heavy_end = {"late": 9}
    assert divided({**edges, "late": ["o2", "early"]}, weights=heavy_end) == [["late"], ["early", "dense", "grad"]]


def test_a_free_node_ties_nothing_together() -> None:
    edges = {"c": ["o1"], "o1": [], "a": ["c"], "o2": ["a"], "b": ["o2", "c"]}
    assert divided(edges, free=("c",)) == [["a"], ["b"]]


@pytest.mark.parametrize("seed", range(30))
def test_merging_all_regions_at_once_forms_no_cycle(seed: int) -> None:
    choose = random.Random(seed)
    names = [f"{'o' if choose.random() < 0.3 else 'n'}{index}" for index in range(40)]
    edges = {name: choose.sample(names[:index], min(index, choose.randint(0, 3))) for index, name in enumerate(names)}
    found = divided(edges, weights={name: choose.randint(0, 9) for name in names})
    assert sorted(name for region in found for name in region) == sorted(name for name in names if name[0] == "n")
    place = {name: f"region {number}" for number, region in enumerate(found) for name in region}
    merged: dict[str, set[str]] = {}
    for name, sources in edges.items():
        target = place.get(name, name)
        merged.setdefault(target, set()).update(place.get(source, source) for source in sources)
        merged[target].discard(target)
    nodes = {name: Node(name, "NoOp", [TensorRef(s) for s in sources]) for name, sources in merged.items()}
    _ = Graph(nodes).topological  # raises for a cycle
    shuffled = list(edges)
    choose.shuffle(shuffled)
    weights = {name: choose.randint(0, 9) for name in names}
    assert divided({name: edges[name] for name in shuffled}, weights=weights) == divided(edges, weights=weights)

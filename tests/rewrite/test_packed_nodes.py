"""Names, numbers and the retirement of nodes, which all packed ops share."""

import pytest

from graph_passes.ir import Mutation, Node
from graph_passes.rewrite.packed_nodes import Numbers, packed_name, retire
from tests.support.rewrite import graph_of


def test_numbers_count_distinct_keys_in_the_order_of_their_arrival() -> None:
    numbers: Numbers[str] = Numbers()
    assert [numbers.of(key) for key in ("b", "a", "b", "c")] == [0, 1, 0, 2]
    assert list(numbers) == ["b", "a", "c"]


@pytest.mark.parametrize(
    ("members", "name"),
    [
        (["a"], "picasso/p/a"),
        (["a", "x/b"], "picasso/p/a"),
        (["s/a", "s/b"], "s/picasso/p/a"),
        (["s/t/a", "s/u/b"], "s/picasso/p/t/a"),
        (["st/a", "su/b"], "picasso/p/st/a"),
    ],
)
def test_a_name_tells_the_common_scope_the_pass_and_the_first_member(members: list[str], name: str) -> None:
    function = graph_of("graph {feeds = [], fetches = [], preserve = []}\nx = _Arg() {T = int32, index = 0}")
    assert packed_name(function, "p", members) == name


def test_in_a_session_a_name_tells_what_is_fed_and_fetched_too() -> None:
    """A Session keeps kernels by name."""
    lines = "x = Placeholder() {dtype = int32}\ny = Neg(x) {T = int32}"
    keeps = ("feeds = [], fetches = [y]", "feeds = [x], fetches = [y]", "feeds = [], fetches = [x, y]")
    graphs = [graph_of(f"graph {{{keep}, preserve = []}}\n{lines}") for keep in keeps]
    names = {packed_name(graph, "p", ["s/a"]) for graph in graphs}
    assert len(names) == 3
    assert all(name.startswith("s/picasso/p/a_") for name in names)
    assert packed_name(graphs[0], "p", ["s/a"]) in names


@pytest.mark.parametrize("preserve", ["a", ""])
def test_a_retired_node_lives_on_only_as_something_to_wait_for(preserve: str) -> None:
    graph = graph_of(
        f"graph {{feeds = [], fetches = [], preserve = [{preserve}]}}\na = NoOp() @ /device:CPU:0\nb = NoOp(^a)"
    )
    mutation = Mutation(graph)
    mutation.add(Node("pack", "NoOp"))
    retire(graph, mutation, graph.nodes["a"], "pack")
    after = mutation.apply()
    assert after.nodes["b"].controls == (("a",) if preserve else ("pack",))
    assert ("a" in after.nodes) == bool(preserve)
    if preserve:
        assert (after.nodes["a"].op, after.nodes["a"].controls, after.nodes["a"].device) == (
            "NoOp",
            ("pack",),
            "/device:CPU:0",
        )

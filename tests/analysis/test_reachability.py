"""Who is downstream of whom, and levels at which everything can be merged: against brute force on random graphs."""

from hypothesis import given, settings
from hypothesis import strategies as st

from graph_passes.analysis.reachability import Reachability, group_levels, levels, waits_for
from graph_passes.ir import Graph, Node, TensorRef, parse_graph
from tests.support.rewrite import shuffled


@st.composite
def dags(draw: st.DrawFn) -> Graph:
    """Up to 12 nodes; edges lead from lower to higher numbers, some of them are control edges. Names say nothing."""
    count = draw(st.integers(1, 12))
    names = draw(st.permutations([f"n{i:02d}" for i in range(count)]))
    nodes = {}
    for number, name in enumerate(names):
        earlier = st.sampled_from(names[:number]) if number else st.nothing()
        sources = draw(st.lists(earlier, max_size=3)) if number else []
        waits = draw(st.lists(earlier, max_size=2)) if number else []
        nodes[name] = Node(name, "N", [TensorRef(source) for source in sources], waits)
    return Graph(nodes)


def reachable(graph: Graph, source: str) -> set[str]:
    """By a search of its own for each source."""
    found, waiting = {source}, [source]
    while waiting:
        name = waiting.pop()
        new = {use.node.name for use in graph.uses(name)} - found
        found |= new
        waiting += new
    return found


@settings(max_examples=100, deadline=None, derandomize=True)
@given(dags(), st.data())
def test_reaches_is_what_a_search_finds(graph: Graph, data: st.DataObject) -> None:
    sources = data.draw(st.lists(st.sampled_from(sorted(graph.nodes)), unique=True))
    reach = Reachability(graph, sources)
    for source in sources:
        found = {name for name in graph.nodes if reach.reaches(source, name)}
        assert found == reachable(graph, source)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(dags(), st.data())
def test_all_candidates_of_each_level_can_be_merged_at_once(graph: Graph, data: st.DataObject) -> None:
    candidates = set(data.draw(st.lists(st.sampled_from(sorted(graph.nodes)), unique=True)))
    level = levels(graph, candidates)
    assert level.keys() == graph.nodes.keys()

    def merged(name: str) -> str:
        return f"merged{level[name]}" if name in candidates else name

    edges = {(merged(source), merged(node.name)) for node in graph.nodes.values() for source in node.predecessors()}
    names = {merged(name) for name in graph.nodes}
    packed = Graph({name: Node(name, "N", (), [a for a, b in edges if b == name]) for name in names})
    assert len(packed.topological) == len(names)  # raises GraphError when there is a cycle, a self-edge included


@settings(max_examples=100, deadline=None, derandomize=True)
@given(dags(), st.data())
def test_the_level_is_the_number_of_candidates_on_the_longest_path(graph: Graph, data: st.DataObject) -> None:
    candidates = set(data.draw(st.lists(st.sampled_from(sorted(graph.nodes)), unique=True)))

    def longest(name: str) -> int:
        return max(map(longest, graph.nodes[name].predecessors()), default=0) + (name in candidates)

    expected = {name: longest(name) for name in graph.nodes}
    assert levels(graph, candidates) == expected
    assert levels(shuffled(graph, 1), candidates) == expected


LOOP = """
e = Enter(x)
x = Const()
m = Merge(e, n)
a = Neg(m)
n = NextIteration(a)
"""


def test_back_edges_of_loops_are_not_followed() -> None:
    graph = parse_graph(LOOP)
    reach = Reachability(graph, ["a", "x"])
    assert [name for name in sorted(graph.nodes) if reach.reaches("a", name)] == ["a", "n"]
    assert all(reach.reaches("x", name) for name in graph.nodes)
    assert levels(graph, {"a", "m"}) == {"x": 0, "e": 0, "m": 1, "a": 2, "n": 2}


def test_no_source_reaches_nothing_and_a_node_reaches_itself() -> None:
    graph = parse_graph(LOOP)
    assert Reachability(graph, ["a"]).reaches("a", "a")
    assert not Reachability(graph, ["a"]).reaches("a", "x")


def test_sets_of_sources_are_tested_at_once() -> None:
    graph = parse_graph(LOOP)
    reach = Reachability(graph, ["a", "x", "n"])
    assert reach.bits([]) == 0
    assert reach.bits(["a", "x"]) == reach.bits(["a"]) | reach.bits(["x"])
    assert reach.reaching("n") == reach.bits(["a", "n", "x"])
    assert reach.reaching("e") & reach.bits(["a", "n"]) == 0
    assert Reachability(graph, []).reaching("n") == 0


@settings(max_examples=50, deadline=None, derandomize=True)
@given(dags(), st.data())
def test_a_set_reaches_what_one_of_it_reaches(graph: Graph, data: st.DataObject) -> None:
    sources = data.draw(st.lists(st.sampled_from(sorted(graph.nodes)), unique=True))
    reach = Reachability(graph, sources)
    for name in graph.nodes:
        assert bool(reach.reaching(name) & reach.bits(sources)) == any(reach.reaches(one, name) for one in sources)


WAITS = """
w = Const()
a = NoOp(^w)
b = NoOp(^a, ^c)
c = NoOp(^a)
d = NoOp(^b, ^w)
"""


def test_removed_nodes_are_replaced_by_what_they_waited_for() -> None:
    graph = parse_graph(WAITS)
    assert waits_for(graph, ["b", "w"], set()) == ["b", "w"]
    assert waits_for(graph, ["b", "w"], {"b"}) == ["a", "c", "w"]
    assert waits_for(graph, ["b"], {"a", "b"}) == ["w", "c"]
    assert waits_for(graph, ["b"], {"a", "b", "c"}) == ["w"]
    assert waits_for(graph, ["b"], {"a", "b", "c", "w"}) == []


def test_groups_have_levels_unless_they_wait_for_themselves_or_each_other() -> None:
    own = {"a": 1, "b": 2, "c": 4, "self": 8, "one": 16, "other": 32, "after": 64}
    waits = {"a": 0, "b": 1, "c": 1 | 2, "self": 8, "one": 32, "other": 16, "after": 16}
    assert group_levels(own, waits) == {"a": 1, "b": 2, "c": 3}
    assert group_levels({}, {}) == {}

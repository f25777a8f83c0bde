"""Staged edits: all of them or none, and each misfit is a GraphError."""

import pytest

from graph_passes.errors import GraphError
from graph_passes.ir import Graph, Mutation, Node, TensorRef, parse_graph, print_graph

TEXT = (
    "graph {feeds = [], fetches = [out], preserve = [kept]}\n"
    "a = Const()\nb = Neg(a)\nkept = NoOp(^b)\nout = Add(b, a:1, ^b)\n"
)


@pytest.fixture
def graph() -> Graph:
    return parse_graph(TEXT)


def lines(graph: Graph) -> list[str]:
    return print_graph(graph).splitlines()[1:]


def test_an_empty_mutation_gives_an_equal_graph(graph: Graph) -> None:
    mutation = Mutation(graph)
    assert print_graph(mutation.apply()) == TEXT


def test_a_node_is_replaced_by_another_under_its_name(graph: Graph) -> None:
    mutation = Mutation(graph)
    mutation.add(Node("new", "Abs", [TensorRef("a")]))
    mutation.redirect(TensorRef("b"), TensorRef("new"))
    mutation.redirect_controls("b", "new")
    mutation.remove("b")
    assert lines(mutation.apply()) == ["a = Const()", "new = Abs(a)", "kept = NoOp(^new)", "out = Add(new, a:1, ^new)"]
    assert print_graph(graph) == TEXT


def test_a_redirection_goes_by_port_and_spares_added_nodes(graph: Graph) -> None:
    mutation = Mutation(graph)
    mutation.add(Node("i", "Identity", [TensorRef("a")]))
    mutation.redirect(TensorRef("a"), TensorRef("i"))
    assert lines(mutation.apply()) == [
        *["a = Const()", "i = Identity(a)", "b = Neg(i)", "kept = NoOp(^b)", "out = Add(b, a:1, ^b)"]
    ]


def test_two_redirections_can_swap_outputs() -> None:
    mutation = Mutation(parse_graph("a = Split()\nb = Pack(a, a:1)\n"))
    mutation.redirect(TensorRef("a"), TensorRef("a", 1))
    mutation.redirect(TensorRef("a", 1), TensorRef("a"))
    assert lines(mutation.apply()) == ["a = Split()", "b = Pack(a:1, a)"]


def test_a_replaced_node_takes_part_in_redirections(graph: Graph) -> None:
    mutation = Mutation(graph)
    mutation.replace(Node("b", "Abs", [TensorRef("a")], ["a"]))
    mutation.redirect(TensorRef("a"), TensorRef("a", 1))
    assert lines(mutation.apply())[1] == "b = Abs(a:1, ^a)"


def test_controls_are_dropped_added_and_never_doubled(graph: Graph) -> None:
    mutation = Mutation(graph)
    mutation.drop_controls("b")
    mutation.add_control("out", "a")
    mutation.add_control("out", "a")
    mutation.add_control("out", "kept")
    assert lines(mutation.apply()) == ["a = Const()", "b = Neg(a)", "kept = NoOp()", "out = Add(b, a:1, ^a, ^kept)"]


def test_a_node_never_waits_for_itself(graph: Graph) -> None:
    mutation = Mutation(graph)
    mutation.redirect_controls("b", "out")
    assert lines(mutation.apply())[-2:] == ["out = Add(b, a:1)", "kept = NoOp(^out)"]


def test_unique_names_count_up(graph: Graph) -> None:
    mutation = Mutation(graph)
    mutation.add(Node("b_1", "NoOp"))
    assert [mutation.unique_name(name) for name in ("b", "b_1", "c")] == ["b_2", "b_1_1", "c"]


def test_colocation_with_a_removed_node_is_lost_and_the_rest_of_the_attributes_stays() -> None:
    text = (
        'a = NoOp()\nb = Neg() {{T = float32, _class = [{}"loc:@c"]}}\nc = Const()\nd = Neg() {{_class = ["loc:@a"]}}\n'
    )
    mutation = Mutation(parse_graph(text.format('"loc:@a", ')))
    mutation.remove("a")
    assert lines(mutation.apply()) == ['b = Neg() {T = float32, _class = ["loc:@c"]}', "c = Const()", "d = Neg()"]


def test_an_edit_keeps_what_python_values_do_not_show() -> None:
    graph_def = parse_graph('a = NoOp()\nb = Call() {_class = ["loc:@a"], f = @f}\n').to_graph_def()
    graph_def.node[1].attr["f"].func.attr["T"].i = 3
    mutation = Mutation(Graph.from_graph_def(graph_def))
    mutation.remove("a")
    (node,) = mutation.apply().to_graph_def().node
    assert node.attr["f"].func.attr["T"].i == 3
    assert "_class" not in node.attr


def test_untouched_nodes_are_shared(graph: Graph) -> None:
    mutation = Mutation(graph)
    mutation.replace(Node("out", "Neg", [TensorRef("a")]))
    after = mutation.apply()
    assert after.nodes["b"] is graph.nodes["b"]
    assert after.fetches == graph.fetches


def remove(name):
    return lambda mutation: mutation.remove(name)


def replace(node):
    return lambda mutation: mutation.replace(node)


def add(node):
    return lambda mutation: mutation.add(node)


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        ([remove("x")], "There is no node 'x' to remove."),
        ([remove("out")], "Node 'out' must be kept: it is fed, fetched or preserved."),
        ([remove("kept")], "Node 'kept' must be kept: it is fed, fetched or preserved."),
        ([remove("b")], "Node 'kept' waits for 'b', which does not exist after the edit."),
        ([remove("a")], "Node 'b' reads 'a', which does not exist after the edit."),
        ([replace(Node("x", "NoOp"))], "There is no node 'x' to replace."),
        ([replace(Node("b", "NoOp")), remove("b")], "Node 'b' is both replaced and removed."),
        ([add(Node("a", "NoOp"))], "Node 'a' is added, but the graph has a node of that name."),
        ([add(Node("x", "NoOp")), add(Node("x", "NoOp"))], "Two nodes named 'x' were added."),
        ([add(Node("x", "Neg", [TensorRef("y", 2)]))], "Node 'x' reads 'y:2', which does not exist after the edit."),
        ([add(Node("x", "NoOp", (), ["y"]))], "Node 'x' waits for 'y', which does not exist after the edit."),
        ([lambda m: m.redirect(TensorRef("b"), TensorRef("x"))], "Node 'out' reads 'x', which does not exist"),
        ([lambda m: m.redirect_controls("b", "x")], "Node 'kept' waits for 'x', which does not exist after the edit."),
        ([lambda m: m.add_control("b", "x")], "Node 'b' waits for 'x', which does not exist after the edit."),
        ([lambda m: m.add_control("x", "b")], "Node 'x' does not exist after the edit, so it cannot wait for 'b'."),
    ],
)
def test_a_misfit_is_named_and_changes_nothing(graph: Graph, edits, message: str) -> None:
    mutation = Mutation(graph)

    def stage_and_apply() -> None:
        for edit in edits:
            edit(mutation)
        mutation.apply()

    with pytest.raises(GraphError) as error:
        stage_and_apply()
    assert str(error.value).startswith(message)
    assert print_graph(graph) == TEXT

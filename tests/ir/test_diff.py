"""What changed between two graphs, line by line."""

from graph_passes.ir import diff_graphs, parse_graph
from tests.support.rewrite import shuffled


def test_equal_graphs_have_no_difference_whatever_the_order_of_nodes() -> None:
    graph = parse_graph("a = NoOp()\nb = NoOp(^a)\nc = NoOp()\n")
    assert diff_graphs(graph, graph) == ""
    assert diff_graphs(graph, shuffled(graph, 1)) == ""
    assert diff_graphs(graph, parse_graph("b = NoOp(^a)\nc = NoOp()\na = NoOp()\n")) == ""


def test_removed_added_and_changed_nodes_are_shown_by_name() -> None:
    before = parse_graph("a = NoOp()\nb = NoOp(^a)\nd = NoOp()\n")
    after = parse_graph("a = NoOp()\nb = NoOp()\nc = NoOp() {x = 1}\n")
    assert diff_graphs(before, after) == "- b = NoOp(^a)\n+ b = NoOp()\n+ c = NoOp() {x = 1}\n- d = NoOp()\n"

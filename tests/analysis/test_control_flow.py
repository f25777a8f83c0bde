"""Branches and loops around nodes, on graphs that TensorFlow lowered itself."""

from collections.abc import Callable

import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

from graph_passes.analysis.control_flow import Context, contexts, exclusive
from graph_passes.ir import Graph
from tests.support.rewrite import graph_of


def lowered(function: Callable[..., tf.Tensor], *specs: tf.TensorSpec) -> Graph:
    """The graph of a function with its conditionals and loops as Switch, Merge, Enter and Exit."""
    concrete = tf.function(function).get_concrete_function(*specs)
    frozen = convert_variables_to_constants_v2(concrete, lower_control_flow=True)
    return Graph.from_graph_def(frozen.graph.as_graph_def())


def kinds(context: Context) -> list[str]:
    """ "frame", "branch 0", "branch 1" for each part, sorted."""
    return sorted("frame" if kind == "frame" else f"branch {value}" for kind, value in context)


def around(graph: Graph, op: str) -> list[Context]:
    """The contexts of the nodes of one op, by name."""
    found = contexts(graph)
    return [found.get(node.name, frozenset()) for node in graph.of(op)]


FLAG, NUMBER = tf.TensorSpec([], tf.bool), tf.TensorSpec([], tf.float32)


def test_a_graph_without_control_flow_has_no_contexts() -> None:
    assert contexts(lowered(lambda x: tf.sin(x), NUMBER)) == {}


def test_the_branches_of_a_conditional_differ_and_end_at_its_merge() -> None:
    graph = lowered(lambda p, x: tf.tan(tf.cond(p, lambda: tf.sin(x), lambda: tf.cos(x))), FLAG, NUMBER)
    (sin,), (cos,) = around(graph, "Sin"), around(graph, "Cos")
    assert (kinds(sin), kinds(cos)) == (["branch 1"], ["branch 0"])
    assert {kind for kind, _ in sin} == {kind for kind, _ in cos}
    assert around(graph, "Tan") == [frozenset()]


def test_two_conditionals_on_one_predicate_share_their_branches() -> None:
    def function(p, x):
        return tf.cond(p, lambda: tf.sin(x), lambda: x) + tf.cond(p, lambda: tf.cos(x), lambda: x)

    graph = lowered(function, FLAG, NUMBER)
    assert around(graph, "Sin") == around(graph, "Cos")
    assert kinds(around(graph, "Sin")[0]) == ["branch 1"]


def test_a_conditional_in_a_conditional_lies_in_both() -> None:
    def function(p, q, x):
        def outer():
            return tf.cos(tf.cond(q, lambda: tf.sin(x), lambda: tf.exp(x)))

        return tf.tan(tf.cond(p, lambda: x, outer))

    graph = lowered(function, FLAG, FLAG, NUMBER)
    (sin,), (exp,), (cos,) = around(graph, "Sin"), around(graph, "Exp"), around(graph, "Cos")
    assert (kinds(sin), kinds(exp), kinds(cos)) == (["branch 0", "branch 1"], ["branch 0", "branch 0"], ["branch 0"])
    assert cos == sin & exp
    assert around(graph, "Tan") == [frozenset()]


def test_the_body_of_a_loop_lies_in_its_frame_and_its_result_does_not() -> None:
    graph = lowered(
        lambda x: tf.tan(tf.while_loop(lambda y: tf.exp(y) < 9.0, lambda y: tf.sin(y), [tf.cos(x)])[0]), NUMBER
    )
    (body,), (condition,) = around(graph, "Sin"), around(graph, "Exp")
    assert kinds(body) == ["branch 1", "frame"]
    assert kinds(condition) == ["frame"]
    assert around(graph, "Cos") == [frozenset()]
    assert around(graph, "Tan") == [frozenset()]


def test_a_loop_in_a_loop_ends_before_the_outer_one_does() -> None:
    def outer(y):
        inner = tf.while_loop(lambda z: z < 5.0, lambda z: tf.sin(z), [tf.exp(y)])[0]
        return tf.cos(inner)

    graph = lowered(lambda x: tf.tan(tf.while_loop(lambda y: y < 9.0, outer, [x])[0]), NUMBER)
    (inner,), (before,), (after,) = around(graph, "Sin"), around(graph, "Exp"), around(graph, "Cos")
    assert kinds(inner) == ["branch 1", "branch 1", "frame", "frame"]
    assert kinds(before) == kinds(after) == ["branch 1", "frame"]
    assert before == after
    assert before < inner
    assert around(graph, "Tan") == [frozenset()]


def test_a_loop_in_a_branch_ends_in_the_branch() -> None:
    def branch(x):
        return tf.cos(tf.while_loop(lambda y: y < 9.0, lambda y: tf.sin(y), [x])[0])

    graph = lowered(lambda p, x: tf.tan(tf.cond(p, lambda: branch(x), lambda: x)), FLAG, NUMBER)
    assert kinds(around(graph, "Sin")[0]) == ["branch 1", "branch 1", "frame"]
    assert kinds(around(graph, "Cos")[0]) == ["branch 1"]
    assert around(graph, "Tan") == [frozenset()]


def test_a_branch_in_a_loop_ends_in_the_loop() -> None:
    def body(p, y):
        return tf.cos(tf.cond(p, lambda: tf.sin(y), lambda: y))

    graph = lowered(lambda p, x: tf.while_loop(lambda y: y < 9.0, lambda y: body(p, y), [x])[0], FLAG, NUMBER)
    (sin,), (cos,) = around(graph, "Sin"), around(graph, "Cos")
    assert kinds(sin) == ["branch 1", "branch 1", "frame"]
    assert kinds(cos) == ["branch 1", "frame"]


def test_a_node_that_only_waits_for_a_branch_lies_in_it() -> None:
    graph = graph_of(
        """
        p = _Arg() {T = bool, index = 0}
        x = _Arg() {T = float32, index = 1}
        s = Switch(x, p) {T = float32}
        pivot = Identity(s:1) {T = float32}
        c = Const(^pivot) {dtype = float32, value = float32[](1.0)}
        free = NoOp(^s)
        n = _SwitchN(x, i) {T = float32, num_outs = 3}
        i = Const() {dtype = int32, value = int32[](0)}
        third = Neg(n:2) {T = float32}
        """
    )
    found = contexts(graph)
    assert found["c"] == found["pivot"] == {("branch p", 1)}
    assert found["third"] == {("branch i", 2)}
    assert "free" not in found
    assert "s" not in found


def test_branches_of_one_conditional_exclude_each_other() -> None:
    yes, no = frozenset({("branch p", 1)}), frozenset({("branch p", 0)})
    assert exclusive(yes, no)
    assert exclusive(no | {("branch q", 1)}, yes | {("branch r", 0)})
    assert not exclusive(yes, yes)
    assert not exclusive(yes, frozenset())
    assert not exclusive(yes, frozenset({("branch q", 0)}))
    assert not exclusive(frozenset({("frame", b"f")}), frozenset({("frame", b"g")}))
    assert exclusive(yes | {("frame", b"f")}, no | {("frame", b"f")})

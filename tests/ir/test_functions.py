"""Functions of the library: to nodes and back, copies, names by content, and what is sound."""

import pytest
import tensorflow as tf

from graph_passes.errors import GraphError, VerifyError
from graph_passes.ir import (
    DType,
    FunctionRef,
    Graph,
    Mutation,
    Node,
    TensorRef,
    called_functions,
    control_outputs,
    copy_function,
    diff_graphs,
    function_nodes,
    make_function,
    parse_graph,
    print_graph,
    reachable,
    verify,
    verify_rewrite,
)
from tests.support.lines import graph

CALLER = """
    x = _Arg() {T = float32, index = 0}
    y = PartitionedCall(x) {Tin = [float32], Tout = [float32], f = @outer}
"""
OUTER = """
    function @outer(^write) {_noinline = true}
    v = _Arg() {T = float32, _output_shapes = [<2>], index = 0}
    handle = _Arg() {T = resource, index = 1}
    parts = Split(zero, v) {T = float32, num_split = 2}
    zero = Const() {dtype = int32, value = int32[](0)}
    called = PartitionedCall(parts:1, ^write) {Tin = [float32], Tout = [float32], f = @inner}
    write = AssignVariableOp(handle, parts) {dtype = float32}
    out_RetVal = _Retval(called) {T = float32, index = 0}
"""
INNER = """
    function @inner()
    w = _Arg() {T = float32, index = 0}
    n = Neg(w) {T = float32}
    out_RetVal = _Retval(n) {T = float32, index = 0}
"""
TEXT = graph(CALLER) + OUTER + INNER


def test_a_graph_with_functions_comes_back_from_its_text() -> None:
    first = parse_graph(TEXT)
    text = print_graph(first)
    assert print_graph(parse_graph(text)) == text
    assert "function @inner()\n" in text
    assert "function @outer(^write) {_noinline = true}\n" in text
    assert text.index("function @inner") < text.index("function @outer")
    assert list(first.functions) == ["outer", "inner"]


def test_inputs_are_written_by_output_name_in_a_function_and_by_port_in_a_graph() -> None:
    function = parse_graph(TEXT).functions["outer"]
    (called,) = [node for node in function.node_def if node.name == "called"]
    assert list(called.input) == ["parts:output:1", "^write"]
    assert dict(function.ret) == {"out": "called:output:0"}
    assert function.signature.is_stateful
    assert control_outputs(function) == ["write"]
    nodes = function_nodes(function, parse_graph(TEXT).functions)
    assert nodes["called"].inputs == (TensorRef("parts", 1),)
    assert nodes["v"].attr("_output_shapes")[0].dims == (2,)


def test_what_a_function_of_tensorflow_does_comes_back() -> None:
    table = tf.Variable(tf.ones((3, 2)))

    @tf.function
    def step(ids):
        tops = tf.math.top_k(tf.gather(table, ids), 1)
        table.assign_add(tf.ones((3, 2)))
        return tf.while_loop(lambda i: i < 3, lambda i: [i + 1], [tf.reduce_sum(tops.indices)])[0], tops.values

    graph_def = step.get_concrete_function(tf.constant([0])).graph.as_graph_def()
    library = {function.signature.name: function for function in graph_def.library.function}
    concrete = step.get_concrete_function(tf.constant([0])).function_def
    nodes = function_nodes(concrete, library)
    made = make_function("again", nodes.values(), library, {}, control_outputs(concrete))
    assert dict(made.ret) == dict(concrete.ret)
    assert {n.name: list(n.input) for n in made.node_def} == {n.name: list(n.input) for n in concrete.node_def}
    assert list(made.signature.input_arg) == [
        type(arg)(name=arg.name, type=arg.type) for arg in concrete.signature.input_arg
    ]


def test_functions_are_found_through_attributes_and_through_ops() -> None:
    functions = parse_graph(TEXT).functions
    assert reachable(functions, "outer") == ["outer", "inner"]
    assert reachable(functions, "nowhere") == []
    case = Node("n", "Case", attrs={"branches": [FunctionRef("a"), FunctionRef("b")], "f": FunctionRef("c")})
    assert called_functions(case) == ["a", "b", "c"]
    by_op = make_function("by_op", [Node("n", "inner", [])], functions, {})
    assert reachable({**functions, "by_op": by_op}, "by_op") == ["by_op", "inner"]


def test_a_copy_differs_in_what_was_asked_for_and_the_original_stays() -> None:
    functions = parse_graph(TEXT).functions
    before = functions["outer"].SerializeToString(deterministic=True)
    copy = copy_function(
        functions["outer"],
        "copy",
        renames={"inner": "other"},
        node_attrs={"write": {"dtype": None, "mark": True}},
        drop_attrs=["_noinline", "_absent"],
        arg_attrs={1: {"_handle_dtypes": [DType("float32")]}},
        effects=[Node("marker", "NoOp", attrs={"is": True})],
    )
    assert functions["outer"].SerializeToString(deterministic=True) == before
    nodes = function_nodes(copy, {**functions, "other": functions["inner"]})
    assert nodes["called"].attr("f") == FunctionRef("other")
    assert (nodes["write"].attr_names(), nodes["marker"].attr("is")) == (["mark"], True)
    assert nodes["handle"].attr("_handle_dtypes") == ["float32"]
    assert (list(copy.attr), control_outputs(copy)) == ([], ["marker", "write"])


def test_a_name_by_content_tells_functions_apart_that_differ_deep_inside() -> None:
    first = parse_graph(TEXT)
    other = parse_graph(TEXT.replace("n = Neg(w)", "n = Abs(w)"))

    def name(of: Graph) -> str:
        nodes = function_nodes(of.functions["outer"], of.functions).values()
        return make_function("f_", nodes, of.functions, {}, named_by_content=True).signature.name

    assert name(first) == name(parse_graph(TEXT))
    assert name(first) != name(other)
    assert name(first).startswith("f_")


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([Node("n", "Neg", [TensorRef("gone")], attrs={"T": DType("float32")})], "Input 'gone' names nothing"),
        ([Node("n", "NoOp"), Node("m", "Neg", [TensorRef("n")])], "'n' has no output 0."),
        ([Node("n", "NoSuchOp"), Node("m", "Neg", [TensorRef("n")])], "'n' has no output 0."),
    ],
)
def test_nodes_that_are_no_function_are_refused(nodes: list[Node], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        make_function("f", nodes, {}, {})


def test_a_function_that_depends_on_its_call_has_no_nodes_and_prints_as_a_comment() -> None:
    polymorphic = parse_graph(TEXT)
    polymorphic.functions["inner"].signature.input_arg[0].type = 0
    with pytest.raises(GraphError, match="The type of argument 'w' depends on the call"):
        function_nodes(polymorphic.functions["inner"], {})
    text = print_graph(polymorphic)
    assert "# function @inner cannot be shown: " in text
    parse_graph(text)


def test_a_mutation_adds_functions_or_nothing() -> None:
    before = parse_graph(graph(CALLER) + OUTER + INNER)
    function = copy_function(before.functions["inner"], "new", {}, {})
    mutation = Mutation(before)
    assert (mutation.unique_function_name("inner"), mutation.unique_function_name("new")) == ("inner_1", "new")
    mutation.add_function(function)
    assert mutation.unique_function_name("new") == "new_1"
    with pytest.raises(GraphError, match="there is one of that name"):
        mutation.add_function(function)
    with pytest.raises(GraphError, match="there is one of that name"):
        mutation.add_function(before.functions["inner"])
    after = mutation.apply()
    assert (sorted(before.functions), sorted(after.functions)) == (["inner", "outer"], ["inner", "new", "outer"])
    assert diff_graphs(before, after) == "+ function @new\n"
    verify_rewrite(before, after, may_add=["new"])


def test_i10_functions_are_added_only_as_declared_and_sound_and_never_changed() -> None:
    before = parse_graph(TEXT)
    verify(before)

    def broken(after: Graph, name: str, **options) -> str:
        with pytest.raises(VerifyError) as error:
            verify_rewrite(before, after, **options)
        assert (error.value.invariant, error.value.node) == ("I10", name)
        return str(error.value)

    new = copy_function(before.functions["inner"], "new", {}, {})
    assert "the pass does not say so" in broken(before.with_functions([new]), "new")
    unsound = copy_function(before.functions["inner"], "new", {}, {"n": {"T": DType("int32")}})
    assert "input 0 is float32" in broken(before.with_functions([unsound]), "new", may_add=["new"])
    lost = copy_function(before.functions["outer"], "new", {"inner": "gone"}, {})
    assert "it calls 'gone'" in broken(before.with_functions([lost]), "new", may_add=["new"])
    no_effect = copy_function(before.functions["inner"], "new", {}, {})
    no_effect.control_ret["write"] = "write"
    assert "control output 'write'" in broken(before.with_functions([no_effect]), "new", may_add=["new"])
    changed = parse_graph(TEXT.replace("n = Neg(w)", "n = Abs(w)"))
    assert "changed or removed" in broken(changed, "inner")

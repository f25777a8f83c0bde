"""xla_open: calls with embeddings in them become ordinary ones, all others stay, and a reason is given."""

import pytest
from tensorflow.core.protobuf import config_pb2, rewriter_config_pb2

from graph_passes.compilation.call_config import config_of, for_opened
from graph_passes.compilation.xla_open import XlaOpen
from graph_passes.ir import Graph, Node, function_nodes, print_graph
from tests.support.lines import graph, lookup, variable
from tests.support.rewrite import check_rewrite, graph_of, run

ROUNDS = rewriter_config_pb2.RewriterConfig


def config(**options) -> str:
    """A call's config_proto in the text form."""
    proto = config_pb2.ConfigProto(inter_op_parallelism_threads=3)
    proto.graph_options.rewrite_options.CopyFrom(rewriter_config_pb2.RewriterConfig(**options))
    line = print_graph(Graph({"n": Node("n", "NoOp", attrs={"config_proto": proto.SerializeToString()})}))
    return line.splitlines()[1].removeprefix("n = NoOp() {").removesuffix("}")


def call(name: str = "call", function: str = "step", settings: str | None = None, extra: str = "") -> str:
    settings = config() if settings is None else settings
    types = "Tin = [resource, int32], Tout = [float32]"
    return f"{name} = PartitionedCall(t, ids) {{{types}, _XlaMustCompile = true, {settings}, f = @{function}{extra}}}"


ARGS = [variable("t"), "ids = _Arg() {T = int32, index = 1}"]
INNER_ARGS = ["a = _Arg() {T = resource, index = 0}", "b = _Arg() {T = int32, index = 1}"]
RESULT = "out_RetVal = _Retval(rows) {T = float32, index = 0}"


def step(*lines: str, name: str = "step", attrs: str = "_XlaMustCompile = true, _noinline = true") -> str:
    header = f"function @{name}()" + (f" {{{attrs}}}" if attrs else "")
    return "\n".join([header, *INNER_ARGS, *lines, RESULT])


def opened(*lines: str, calls: str = "", fuel: int | None = None) -> Graph:
    return run(XlaOpen(), graph_of("\n".join([graph(*ARGS, calls or call()), *lines])), fuel).graph


def body(result: Graph, name: str = "step_opened") -> dict[str, Node]:
    return function_nodes(result.functions[name], result.functions)


def test_the_mark_goes_and_the_original_function_stays() -> None:
    result = opened(step(lookup("rows", "a, b")))
    node = result.nodes["call"]
    assert node.attr("_XlaMustCompile") is None
    assert node.attr("f").name == "step_opened"
    assert sorted(result.functions["step"].attr) == ["_XlaMustCompile", "_noinline"]
    assert sorted(result.functions["step_opened"].attr) == ["_noinline"]
    assert body(result)["a"].attr("_handle_shapes")[0].dims == (10, 4)


def test_the_body_is_optimized_with_the_plugin_and_without_what_xla_cannot_compile() -> None:
    settings = config_of(opened(step(lookup("rows", "a, b"))).nodes["call"])
    assert settings is not None
    assert settings.inter_op_parallelism_threads == 3
    options = settings.graph_options.rewrite_options
    assert (options.use_plugin_optimizers, options.remapping) == (ROUNDS.ON, ROUNDS.OFF)
    assert options.memory_optimization == ROUNDS.NO_MEM_OPT
    assert for_opened(settings) == for_opened(settings)


def test_a_call_without_embeddings_and_an_ordinary_call_stay() -> None:
    other = step("rows = ReadVariableOp(a) {dtype = float32}")
    check_rewrite(XlaOpen(), "\n".join([graph(*ARGS, call()), other]), None)
    ordinary = call().replace("_XlaMustCompile = true, ", "")
    check_rewrite(XlaOpen(), "\n".join([graph(*ARGS, ordinary), step(lookup("rows", "a, b"))]), None)
    check_rewrite(XlaOpen(), graph(*ARGS), None)


@pytest.mark.parametrize(
    "settings",
    [
        'config_proto = ""',
        'config_proto = "no proto"',
        config(disable_meta_optimizer=True),
        config(meta_optimizer_iterations=ROUNDS.ONE),
    ],
)
def test_a_function_that_is_not_optimized_stays(settings: str) -> None:
    text = "\n".join([graph(*ARGS, call(settings=settings)), step(lookup("rows", "a, b"))])
    check_rewrite(XlaOpen(), text, None, declined={"call": "not_optimized"})


def test_a_function_with_an_op_that_only_xla_has_stays() -> None:
    only = "bound = XlaSetBound(b, b)"
    text = "\n".join([graph(*ARGS, call()), step(lookup("rows", "a, b"), only)])
    report = check_rewrite(XlaOpen(), text, None, declined={"call": "only_compiled"})
    assert "'bound' is a XlaSetBound" in report.declined[0].detail


def test_fuel_limits_it() -> None:
    text = "\n".join([graph(*ARGS, call()), step(lookup("rows", "a, b"))])
    check_rewrite(XlaOpen(), text, None, declined={"call": "out_of_fuel"}, fuel=0)


def test_functions_inside_are_copied_and_become_part_of_the_opened_one() -> None:
    inner = (
        "rows = PartitionedCall(a, b) {Tin = [resource, int32], Tout = [float32], _XlaMustCompile = true, f = @inner}"
    )
    result = opened(step(inner), step(lookup("rows", "a, b"), name="inner"))
    assert body(result)["rows"].attr("f").name == "inner_opened"
    assert body(result)["rows"].attr("_XlaMustCompile") is None
    assert list(result.functions["inner_opened"].attr) == []
    assert "picasso_opened" not in body(result, "inner_opened")
    assert sorted(result.functions["inner"].attr) == ["_XlaMustCompile", "_noinline"]


CONDITION = "p = Const() {dtype = bool, value = bool[](True)}"


def branching(op: str = "StatelessIf") -> str:
    branches = "cond = @branch, body = @branch" if "While" in op else "then_branch = @branch, else_branch = @branch"
    types = "T = [resource, int32]" if "While" in op else "Tcond = bool, Tin = [resource, int32], Tout = [float32]"
    return f"w = {op}({'' if 'While' in op else 'p, '}a, b) {{{types}, {branches}}}"


WHERE = "w = Where(rows) {T = float32}\nrows = ReadVariableOp(a) {dtype = float32}"


@pytest.mark.parametrize(
    ("op", "inside", "lowered"),
    [
        ("StatelessIf", lookup("rows", "a, b"), True),
        ("If", WHERE, True),
        ("StatelessIf", "rows = ReadVariableOp(a) {dtype = float32}", False),
        ("StatelessWhile", lookup("rows", "a, b"), True),
        ("While", WHERE, False),
    ],
)
def test_conditionals_around_rows_and_loops_around_lookups_are_lowered(op: str, inside: str, lowered: bool) -> None:
    result = opened(step(lookup("rows", "a, b"), CONDITION, branching(op)), step(inside, name="branch", attrs=""))
    assert body(result)["w"].attr("_lower_using_switch_merge", False) is lowered


def test_two_calls_of_one_function_get_a_copy_each() -> None:
    result = opened(step(lookup("rows", "a, b")), calls=call() + "\n" + call("other"))
    assert [result.nodes[name].attr("f").name for name in ("call", "other")] == ["step_opened", "step_opened_1"]


SEEDED = "key = StatelessRandomGetKeyCounter({seed}) {{Tseed = int32}}"


@pytest.mark.parametrize(("seed", "declined"), [("two", {"call": "constant_seed"}), ("b", None)])
def test_random_numbers_from_a_constant_seed_stay_with_xla(seed: str, declined: dict[str, str] | None) -> None:
    two = "two = Const() {dtype = int32, value = int32[2](1, 2)}"
    lines = [two, lookup("rows", "a, b"), SEEDED.format(seed=seed)]
    text = "\n".join([graph(*ARGS, call()), step(*lines)])
    if declined is not None:
        check_rewrite(XlaOpen(), text, None, declined=declined)
    else:
        assert run(XlaOpen(), graph_of(text)).report.rewritten == ["call"]

"""Expressions are equal when they compute the same, and writes become programs."""

import pytest

from graph_passes.analysis.update_expressions import (
    GRADIENT,
    ID,
    PARAMETER,
    ROW,
    SCALAR,
    STATE,
    TABLE,
    Binding,
    Expressions,
    Program,
    ProgramBuilder,
    Write,
)
from graph_passes.ir import TensorRef

RATE, DECAY = TensorRef("rate"), TensorRef("decay")
READ = ("t", "read")


@pytest.fixture
def store() -> Expressions:
    return Expressions()


def build(store: Expressions, *writes: Write, versions: dict | None = None) -> tuple[Program, Binding]:
    builder = ProgramBuilder(store)
    for write in writes:
        builder.add(write, versions or {})
    return builder.finish()


def test_equal_expressions_have_equal_numbers(store: Expressions) -> None:
    rate, gradient = store.leaf(PARAMETER, RATE), store.leaf(GRADIENT, "g")
    assert store.make("mul", rate, gradient) == store.make("mul", gradient, rate)
    assert store.make("sub", rate, gradient) != store.make("sub", gradient, rate)
    assert store.make("mul", rate, rate) == store.make("square", rate)
    assert store.leaf(PARAMETER, RATE) == rate
    assert store.leaf(PARAMETER, DECAY) != rate


@pytest.mark.parametrize("op", ["add", "mul"])
def test_the_order_of_operands_does_not_depend_on_what_came_first(op: str) -> None:
    """Two graphs that meet the operands in different orders give the same program."""
    programs = set()
    for first in (PARAMETER, STATE):
        store = Expressions()
        data = {PARAMETER: RATE, STATE: READ}
        leaves = {kind: store.leaf(kind, data[kind]) for kind in (first, *data)}
        value = store.make(op, leaves[first], leaves[STATE if first == PARAMETER else PARAMETER])
        programs.add(build(store, Write("t", "assign", value), versions={READ: 0})[0])
    assert len(programs) == 1


def test_forms_tell_what_is_computed_and_not_from_what(store: Expressions) -> None:
    a, b, g = store.leaf(PARAMETER, RATE), store.leaf(PARAMETER, DECAY), store.leaf(GRADIENT, "g")
    assert store.form(store.make("mul", a, g)) == store.form(store.make("mul", b, g))
    assert store.form(store.make("mul", a, g)) != store.form(store.make("add", a, g))
    assert store.form(a) != store.form(g)


def test_levels(store: Expressions) -> None:
    p, t, g = store.leaf(PARAMETER, RATE), store.leaf(TABLE, RATE), store.leaf(GRADIENT, "g")
    state = store.leaf(STATE, READ)
    assert [store[number].level for number in (p, t, g, state)] == [SCALAR, ROW, ID, ROW]
    assert store[store.make("mul", p, p)].level == SCALAR
    assert store[store.make("mul", p, state)].level == ROW
    assert store[store.make("mul", state, g)].level == ID
    assert store[store.make("segment_sum", g)].level == ROW
    assert store[store.make("touched_add", p, store.make("segment_sum", g))].level == ROW


def test_leaves_are_found_once_and_in_order(store: Expressions) -> None:
    a, b, c = (store.leaf(PARAMETER, TensorRef(name)) for name in "abc")
    inner = store.make("sub", b, a)
    assert store.leaves([store.make("div", inner, c), inner], PARAMETER) == [b, a, c]
    assert store.leaves([inner], GRADIENT) == []


def test_leaves_of_an_expression_with_many_paths_are_found_in_one_sweep(store: Expressions) -> None:
    value = store.leaf(PARAMETER, RATE)
    for _ in range(200):
        value = store.make("add", value, value)
    assert store.leaves([value], PARAMETER) == [store.leaf(PARAMETER, RATE)]


def test_a_program_names_each_step_once(store: Expressions) -> None:
    rate, gradient = store.leaf(PARAMETER, RATE), store.leaf(GRADIENT, ("g",))
    step = store.make("mul", rate, gradient)
    writes = [Write("m", "scatter_add", step), Write("t", "scatter_sub", step)]
    program, binding = build(store, *writes)
    rows = store.make("mul", rate, gradient)
    assert rows == step
    assert sorted(program.instructions[0].split()) == ["g0", "mul", "p0"]
    assert program.instructions[1:] == ("scatter_add s0 v0", "scatter_sub s1 v0")
    assert (program.results, program.sparse) == (("v1", "v2"), True)
    assert binding == Binding(("m", "t"), (("g",),), (), (RATE,))
    steps = f"v0 = {program.instructions[0]}; v1 = scatter_add s0 v0; v2 = scatter_sub s1 v0"
    assert str(program) == f"{steps}; s0 = v1; s1 = v2"


def test_reads_see_as_many_writes_as_came_before_them(store: Expressions) -> None:
    before, after = store.leaf(STATE, ("m", "r0")), store.leaf(STATE, ("m", "r1"))
    rate = store.leaf(PARAMETER, RATE)
    first = Write("m", "assign", store.make("div", before, rate))
    second = Write("t", "add", store.make("sub", after, before))
    program, binding = build(store, first, second, versions={("m", "r0"): 0, ("m", "r1"): 1})
    assert program.instructions == ("div s0 p0", "sub v0 s0", "add s1 v1")
    assert (program.results, program.sparse) == (("v0", "v2"), False)
    assert binding.states == ("m", "t")


def test_a_state_that_is_only_read_keeps_its_value(store: Expressions) -> None:
    value = store.make("segment_sum", store.leaf(GRADIENT, ("g",)))
    value = store.make("div", value, store.leaf(STATE, ("m", "r")))
    program, _ = build(store, Write("t", "touched_sub", value), versions={("m", "r"): 0})
    assert program.results == ("s0", "v2")
    assert str(program).endswith("; s1 = v2")


def test_the_newest_version_is_what_a_rule_means_by_a_state(store: Expressions) -> None:
    newest = store.leaf(STATE, ("m", None))
    rate = store.leaf(PARAMETER, RATE)
    program, _ = build(store, Write("m", "sub", rate), Write("m", "assign", store.make("neg", newest)))
    assert program.instructions == ("sub s0 p0", "neg v0")
    assert program.results == ("v1",)

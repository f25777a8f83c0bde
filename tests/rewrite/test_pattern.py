"""Patterns: what matches, what is bound, and what stops a match."""

import pytest

from graph_passes.ir import TensorRef
from graph_passes.rewrite.pattern import AnyTensor, Match, MatchFailure, Op, Scalar, match
from tests.support.lines import arg, graph, scalar
from tests.support.rewrite import graph_of

BASE = "\n".join([arg("x", "float32"), arg("y", "float32"), arg("k"), scalar("two", 2), scalar("three", 3)])
ADD = "add = AddV2({}) {{T = float32}}"
NEG = "neg = Neg(add) {T = float32}"


def run(pattern: Op, *lines: str, root: str = "neg", port: int = 0, **keep) -> Match | MatchFailure:
    return match(graph_of(graph(BASE, *lines, **keep)), pattern, TensorRef(root, port))


def pattern(fate: str = "keep", **options) -> Op:
    return Op(
        ("Neg",),
        (Op(("AddV2",), (AnyTensor("a"), AnyTensor("b")), name="sum", fate=fate, **options),),
        name="root",
        fate=fate,
    )


def test_a_match_binds_tensors_and_nodes() -> None:
    found = run(pattern(), ADD.format("x, y"), NEG)
    assert found.tensors == {"a": TensorRef("x"), "b": TensorRef("y")}
    assert {key: node.name for key, node in found.nodes.items()} == {"root": "neg", "sum": "add"}


def test_nodes_without_a_name_are_bound_under_their_own() -> None:
    found = run(Op(("Neg",), (AnyTensor("a"),)), ADD.format("x, y"), NEG)
    assert list(found.nodes) == ["neg"]


def test_one_name_twice_must_be_one_tensor() -> None:
    square = Op(("AddV2",), (AnyTensor("a"), AnyTensor("a")))
    assert run(square, ADD.format("x, x"), root="add").tensors == {"a": TensorRef("x")}
    assert run(square, ADD.format("x, y"), root="add") == MatchFailure("other_tensor", "y")
    split = "s = Split(k, x) {T = float32, num_split = 2}"
    assert run(square, split, ADD.format("s, s:1"), root="add") == MatchFailure("other_tensor", "s")


def test_inputs_of_a_commutative_op_may_be_swapped() -> None:
    doubled = Op(("Mul",), (Scalar("factor"), AnyTensor("a")), commutative=True)
    for inputs in ("two, k", "k, two"):
        found = run(doubled, f"m = Mul({inputs}) {{T = int32}}", root="m")
        assert (found.scalars, found.tensors) == ({"factor": 2}, {"a": TensorRef("k")})
    ordered = Op(("Mul",), (Scalar("factor"), AnyTensor("a")))
    assert run(ordered, "m = Mul(k, two) {T = int32}", root="m") == MatchFailure("not_the_constant", "k")


def test_a_failed_order_of_a_commutative_op_leaves_no_binding_behind() -> None:
    inner = Op(("AddV2",), (AnyTensor("a"), Scalar("n")), commutative=True)
    outer = Op(("Mul",), (inner, AnyTensor("a")), commutative=True)
    found = run(outer, "add = AddV2(three, k) {T = int32}", "m = Mul(k, add) {T = int32}", root="m")
    assert (found.scalars, found.tensors) == ({"n": 3}, {"a": TensorRef("k")})


def test_scalars_have_a_given_value_or_a_name() -> None:
    mul = "m = Mul(k, two) {T = int32}"
    assert isinstance(run(Op(("Mul",), (AnyTensor("a"), Scalar(value=2))), mul, root="m"), Match)
    assert run(Op(("Mul",), (AnyTensor("a"), Scalar(value=3))), mul, root="m") == MatchFailure(
        "not_the_constant", "two"
    )
    wide = "wide = Const() {dtype = int32, value = int32[1](2)}"
    stopped = run(Op(("Mul",), (AnyTensor("a"), Scalar("n"))), wide, "m = Mul(k, wide) {T = int32}", root="m")
    assert stopped == MatchFailure("not_the_constant", "wide")


def test_a_condition_on_a_node_stops_a_match() -> None:
    lines = [ADD.format("x, y"), NEG]
    assert isinstance(run(pattern(where=lambda node: node.attr("T") == "float32"), *lines), Match)
    assert run(pattern(where=lambda node: node.attr("T") == "int32"), *lines) == MatchFailure("attributes", "add")


@pytest.mark.parametrize("fate", ["keep", "remove"])
def test_another_op_or_another_number_of_inputs_stops_a_match(fate: str) -> None:
    assert run(pattern(fate), "add = Sub(x, y) {T = float32}", NEG) == MatchFailure("other_op", "add")
    assert run(Op(("AddN",), (AnyTensor("a"),)), "n = AddN(x, y) {N = 2, T = float32}", root="n") == MatchFailure(
        "attributes", "n"
    )


def test_a_fed_node_or_another_output_than_the_first_stops_a_match() -> None:
    lines = [ADD.format("x, y"), NEG]
    assert run(pattern(), *lines, feeds=["add"]) == MatchFailure("fed_or_port", "add")
    split = "s = Split(k, x) {T = float32, num_split = 2}"
    assert run(Op(("Split",), (AnyTensor("a"), AnyTensor("b"))), split, root="s", port=1) == MatchFailure(
        "fed_or_port", "s"
    )


def test_a_node_to_remove_may_be_used_inside_the_match_only() -> None:
    lines = [ADD.format("x, y"), NEG]
    assert isinstance(run(pattern("remove"), *lines), Match)
    other = "other = Abs(add) {T = float32}"
    assert run(pattern("remove"), *lines, other) == MatchFailure("used_elsewhere", "add")
    assert run(pattern("remove"), *lines, "wait = NoOp(^add)") == MatchFailure("used_elsewhere", "add")
    assert isinstance(run(pattern("keep"), *lines, other), Match)


def test_users_of_the_root_are_for_the_rewrite_to_redirect() -> None:
    assert isinstance(run(pattern("remove"), ADD.format("x, y"), NEG, "user = Abs(neg) {T = float32}"), Match)


@pytest.mark.parametrize("keep", [{"fetches": ["add"]}, {"preserve": ["add"]}])
def test_a_node_that_must_stay_or_waits_for_something_is_not_removed(keep) -> None:
    lines = [ADD.format("x, y"), NEG]
    assert run(pattern("remove"), *lines, **keep) == MatchFailure("must_stay", "add")
    assert isinstance(run(pattern("keep"), *lines, **keep), Match)
    assert run(pattern("remove"), ADD.format("x, y, ^k"), NEG) == MatchFailure("must_stay", "add")

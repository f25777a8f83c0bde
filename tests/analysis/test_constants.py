"""Values that a graph states outright."""

import numpy as np
import pytest

from graph_passes.analysis.constants import constant, scalar
from graph_passes.ir import DType, Graph, Node, TensorRef
from tests.support.lines import graph
from tests.support.rewrite import graph_of

LINES = """
one = Const() {dtype = int32, value = int32[](7)}
many = Const() {dtype = float32, value = float32[1,2](1.5, 2.5)}
single = Const() {dtype = float32, value = float32[1,1](2.5)}
same = Identity(many) {T = float32}
again = Identity(same) {T = float32}
arg = _Arg() {T = float32, index = 0}
through = Identity(arg) {T = float32}
sum = Neg(one) {T = int32}
"""


@pytest.mark.parametrize("name", ["many", "same", "again"])
def test_a_const_is_found_through_identities(name: str) -> None:
    found = constant(graph_of(graph(LINES)), TensorRef(name))
    assert found is not None
    assert (found.tolist(), found.dtype) == ([[1.5, 2.5]], np.float32)


@pytest.mark.parametrize("name", ["arg", "through", "sum"])
def test_what_is_computed_or_given_is_no_constant(name: str) -> None:
    assert constant(graph_of(graph(LINES)), TensorRef(name)) is None


@pytest.mark.parametrize("fed", ["many", "same"])
def test_what_is_fed_is_no_constant(fed: str) -> None:
    assert constant(graph_of(graph(LINES, feeds=[fed])), TensorRef("again")) is None


def test_a_scalar_has_one_element_of_any_rank() -> None:
    found = graph_of(graph(LINES))
    assert scalar(found, TensorRef("one")) == 7
    assert scalar(found, TensorRef("single")) == 2.5
    assert scalar(found, TensorRef("many")) is None
    assert scalar(found, TensorRef("arg")) is None


def test_a_const_that_a_pass_made_holds_an_array() -> None:
    node = Node("made", "Const", attrs={"dtype": DType("int32"), "value": np.asarray(7, np.int32)})
    assert scalar(Graph({"made": node}), TensorRef("made")) == 7

"""Rules of training ops as data: they fit the ops' arguments. What they compute: tests/packing/test_fused_updates."""

import pytest
from tensorflow.core.framework import types_pb2

from graph_passes.analysis.update_expressions import PARAMETER, STATE, TABLE, Expressions, Program, Write
from graph_passes.analysis.update_rules import FUSED_RULES, fused_writes, rule_name
from graph_passes.ir import TensorRef
from graph_passes.ir.op_defs import op_def


@pytest.mark.parametrize("rule", FUSED_RULES)
def test_a_rule_reads_and_writes_arguments_of_its_op(rule: str) -> None:
    definition = op_def(rule.split()[0])
    states = [item.name for item in definition.input_arg if item.type == types_pb2.DT_RESOURCE]
    others = [item.name for item in definition.input_arg if item.name not in (*states, "indices")]
    store = Expressions()
    inputs = {name: store.leaf(STATE, (name, None)) for name in states}
    inputs |= {name: store.leaf(TABLE if name in ("grad", "delta") else PARAMETER, TensorRef(name)) for name in others}
    writes = fused_writes(FUSED_RULES[rule], store, inputs, {name: name for name in states})
    assert [write.root for write in writes if write.root == "var"] == ["var"]
    assert {write.root for write in writes} == set(states)
    assert all(write.op in ("assign", "add", "sub") for write in writes)
    read = {store[leaf].data for op in (TABLE, PARAMETER) for leaf in store.leaves([w.value for w in writes], op)}
    unused = {TensorRef(name) for name in others} - read
    assert unused <= {TensorRef("lr_power")}
    assert not unused or "sqrt" in rule


def test_local_names_operators_and_calls() -> None:
    store = Expressions()
    inputs = {name: store.leaf(PARAMETER, TensorRef(name)) for name in "ab"} | {"t": store.leaf(STATE, ("t", None))}
    writes = fused_writes("c = a - 2\nt += sqrt(c) / (a * b)\nt = max(t, c)", store, inputs, {"t": "root"})
    c = store.make("sub", inputs["a"], store.leaf(PARAMETER, 2.0))
    value = store.make("div", store.make("sqrt", c), store.make("mul", inputs["a"], inputs["b"]))
    assert writes == [Write("root", "add", value), Write("root", "assign", store.make("max", inputs["t"], c))]


def test_programs_that_are_known_have_names() -> None:
    step = Program(("mul p0 g0", "scatter_sub s0 v0"), ("v1",), True)
    assert rule_name(step).startswith("SGD, sparse gradient")
    assert rule_name(Program(("neg s0",), ("v0",), False)) == ""

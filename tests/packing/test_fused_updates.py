"""update_packing: TensorFlow's own training ops. The program of each rule gives what the op gives, bit for bit."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework import op_def_pb2, types_pb2

from graph_passes.analysis.update_rules import FUSED_RULES
from graph_passes.ir import Graph
from graph_passes.ir.op_defs import op_def
from graph_passes.ir.text import print_graph
from graph_passes.packing import update_packing
from graph_passes.packing.update_packing import UpdatePacking
from tests.support.lines import arg, graph, variable
from tests.support.rewrite import graph_of, run
from tests.support.update_lines import number, op, segment_sum, unique
from tests.support.update_values import updated_states

ROWS, IDS = 60, 40
SCALARS = {
    "lr": 0.05,
    "alpha": 0.05,
    "momentum": 0.9,
    "rho": 0.9,
    "epsilon": 1e-3,
    "beta1": 0.9,
    "beta2": 0.99,
    "beta1_power": 0.81,
    "beta2_power": 0.98,
    "l1": 0.1,
    "l2": 0.05,
}


def values(definition: op_def_pb2.OpDef, row: int, dtype: type, sparse: bool) -> dict[str, np.ndarray]:
    """Random values for all arguments of a training op; a state stands for its variable."""
    random = np.random.default_rng(1)
    found = {}
    for argument in definition.input_arg:
        if argument.type == types_pb2.DT_RESOURCE:
            found[argument.name] = (random.random((ROWS, row)) + 0.1).astype(dtype)
        elif argument.name == "indices":
            found["indices"] = random.permutation(ROWS)[:IDS].astype(np.int32)
        elif argument.name in ("grad", "delta"):
            found[argument.name] = (random.random((IDS if sparse else ROWS, row)) - 0.5).astype(dtype)
        elif argument.name != "lr_power":
            found[argument.name] = np.asarray(SCALARS[argument.name], dtype)
    return found


def training_graph(rule: str, definition: op_def_pb2.OpDef, row: int, dtype: str, power: float) -> Graph:
    """The op on ids that Unique made distinct, as every front end calls it."""
    sparse, lines, inputs = "indices" in [a.name for a in definition.input_arg], [], []
    for index, argument in enumerate(definition.input_arg):
        name = argument.name
        inputs.append({"indices": "u", "grad": "sums"}.get(name, name) if sparse else name)
        if argument.type == types_pb2.DT_RESOURCE:
            lines.append(variable(name, f"<{ROWS},{row}>", dtype, index))
        elif name == "indices":
            lines += [arg(name, index=index), unique("u", name), op("count", "Size", "u", "<>", "int32")]
        elif name in ("grad", "delta"):
            lines.append(arg(name, dtype, f"<{'?' if sparse else ROWS},{row}>", index))
        else:
            lines.append(number(name, power) if name == "lr_power" else arg(name, dtype, "<>", index))
    if "lr_power" in inputs and dtype != "float32":
        lines[inputs.index("lr_power") + (sparse and 2)] = number("lr_power", power, dtype)
    if sparse:
        lines.append(segment_sum("sums", "grad, u:1, count", f"<?,{row}>", dtype))
    attrs = f"T = {dtype}" + (", Tindices = int32" if sparse else "")
    attrs += ", use_nesterov = true" if rule.endswith("nesterov") else ""
    return graph_of(graph(*lines, f"w = {rule.split()[0]}({', '.join(inputs)}) {{{attrs}}}"))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("rule", FUSED_RULES)
def test_a_training_op_and_its_rule_give_the_same_bits(rule: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(update_packing, "_no_gain", lambda group: "")
    definition = op_def(rule.split()[0])
    power, row = -0.5 if "sqrt" in rule else -0.7, 1 if "column" in rule else 5
    before = training_graph(rule, definition, row, dtype, power)
    tensors = values(definition, row, dtype, "Sparse" in rule)
    result = run(UpdatePacking(), before)
    (packed,) = result.report.packed
    for node in result.graph.of("Const"):
        value = node.attr("value")
        tensors[node.name] = value if isinstance(value, np.ndarray) else tf.make_ndarray(value)
    found = updated_states(result.graph.nodes[packed.node], tensors)

    arguments = [(argument.name, argument.type == types_pb2.DT_RESOURCE) for argument in definition.input_arg]
    states = {name: tf.Variable(tensors[name]) for name, is_state in arguments if is_state}
    call = {name: states[name].handle if is_state else tensors[name] for name, is_state in arguments}
    nesterov = {"use_nesterov": True} if rule.endswith("nesterov") else {}
    getattr(tf.raw_ops, definition.name)(**call, **nesterov)
    for name, state in sorted(states.items()):
        np.testing.assert_array_equal(found[name], state.numpy(), err_msg=f"{name} of {print_graph(before)}")

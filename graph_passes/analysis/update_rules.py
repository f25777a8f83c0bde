"""Optimizers' update rules as data.

FUSED_RULES says what TensorFlow's own training ops do (core/kernels/training_ops.cc), one rounding per operation. What
an update is called, once it was traced from the arithmetic in a graph, stands in known_rules.txt.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import cache
from importlib import resources

from graph_passes.analysis.update_expressions import PARAMETER, Expressions, Program, Write

_MOMENTUM = "accum = accum * momentum + grad"
_KERAS_MOMENTUM = "accum = accum * momentum - grad * lr"
_ADAM = """
alpha = lr * sqrt(1 - beta2_power) / (1 - beta1_power)
m += (grad - m) * (1 - beta1)
v += (square(grad) - v) * (1 - beta2)
"""
_FTRL = """
linear += grad - (new_root - root) / lr * var
var = select(greater(abs(linear), l1), (l1 * sign(linear) - linear) / (new_root / lr + 2 * l2), 0)
accum = new_accum
"""
_FTRL_COLUMN = """
power = 0 - lr_power
linear = linear + grad - (pow(new_accum, power) - pow(accum, power)) / lr * var
var = (max(min(linear, l1), neg(l1)) - linear) / (new_root / lr + 2 * l2)
accum = new_accum
"""
_POWERS = """
new_accum = accum + square(grad)
power = 0 - lr_power
new_root = pow(new_accum, power)
root = pow(accum, power)
"""
_SQUARE_ROOTS = """
new_accum = accum + square(grad)
new_root = sqrt(new_accum)
root = sqrt(accum)
"""
_ADAMAX = """
m += (grad - m) * (1 - beta1)
v = max(beta2 * v, abs(grad))
var -= lr / (1 - beta1_power) * (m / (v + epsilon))
"""
_RMS = """
ms += (square(grad) - ms) * (1 - rho)
mom = mom * momentum + (grad * lr) / sqrt(ms + epsilon)
var -= mom
"""
_SPARSE_RMS = """
ms = ms * rho + square(grad) * (1 - rho)
mom = mom * momentum + row_rsqrt(ms + epsilon) * lr * grad
var -= mom
"""
_CENTERED_RMS = """
ms += (square(grad) - ms) * (1 - rho)
mg += (grad - mg) * (1 - rho)
mom = mom * momentum + (grad * lr) / sqrt((ms - square(mg)) + epsilon)
var -= mom
"""
_SPARSE_CENTERED_RMS = """
ms = ms * rho + square(grad) * (1 - rho)
mg = mg * rho + grad * (1 - rho)
mom = mom * momentum + row_rsqrt(ms + epsilon - square(mg)) * lr * grad
var -= mom
"""
_ADADELTA = """
accum = accum * rho + square(grad) * (1 - rho)
update = sqrt(accum_update + epsilon) * rsqrt(accum + epsilon) * grad
var -= update * lr
accum_update = accum_update * rho + square(update) * (1 - rho)
"""
_ADAGRAD = "accum += square(grad)\nvar -= grad * lr * rsqrt(accum)"
_ADAGRAD_V2 = "accum += square(grad)\nvar -= grad * lr / (sqrt(accum) + epsilon)"


def _by_row(rule: str) -> str:
    """The rule in a sparse op, which works row by row: rsqrt ends its packets with each row, not with the tensor."""
    return rule.replace("rsqrt(", "row_rsqrt(")


# By op, or by op and a variant: " nesterov" where its attribute use_nesterov is set, " sqrt" where its lr_power is
# known to be -0.5, " column" where rows have one element. Names are those of the op's arguments.
FUSED_RULES: dict[str, str] = {
    "ResourceApplyGradientDescent": "var -= delta * alpha",
    "ResourceApplyMomentum": f"{_MOMENTUM}\nvar -= accum * lr",
    "ResourceApplyMomentum nesterov": f"{_MOMENTUM}\nvar -= grad * lr + accum * momentum * lr",
    "ResourceApplyKerasMomentum": f"{_KERAS_MOMENTUM}\nvar += accum",
    "ResourceApplyKerasMomentum nesterov": f"{_KERAS_MOMENTUM}\nvar += accum * momentum - grad * lr",
    "ResourceApplyAdagrad": _ADAGRAD,
    "ResourceApplyAdagradV2": _ADAGRAD_V2,
    "ResourceApplyAdam": f"{_ADAM}\nvar -= (m * alpha) / (sqrt(v) + epsilon)",
    "ResourceApplyAdam nesterov": f"{_ADAM}\nvar -= ((grad * (1 - beta1) + beta1 * m) * alpha) / (sqrt(v) + epsilon)",
    "ResourceApplyAdamWithAmsgrad": f"{_ADAM}\nvhat = max(vhat, v)\nvar -= (m * alpha) / (sqrt(vhat) + epsilon)",
    "ResourceApplyAdaMax": _ADAMAX,
    "ResourceApplyRMSProp": _RMS,
    "ResourceApplyCenteredRMSProp": _CENTERED_RMS,
    "ResourceApplyAdadelta": _ADADELTA,
    "ResourceApplyFtrl": _POWERS + _FTRL,
    "ResourceApplyFtrl sqrt": _SQUARE_ROOTS + _FTRL,
    "ResourceSparseApplyMomentum": f"{_MOMENTUM}\nvar -= accum * lr",
    "ResourceSparseApplyMomentum nesterov": f"{_MOMENTUM}\nvar -= grad * lr + lr * momentum * accum",
    "ResourceSparseApplyKerasMomentum": f"{_KERAS_MOMENTUM}\nvar += accum",
    "ResourceSparseApplyKerasMomentum nesterov": f"{_KERAS_MOMENTUM}\nvar += accum * momentum - grad * lr",
    "ResourceSparseApplyAdagrad": _by_row(_ADAGRAD),
    "ResourceSparseApplyAdagrad column": "accum += square(grad)\nvar -= grad * lr / sqrt(accum)",
    "ResourceSparseApplyAdagradV2": _ADAGRAD_V2,
    "ResourceSparseApplyRMSProp": _SPARSE_RMS,
    "ResourceSparseApplyCenteredRMSProp": _SPARSE_CENTERED_RMS,
    "ResourceSparseApplyAdadelta": _by_row(_ADADELTA),
    "ResourceSparseApplyFtrl": _POWERS + _FTRL,
    "ResourceSparseApplyFtrl sqrt": _SQUARE_ROOTS + _FTRL,
    "ResourceSparseApplyFtrl column": _POWERS + _FTRL_COLUMN,
    "ResourceSparseApplyFtrl sqrt column": _SQUARE_ROOTS + _FTRL_COLUMN,
}

_OPERATORS: dict[type, str] = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div"}


def fused_writes(
    rule: str, expressions: Expressions, inputs: Mapping[str, int], roots: Mapping[str, str]
) -> list[Write]:
    """The writes that a rule makes, in order.

    Args:
        rule: a value of FUSED_RULES.
        expressions: where their values are stored.
        inputs: the expression of each argument of the op; a state stands for its newest version.
        roots: the variable behind each argument that is one.
    """
    names = dict(inputs)
    writes = []
    for step in _parsed(rule):
        target = step.target if isinstance(step, ast.AugAssign) else step.targets[0]
        assert isinstance(target, ast.Name)
        value = _value(step.value, names, expressions)
        if target.id not in roots:
            names[target.id] = value
            continue
        op = _OPERATORS[type(step.op)] if isinstance(step, ast.AugAssign) else "assign"
        writes.append(Write(roots[target.id], op, value))
    return writes


@cache
def _parsed(rule: str) -> tuple[ast.Assign | ast.AugAssign, ...]:
    steps = ast.parse(rule).body
    assert all(isinstance(step, (ast.Assign, ast.AugAssign)) for step in steps)
    return tuple(steps)  # type: ignore[arg-type]


def _value(node: ast.expr, names: Mapping[str, int], expressions: Expressions) -> int:
    if isinstance(node, ast.Name):
        return names[node.id]
    if isinstance(node, ast.Constant):
        return expressions.leaf(PARAMETER, float(node.value))  # type: ignore[arg-type]
    if isinstance(node, ast.BinOp):
        args = [_value(side, names, expressions) for side in (node.left, node.right)]
        return expressions.make(_OPERATORS[type(node.op)], *args)
    assert isinstance(node, ast.Call)
    assert isinstance(node.func, ast.Name)
    return expressions.make(node.func.id, *[_value(arg, names, expressions) for arg in node.args])


def rule_name(program: Program) -> str:
    """What a program is called; "" when it is no rule of `known_rules.txt`."""
    return _rule_names().get(str(program), "")


@cache
def _rule_names() -> dict[str, str]:
    """Names by program, from lines `name: program`."""
    text = resources.files(__package__).joinpath("known_rules.txt").read_text()
    lines = [line.partition(": ") for line in text.splitlines() if line and not line.startswith("#")]
    return {program: name for name, _, program in lines}

"""TensorFlow's elementwise ops, by the names that they have in update programs."""

from __future__ import annotations

ELEMENTWISE = {
    "AddV2": "add",
    "Add": "add",
    "Sub": "sub",
    "Mul": "mul",
    "RealDiv": "div",
    "Div": "div",
    "Maximum": "max",
    "Minimum": "min",
    "SquaredDifference": "squared_difference",
    "DivNoNan": "div_no_nan",
    "Neg": "neg",
    "Square": "square",
    "Sqrt": "sqrt",
    "Rsqrt": "rsqrt",
    "Abs": "abs",
    "Sign": "sign",
    "Reciprocal": "reciprocal",
    "Inv": "reciprocal",
    "Greater": "greater",
    "GreaterEqual": "greater_equal",
    "Less": "less",
    "LessEqual": "less_equal",
    "Equal": "equal",
    "NotEqual": "not_equal",
    "SelectV2": "select",
    "Select": "select",
    "Pow": "pow",
}
OF_UNIQUE_ROWS = ELEMENTWISE | {"Rsqrt": "unique_rsqrt"}  # its bits depend on where in a tensor an element stands
COMPOSITION = "_UnaryOpsComposition"  # several unary ops, one after the other, as Grappler puts them together

"""Runs the program of a packed update in NumPy, on whole tables: slow, and easy to read.

A value of rows is an array [rows, row], one of ids [number of ids, row], a scalar has no dimensions. Every instruction
is rounded to the dtype of the variables, as the separate ops of TensorFlow are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from graph_passes.ir import Node
from graph_passes.ir.op_defs import PACKED_SPARSE_UPDATE

ELEMENTWISE = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "max": np.maximum,
    "min": np.minimum,
    "pow": tf.pow,
    "squared_difference": lambda a, b: (a - b) * (a - b),
    "div_no_nan": lambda a, b: np.where(b == 0, np.zeros_like(a / b), a / b),
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "select": lambda c, a, b: np.where(c != 0, a, b),
    "neg": np.negative,
    "square": lambda a: a * a,
    "sqrt": np.sqrt,
    "rsqrt": tf.math.rsqrt,
    "unique_rsqrt": tf.math.rsqrt,
    "row_rsqrt": lambda a: np.stack([tf.math.rsqrt(row) for row in a]),
    "reciprocal": tf.math.reciprocal,
    "abs": np.abs,
    "sign": np.sign,
}
_STEPS = {"add": np.add, "sub": np.subtract, "update": lambda old, new: new}


def updated_states(node: Node, tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What each variable of a packed update of one table, whose ids and gradients are read whole, holds afterwards.

    Args:
        node: the packed update.
        tensors: the value behind each of its inputs, by name; of a handle that of its variable, [rows, row].
    """
    values = [tensors[ref.node] for ref in node.inputs]
    handles = [ref.node for ref in node.inputs[: node.attr("num_variables")]]
    ids, rest = _cut(values[len(handles) :], len(node.attr("ids_types", [])))
    gradients, scalars = _cut(rest, node.attr("num_gradients"))
    states = [handles[number] for number in node.attr("table_variables")]
    sparse = node.op == PACKED_SPARSE_UPDATE
    run = _Run(tensors[states[0]], np.concatenate([np.zeros(0, int), *ids]).astype(int), sparse)
    named = {f"s{i}": tensors[name] for i, name in enumerate(states)}
    named |= {f"g{i}": gradients[number] for i, number in enumerate(node.attr("segment_gradients"))}
    named |= {f"t{i}": gradients[number] for i, number in enumerate(node.attr("table_gradients"))}
    named |= {f"p{i}": scalars[number] for i, number in enumerate(node.attr("table_parameters"))}
    for number, step in enumerate(node.attr("program")):
        named[f"v{number}"] = run.step(step.decode(), named)
    return {name: named[result.decode()] for name, result in zip(states, node.attr("results"), strict=True)}


def _cut(values: Sequence[np.ndarray], count: int) -> tuple[Sequence[np.ndarray], Sequence[np.ndarray]]:
    return values[:count], values[count:]


class _Run:
    """One run of a program over one table."""

    def __init__(self, like: np.ndarray, ids: np.ndarray, sparse: bool):
        self._like, self._ids, self._sparse = like, ids, sparse
        self._id_level: set[str] = set()

    def step(self, step: str, values: Mapping[str, np.ndarray]) -> np.ndarray:
        """The value of one instruction."""
        opcode, *names = step.split()
        operands = [values[name] for name in names]
        per_id = [name[0] == "g" or name in self._id_level for name in names]
        with np.errstate(all="ignore"):
            if opcode in ELEMENTWISE:
                if any(per_id):
                    self._id_level.add(f"v{sum(name[0] == 'v' for name in values)}")
                    operands = [self._on_ids(*pair) for pair in zip(operands, per_id, strict=True)]
                return self._apply(ELEMENTWISE[opcode], operands)
            start = np.zeros_like(self._like) if opcode == "segment_sum" else operands[0]
            after = np.array(np.broadcast_to(start, self._like.shape))
            move = _STEPS[opcode.replace("segment_sum", "scatter_add").split("_")[1]]
            if opcode.startswith("touched"):
                touched = np.isin(np.arange(len(after)), self._ids)[:, None]
                return np.where(touched, move(after, operands[1]), after)
            rows = np.broadcast_to(self._on_ids(operands[-1], per_id[-1]), (len(self._ids), after.shape[1]))
            for row, value in zip(self._ids, rows, strict=True):
                after[row] = move(after[row], value)
            return after

    def _apply(self, function: Callable[..., Any], operands: Sequence[np.ndarray]) -> np.ndarray:
        """Row by row in a sparse op, as training ops work: an element's place in a vector can change its last bit."""
        arrays = np.broadcast_arrays(*operands)
        if self._sparse and arrays[0].ndim:
            return np.stack([np.asarray(function(*row)) for row in zip(*arrays, strict=True)]).astype(self._like.dtype)
        return np.asarray(function(*arrays)).astype(self._like.dtype)

    def _on_ids(self, value: np.ndarray, per_id: bool) -> np.ndarray:
        return value if per_id or value.ndim == 0 else value[self._ids]

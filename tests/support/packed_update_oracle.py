"""A slow, readable NumPy oracle of the packed updates, and the description of a call that both understand.

A program is run on whole tables: a value of rows is an array [rows, row], a value of ids one of [ids of the table,
row], a parameter a number. Only at the end the sparse op takes the rows that ids name and leaves the others.
"""

from dataclasses import dataclass, field

import numpy as np
import tensorflow as tf

from picasso_tf.bridge import library
from tests.support.packed_lookup_oracle import Lookup, effective_ids


@dataclass(frozen=True)
class Segment:
    """Ids of one table; the fields are the op's `segment_*` attributes. A gradient is (number, first, span, pitch).

    `pools` holds for each gradient (pool, combiner), pool being -1 where it has a row for each id, and -2 where each
    of its rows is of equally many; empty: all are -1. `weights` holds for each gradient which weights or mask its ids
    have, or -1; empty: none have.
    """

    table: int
    ids: int
    gradients: tuple[tuple[int, int, int, int], ...] = ()
    column: int = -1
    columns: int = 0
    wrap: int = 0
    narrow: bool = False
    pools: tuple[tuple[int, str], ...] = ()
    fill: int = -1
    weights: tuple[int, ...] = ()


@dataclass(frozen=True)
class Table:
    """Numbers of the variables, scalars and gradients that are its states, parameters and table gradients."""

    states: tuple[int, ...]
    parameters: tuple[int, ...] = ()
    gradients: tuple[int, ...] = ()
    name: str = "table"


@dataclass(frozen=True)
class Spec:
    """All attributes of a call."""

    program: tuple[str, ...]
    results: tuple[str, ...]
    tables: tuple[Table, ...]
    segments: tuple[Segment, ...] = field(default=())
    drop_negative: bool = False
    num_row_gradients: int = 1

    def attributes(self) -> dict:
        """The attributes of the op, by name."""
        first = self.tables[0]
        segments = {
            f"segment_{key}": [getattr(segment, key) for segment in self.segments]
            for key in ("table", "ids", "column", "columns", "wrap", "narrow")
        }
        gradients = [gradient for segment in self.segments for gradient in segment.gradients]
        return {
            **segments,
            **self._pooling(),
            "program": list(self.program),
            "results": list(self.results),
            "num_states": len(first.states),
            "num_row_gradients": self.num_row_gradients,
            "num_table_gradients": len(first.gradients),
            "num_parameters": len(first.parameters),
            "table_names": [table.name for table in self.tables],
            "table_variables": [number for table in self.tables for number in table.states],
            "table_parameters": [number for table in self.tables for number in table.parameters],
            "table_gradients": [number for table in self.tables for number in table.gradients],
            "segment_gradients": [number for number, *_ in gradients],
            "segment_first": [first for _, first, _, _ in gradients],
            "segment_span": [span for _, _, span, _ in gradients],
            "segment_pitch": [pitch for *_, pitch in gradients],
            "drop_negative": self.drop_negative,
        }

    def _pooling(self) -> dict:
        """Attributes that are empty where nothing is pooled."""
        if not any(segment.pools for segment in self.segments):
            return {}
        pools = [one for segment in self.segments for one in segment.pools or ((-1, "sum"),) * self.num_row_gradients]
        return {
            "gradient_pool": [pool for pool, _ in pools],
            "gradient_combiner": [combiner for _, combiner in pools],
            "segment_fill": [segment.fill for segment in self.segments],
            "gradient_weights": [
                one for segment in self.segments for one in segment.weights or (-1,) * self.num_row_gradients
            ],
        }


def run(
    spec: Spec, all_rows: bool, variables: list, ids: list, gradients: list, scalars: list, pools=(), weights=()
) -> None:
    """Calls the raw op as a graph pass emits it, on tf.Variables."""
    ops = library.ops()
    op = ops.picasso_packed_dense_update if all_rows else ops.picasso_packed_sparse_update
    gradients = gradients or [np.zeros([0], variables[0].dtype.as_numpy_dtype)]  # names the dtype
    op(
        variables=[variable.handle for variable in variables],
        ids=ids,
        gradients=gradients,
        scalars=scalars,
        pools=list(pools),
        weights=list(weights),
        **spec.attributes(),
    )


def packed_update(
    spec: Spec, all_rows: bool, variables: list, ids: list, gradients: list, scalars: list, pools=(), weights=()
) -> list[np.ndarray]:
    """What the variables, given as arrays, hold after the op."""
    after = list(variables)
    for number, table in enumerate(spec.tables):
        segments = [segment for segment in spec.segments if segment.table == number]
        states = [_as_rows(variables[state]) for state in table.states]
        rows, row = states[0].shape
        named = [_segment_ids(segment, ids) for segment in segments]
        fills = [_fills(segment, one, gradients, pools, row) for segment, one in zip(segments, named, strict=True)]
        orders = [_order(segment, one, pools) for segment, one in zip(segments, named, strict=True)]
        id_rows = [np.concatenate([one[order], fill]) for one, order, fill in zip(named, orders, fills, strict=True)]
        table_run = _Run(rows, np.concatenate([*id_rows, np.zeros(0, np.int64)]).astype(np.int64))
        values = {f"s{i}": state for i, state in enumerate(states)}
        for i in range(spec.num_row_gradients):
            parts = [
                part
                for segment, one, order, fill in zip(segments, named, orders, fills, strict=True)
                for part in (
                    _weighted(segment, i, _gradient_of_ids(segment, i, one, gradients, pools, row), weights)[order],
                    np.zeros((len(fill), row), states[0].dtype),
                )
            ]
            values[f"g{i}"] = np.concatenate([*parts, np.zeros((0, row), states[0].dtype)])
        values |= {f"t{i}": gradients[gradient].reshape(rows, row) for i, gradient in enumerate(table.gradients)}
        values |= {f"p{i}": scalars[scalar].reshape(()) for i, scalar in enumerate(table.parameters)}
        table_run.execute(spec.program, values)
        updated = np.arange(rows)[:, None] >= 0 if all_rows else table_run.touched[:, None]
        for state, old, result in zip(table.states, states, spec.results, strict=True):
            after[state] = np.where(updated, values[result], old).astype(old.dtype).reshape(variables[state].shape)
    return after


def _as_rows(variable: np.ndarray) -> np.ndarray:
    if variable.ndim == 0:
        return variable.reshape(1, 1)
    return variable.reshape(len(variable), int(np.prod(variable.shape[1:], dtype=int)))


def _segment_ids(segment: Segment, ids: list) -> np.ndarray:
    lookup = Lookup(0, segment.ids, segment.column, segment.columns, segment.wrap, segment.narrow)
    return effective_ids(lookup, ids).reshape(-1)


def _gradient_rows(gradients: list, where: tuple[int, int, int, int], count: int, row: int) -> np.ndarray:
    number, first, span, pitch = where
    gradient = gradients[number]
    if span:
        gradient = gradient.reshape(-1, pitch)[:, first : first + span]
    return gradient.reshape(count, row)


def _gradient_of_ids(segment: Segment, i: int, named: np.ndarray, gradients: list, pools: list, row: int) -> np.ndarray:
    """Gradient i of a segment, one row for each listed id; `named` are the rows of the table that they name."""
    pool, combiner = segment.pools[i] if segment.pools else (-1, "sum")
    if pool == -1:
        return _gradient_rows(gradients, segment.gradients[i], len(named), row)
    pooled = _gradient_rows(gradients, segment.gradients[i], -1, row)
    even = np.arange(len(named)) // max(len(named) // max(len(pooled), 1), 1)
    owners, counted = even if pool == -2 else pool_rows(pools[pool]), _counted(segment, named)
    counts = np.maximum(np.bincount(owners[counted], minlength=len(pooled)), 1)
    scales = {"sum": np.ones(len(counts)), "mean": 1 / counts, "sqrtn": 1 / np.sqrt(counts)}[combiner]
    found = np.zeros((len(named), row), pooled.dtype)
    found[counted] = (pooled * scales.astype(pooled.dtype)[:, None])[owners[counted]]
    return found


def _weighted(segment: Segment, i: int, gradient: np.ndarray, weights: list) -> np.ndarray:
    """Gradient i of a segment, times the weights of the ids."""
    number = segment.weights[i] if segment.weights else -1
    if number < 0:
        return gradient
    column = weights[number].reshape(-1, 1)
    return np.where(column, gradient, gradient.dtype.type(0)) if column.dtype == bool else gradient * column


def _fills(segment: Segment, named: np.ndarray, gradients: list, pools: list, row: int) -> np.ndarray:
    """What fills the rows of a pooled gradient: for each the row of the table, or -1 where an id is left for it."""
    if segment.fill < 0:
        return np.zeros(0, np.int64)
    fills = np.full(len(_gradient_rows(gradients, segment.gradients[0], -1, row)), segment.fill)
    fills[pool_rows(pools[segment.pools[0][0]])[_counted(segment, named)]] = -1
    return fills


def _order(segment: Segment, named: np.ndarray, pools: list) -> np.ndarray:
    """The order in which ids count: with a fill by the rows that they were pooled to, as SparseFillEmptyRows has it."""
    if segment.fill < 0:
        return np.arange(len(named))
    return np.argsort(pool_rows(pools[segment.pools[0][0]]), kind="stable")


def _counted(segment: Segment, named: np.ndarray) -> np.ndarray:
    """Which ids of a pooled gradient count: with a fill negative ones are left out."""
    return named >= 0 if segment.fill >= 0 else np.ones(len(named), bool)


def pool_rows(pool: np.ndarray) -> np.ndarray:
    """The row of the gradient that each id belongs to."""
    return pool if pool.ndim == 1 else pool[:, 0]


# Stock stands in where a result depends on the processor, or on where in a tensor an element stands.
ELEMENTWISE = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "max": lambda a, b: tf.math.maximum(a, b).numpy(),
    "min": lambda a, b: tf.math.minimum(a, b).numpy(),
    "squared_difference": lambda a, b: (a - b) * (a - b),
    "div_no_nan": lambda a, b: np.where(b == 0, np.zeros_like(a / b), a / b),
    "greater": lambda a, b: a > b,
    "greater_equal": lambda a, b: a >= b,
    "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b,
    "equal": lambda a, b: a == b,
    "not_equal": lambda a, b: a != b,
    "neg": lambda a: -a,
    "square": lambda a: a * a,
    "sqrt": np.sqrt,
    "pow": lambda a, b: np.where(b == 0.5, np.sqrt(a), np.power(a, b)),
    "rsqrt": lambda a: tf.math.rsqrt(a).numpy(),
    "row_rsqrt": lambda a: np.array([tf.math.rsqrt(row).numpy() for row in np.atleast_2d(a)], a.dtype).reshape(a.shape),
    "reciprocal": lambda a: tf.math.reciprocal(a).numpy(),
    "abs": np.abs,
    "sign": lambda a: np.sign(a) + np.zeros_like(a),  # of -0: 0
    "select": lambda c, a, b: np.where(c != 0, a, b),
}


class _Run:
    """One table's run of a program. `id_rows` are the rows that its ids name, in order; negative: none."""

    def __init__(self, rows: int, id_rows: np.ndarray):
        self.rows, self.id_rows = rows, id_rows
        self.touched = np.isin(np.arange(rows), id_rows)

    def execute(self, program: tuple[str, ...], values: dict) -> None:
        levels = {name: {"g": "id", "p": "scalar"}.get(name[0], "row") for name in values}
        for number, text in enumerate(program):
            opcode, *names = text.split()
            operands = [values[name] for name in names]
            kinds = [levels[name] for name in names]
            if opcode == "unique_rsqrt":
                level, value = kinds[0], self._unique_rsqrt(operands[0])
            elif opcode in ELEMENTWISE:
                level = min(kinds, key=("id", "row", "scalar").index)
                if level == "id":
                    operands = [self._on_ids(*one) for one in zip(operands, kinds, strict=True)]
                dtype = np.result_type(*operands)
                with np.errstate(all="ignore"):
                    value = np.asarray(ELEMENTWISE[opcode](*operands)).astype(dtype)
            else:
                level, value = "row", self._on_rows(opcode, operands, kinds, values["s0"])
            values[f"v{number}"], levels[f"v{number}"] = value, level

    def _unique_rsqrt(self, value: np.ndarray) -> np.ndarray:
        """Rows that ids name form one tensor, in the order in which they are named first; the rest is whole packets."""
        result = tf.math.rsqrt(np.append(value, np.ones(8, value.dtype))).numpy()[:-8].reshape(value.shape)
        named = list(dict.fromkeys(row for row in self.id_rows if row >= 0))
        result[named] = tf.math.rsqrt(value[named]).numpy()
        return result

    def _on_ids(self, value: np.ndarray, kind: str) -> np.ndarray:
        return value[np.maximum(self.id_rows, 0)] if kind == "row" else value

    def _on_rows(self, opcode: str, operands: list, kinds: list, like: np.ndarray) -> np.ndarray:
        before = np.zeros_like(like) if opcode == "segment_sum" else operands[0]
        after = np.array(np.broadcast_to(before, like.shape))
        verb = opcode.replace("segment_sum", "scatter_add").split("_")[1]
        step = {"add": lambda r, x: r + x, "sub": lambda r, x: r - x, "update": lambda r, x: x}[verb]
        with np.errstate(all="ignore"):
            if opcode.startswith("touched"):
                x = np.broadcast_to(operands[1], like.shape)
                return np.where(self.touched[:, None], step(after, x), after)
            x = np.broadcast_to(self._on_ids(operands[-1], kinds[-1]), (len(self.id_rows), like.shape[1]))
            for row, one in zip(self.id_rows, x, strict=True):
                if row >= 0:
                    after[row] = step(after[row], one)
        return after

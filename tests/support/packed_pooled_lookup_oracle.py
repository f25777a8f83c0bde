"""A slow, readable NumPy oracle of `Picasso>PackedPooledLookup`, and the description of a call that both understand."""

import math
from dataclasses import dataclass

import numpy as np

from tests.support import packed_lookup_oracle
from tests.support.packed_lookup_oracle import Output

COMBINERS = ("sum", "mean", "sqrtn")


@dataclass(frozen=True)
class Lookup:
    """One lookup; the fields are the op's `lookup_*` attributes. `segments` is -1 where its ids are a matrix."""

    table: int
    ids: int
    segments: int
    rows: int = -1
    combiner: str = "sum"
    drop: bool = False
    fill: int = -1
    name: str = "lookup"
    sort: bool = False
    weights: int = -1
    drop_weightless: bool = False
    column: int = -1
    columns: int = 0
    wrap: int = 0
    narrow: bool = False
    in_turn: bool = False


@dataclass(frozen=True)
class Spec:
    """All attributes of a call. `splits` says of each segments input whether it holds row splits."""

    lookups: tuple[Lookup, ...]
    outputs: tuple[Output, ...]
    splits: tuple[bool, ...]

    def attributes(self) -> dict:
        """The attributes of the op, by name."""
        pieces = [(i, *piece) for i, output in enumerate(self.outputs) for piece in output.pieces]
        fields = (
            *("table", "ids", "segments", "rows", "combiner", "drop", "fill", "sort", "weights", "drop_weightless"),
            *("column", "columns", "wrap", "narrow", "in_turn"),
        )
        shapes = [output.shape for output in self.outputs]
        return {
            **{f"lookup_{key}": [getattr(lookup, key) for lookup in self.lookups] for key in fields},
            "lookup_names": [lookup.name for lookup in self.lookups],
            "segments_are_splits": list(self.splits),
            "piece_output": [output for output, _, _ in pieces],
            "piece_source": [source for _, source, _ in pieces],
            "piece_width": [width for _, _, width in pieces],
            "output_shapes": [shape and [None if size < 0 else size for size in shape] for shape in shapes],
            "num_outputs": len(self.outputs),
        }


def packed_pooled_lookup(
    spec: Spec, tables: list, ids: list, segments: list, rows: list, dense: list = (), weights: list = ()
) -> list:
    """What the op returns, for inputs that it accepts."""
    outputs = []
    for output in spec.outputs:
        if output.shape is None:
            outputs.append(_pooled(spec, spec.lookups[output.pieces[0][0]], tables, ids, segments, rows, weights))
            continue
        bands = []
        for source, width in output.pieces:
            if source < 0:
                bands.append(dense[-1 - source].reshape(-1, width))
                continue
            band = _pooled(spec, spec.lookups[source], tables, ids, segments, rows, weights)
            bands.append(band.reshape(len(band), width))
        outputs.append(np.concatenate(bands, axis=1).reshape(output.shape))
    return outputs


def combine(rows: np.ndarray, combiner: str) -> np.ndarray:
    """One row of the output from one table row or more.

    The order of the additions is that of `ReduceImpl` in tensorflow/core/kernels/segment_reduction_ops_impl.h.
    """
    compute = np.dtype(np.float64 if rows.dtype == np.float64 else np.float32).type
    count = len(rows)
    if count == 1:
        return rows[0]
    values = rows.astype(compute)
    size = {"sum": 1.0, "mean": float(count), "sqrtn": math.sqrt(count)}[combiner]
    first = count % 8 if count % 8 > 1 else count % 8 + 8
    total = _left_to_right(values[:first])
    total = total * (compute(1) / compute(size) if count < 10 else compute(1))
    for begin in range(first, count, 8):
        total = total + _left_to_right(values[begin : begin + 8])
    if count >= 10 and combiner != "sum":
        total = total / compute(size)
    return total.astype(rows.dtype)


def combine_weighted(rows: np.ndarray, weights: np.ndarray, combiner: str) -> np.ndarray:
    """One row of the output from one table row or more, each with a weight.

    As Mul, SegmentSum and DivNoNan compute it; SegmentSum leaves the order of the additions to Eigen.
    """
    compute = np.dtype(np.float64 if rows.dtype == np.float64 else np.float32).type
    count = len(rows)
    products = (rows.astype(compute) * weights.reshape(-1, *[1] * (rows.ndim - 1))).reshape(count, -1)
    packet = 32 // compute().itemsize
    width = products.shape[1]
    whole = width - width % packet if count >= 16 else 0
    total = np.concatenate([_in_four_chains(products[:, :whole]), _from_zero(products[:, whole:])])
    squares = weights * weights if combiner == "sqrtn" else weights
    divisor = compute(0) if combiner == "sum" else _from_zero(squares[:, None])[0]
    divisor = np.sqrt(divisor) if combiner == "sqrtn" else divisor
    if combiner != "sum":
        total = np.zeros_like(total) if divisor == 0 else total / divisor
    return total.reshape(rows.shape[1:]).astype(rows.dtype)


def sum_matrix(rows: np.ndarray, combiner: str) -> np.ndarray:
    """Sum or Mean over axis 1 of [examples, length, width], as Eigen adds up: see pooled_weights.h."""
    examples, length, width = rows.shape
    if length == 0:
        return np.full((examples, width), np.nan if combiner == "mean" else 0, rows.dtype)
    if width == 1:
        total = np.array([_innermost(row[:, 0]) for row in rows], rows.dtype).reshape(examples, 1)
    else:
        total = np.array([_from_zero(row) for row in rows], rows.dtype).reshape(examples, width)
        begins = np.arange(examples * width).reshape(examples, width) // _packet(rows) * _packet(rows)
        whole = begins % width + _packet(rows) <= width  # the packet ends in the row that it begins in
        for example in np.flatnonzero(whole.any(axis=1)) if length >= 16 else ():
            columns = whole[example]
            total[example, columns] = _in_four_chains(rows[example][:, columns])
    return total / rows.dtype.type(length) if combiner == "mean" else total


def _packet(rows: np.ndarray) -> int:
    return 32 // rows.dtype.itemsize


def _innermost(values: np.ndarray) -> np.ndarray:
    """A sum over one vector: in packets, four of them at a time, whose elements are added in halves."""
    if len(values) == 1:
        return values[0]
    packet = _packet(values)
    fours, whole = len(values) // (4 * packet) * 4 * packet, len(values) // packet * packet
    chains = values[:fours].reshape(-1, 4, packet)
    lanes = _left_to_right(np.stack([_after_zero(chains[:, chain]) for chain in range(4)]))
    lanes = _left_to_right(np.concatenate([lanes[None], values[fours:whole].reshape(-1, packet)]))
    while len(lanes) > 1:
        lanes = lanes[: len(lanes) // 2] + lanes[len(lanes) // 2 :]
    return _after_zero(values[whole:]) + lanes[0]


def _after_zero(rows: np.ndarray) -> np.ndarray:
    """Sums over axis 0, each added to a zero in turn."""
    return _left_to_right(np.concatenate([np.zeros((1, *rows.shape[1:]), rows.dtype), rows]))


def _from_zero(rows: np.ndarray) -> np.ndarray:
    """Sums over axis 0 from the first row on; a row by itself is copied."""
    return rows[0] if len(rows) == 1 else _after_zero(rows)


def _in_four_chains(rows: np.ndarray) -> np.ndarray:
    """Sums over axis 0: every fourth row, then those four sums, then what is left."""
    if not rows.size:
        return rows[0]
    quarter = len(rows) // 4 * 4
    chains = [_from_zero(rows[chain:quarter:4]) for chain in range(4)]
    return _left_to_right(np.concatenate([chains, rows[quarter:]]))


def row_of_each_id(segments: np.ndarray, splits: bool, sizes: np.ndarray | None) -> np.ndarray:
    """The output row that each id belongs to."""
    if splits:
        return np.repeat(np.arange(len(segments) - 1), np.diff(segments))
    if segments.ndim == 1:
        return segments.astype(np.int64)
    found = segments[:, 0].astype(np.int64)
    for column in range(1, segments.shape[1] - 1):
        found = found * int(sizes[column]) + segments[:, column]
    return found


def _left_to_right(rows: np.ndarray) -> np.ndarray:
    total = rows[0]
    for row in rows[1:]:
        total = total + row
    return total


def _pooled(
    spec: Spec, lookup: Lookup, tables: list, ids: list, segments: list, rows: list, weights: list
) -> np.ndarray:
    if lookup.segments < 0:
        return _pooled_matrix(lookup, tables[lookup.table], ids, weights)
    table, values, splits = tables[lookup.table], ids[lookup.ids], spec.splits[lookup.segments]
    sizes = None if lookup.rows < 0 else rows[lookup.rows]
    owners = row_of_each_id(segments[lookup.segments], splits, sizes)
    weight = None if lookup.weights < 0 else weights[lookup.weights].reshape(-1)
    counts = values >= 0 if lookup.drop else np.ones(len(values), bool)
    if lookup.drop_weightless:
        counts &= weight > 0
    owners, values = owners[counts], values[counts]
    weight = None if weight is None else weight[counts]
    if splits:
        count = len(segments[lookup.segments]) - 1
    elif sizes is None:
        count = int(owners[-1]) + 1 if len(owners) else 0
    else:
        count = int(sizes) if sizes.ndim == 0 else math.prod(int(size) for size in sizes[:-1])
    out = np.zeros((count, *table.shape[1:]), table.dtype)
    for row in range(count):
        mine = values[owners == row]
        if lookup.in_turn:
            terms = table[mine] if weight is None else table[mine] * weight[owners == row].reshape(-1, 1)
            out[row] = _after_zero(terms)
        elif len(mine) and weight is not None:
            out[row] = combine_weighted(table[mine], weight[owners == row], lookup.combiner)
        elif len(mine):
            out[row] = combine(table[mine], lookup.combiner)
        elif lookup.fill >= 0:
            out[row] = table[lookup.fill]
    return out


def _pooled_matrix(lookup: Lookup, table: np.ndarray, ids: list, weights: list) -> np.ndarray:
    read = packed_lookup_oracle.Lookup(0, lookup.ids, lookup.column, lookup.columns, lookup.wrap, lookup.narrow)
    matrix = packed_lookup_oracle.effective_ids(read, ids)
    matrix = matrix.reshape(len(matrix), lookup.columns or matrix.shape[-1])  # also where one column is a vector
    rows = table[matrix]
    weight = None if lookup.weights < 0 else weights[lookup.weights].reshape(*matrix.shape, 1)
    if weight is not None:
        rows = np.where(weight, rows, rows.dtype.type(0)) if weight.dtype == bool else rows * weight
    return sum_matrix(rows, lookup.combiner)

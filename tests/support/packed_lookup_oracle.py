"""A slow, readable NumPy oracle of `Picasso>PackedLookup`, and the description of a call that both understand."""

import math
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Lookup:
    """One lookup; the fields are the op's `lookup_*` attributes."""

    table: int
    ids: int
    column: int = -1
    columns: int = 0
    wrap: int = 0
    narrow: bool = False
    name: str = "lookup"


@dataclass(frozen=True)
class Output:
    """One output: its pieces as (source, width), and its shape: None is natural, -1 an unknown dimension."""

    pieces: tuple[tuple[int, int], ...]
    shape: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Spec:
    """All attributes of a call. `shapes` holds (lookup, template), a template being like an output's shape."""

    lookups: tuple[Lookup, ...]
    outputs: tuple[Output, ...]
    shapes: tuple[tuple[int, tuple[int, ...] | None], ...] = field(default=())

    def attributes(self) -> dict:
        """The attributes of the op, by name."""
        pieces = [(i, *piece) for i, output in enumerate(self.outputs) for piece in output.pieces]
        lookups = {
            f"lookup_{key}": [getattr(lookup, key) for lookup in self.lookups]
            for key in ("table", "ids", "column", "columns", "wrap", "narrow")
        }
        return {
            **lookups,
            "lookup_names": [lookup.name for lookup in self.lookups],
            "piece_output": [output for output, _, _ in pieces],
            "piece_source": [source for _, source, _ in pieces],
            "piece_width": [width for _, _, width in pieces],
            "output_shapes": [_template(output.shape) for output in self.outputs],
            "shape_lookup": [lookup for lookup, _ in self.shapes],
            "shape_templates": [_template(shape) for _, shape in self.shapes],
            "num_outputs": len(self.outputs),
            "num_shapes": len(self.shapes),
        }


class OutOfRangeError(Exception):
    """An id is out of range: the lowest lookup's, at the lowest position."""

    def __init__(self, lookup: Lookup, position: tuple[int, ...], value: int, rows: int):
        at = f"[{','.join(map(str, position))}]" if position else ""
        super().__init__(f"indices{at} = {value} is not in [0, {rows})")
        self.lookup = lookup


def packed_lookup(spec: Spec, tables: list, ids: list, dense: list = ()) -> tuple[list, list]:
    """What the op returns: (outputs, shapes). Raises OutOfRangeError as the op does on CPU."""
    read = {source for output in spec.outputs for source, _ in output.pieces}
    used = [effective_ids(lookup, ids) for lookup in spec.lookups]
    for i, (lookup, values) in enumerate(zip(spec.lookups, used, strict=True)):
        rows = len(tables[lookup.table])
        for position, value in np.ndenumerate(values):
            if i in read and not 0 <= value < rows:
                raise OutOfRangeError(lookup, position, value, rows)
    natural = [
        (*values.shape, *tables[lookup.table].shape[1:]) for lookup, values in zip(spec.lookups, used, strict=True)
    ]

    def rows_of(i: int) -> np.ndarray:
        return tables[spec.lookups[i].table][used[i]]

    outputs = []
    for output in spec.outputs:
        if output.shape is None:
            outputs.append(rows_of(output.pieces[0][0]).reshape(natural[output.pieces[0][0]]))
            continue
        bands = [
            (rows_of(source) if source >= 0 else dense[-1 - source]).reshape(-1, width)
            for source, width in output.pieces
        ]
        outputs.append(np.concatenate(bands, axis=1).reshape(output.shape))
    shapes = [natural[i] if shape is None else _resolve(shape, math.prod(natural[i])) for i, shape in spec.shapes]
    return outputs, [np.array(shape, np.int32) for shape in shapes]


def effective_ids(lookup: Lookup, ids: list) -> np.ndarray:
    """The ids of one lookup after its columns were taken, narrowed and wrapped, in the shape they are looked up in."""
    values = ids[lookup.ids]
    if lookup.column >= 0:
        values = values[:, lookup.column : lookup.column + lookup.columns]
        values = values[:, 0] if lookup.columns == 1 else values
    values = values.astype(np.int32) if lookup.narrow else values
    return np.where(values < 0, values.astype(np.int64) + lookup.wrap, values)


def _resolve(template: tuple[int, ...], elements: int) -> list[int]:
    known = math.prod(size for size in template if size >= 0)
    return [elements // known if size < 0 else size for size in template]


def _template(shape: tuple[int, ...] | None):
    return None if shape is None else [None if size < 0 else size for size in shape]

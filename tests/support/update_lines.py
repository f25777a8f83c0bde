"""Lines of the text form for updates: training ops, scatters and the packed update that takes their place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from graph_passes.analysis.update_expressions import REDUCTIONS, TOUCHED, Program
from graph_passes.analysis.update_rules import rule_name

PACK = "picasso/update_packing/"


def op(name: str, op: str, inputs: str, shape: str = "<?,4>", dtype: str = "float32", device: str = "") -> str:
    """An op whose only attribute is the dtype of its inputs, such as Mul."""
    place = f" @ {device}" if device else ""
    return f"{name} = {op}({inputs}) {{T = {dtype}}}{place} -> {shape}"


def scatter(name: str, kind: str, inputs: str, dtype: str = "float32", ids: str = "int32", device: str = "") -> str:
    """ResourceScatterAdd, Sub, Update, ...; `inputs` holds the handle, the ids, the values and control inputs."""
    place = f" @ {device}" if device else ""
    return f"{name} = ResourceScatter{kind}({inputs}) {{Tindices = {ids}, dtype = {dtype}}}{place}"


def write(name: str, kind: str, inputs: str, dtype: str = "float32", device: str = "") -> str:
    """AssignVariableOp, AssignAddVariableOp or AssignSubVariableOp; `kind` is "", "Add" or "Sub"."""
    place = f" @ {device}" if device else ""
    return f"{name} = Assign{kind}VariableOp({inputs}) {{dtype = {dtype}}}{place}"


def unique(name: str, ids: str, dtype: str = "int32") -> str:
    """The distinct ids and, for each id, its place among them."""
    return f"{name} = Unique({ids}) {{T = {dtype}, out_idx = int32}} -> <?>, <?>"


def segment_sum(
    name: str, inputs: str, shape: str = "<?,4>", dtype: str = "float32", ids: str = "int32", count: str = "int32"
) -> str:
    """An UnsortedSegmentSum; `inputs` holds the rows, the segment of each and how many segments there are."""
    return f"{name} = UnsortedSegmentSum({inputs}) {{T = {dtype}, Tindices = {ids}, Tnumsegments = {count}}} -> {shape}"


def number(name: str, value: float, dtype: str = "float32", controls: str = "") -> str:
    """A constant scalar of floats."""
    return f"{name} = Const({controls}) {{dtype = {dtype}, value = {dtype}[]({value})}} -> <>"


class Table(NamedTuple):
    """One table of a packed update: the node that it is named after, and numbers of its inputs."""

    name: str
    states: Sequence[int] = (0,)
    parameters: Sequence[int] = ()
    gradients: Sequence[int] = ()


class Part(NamedTuple):
    """Where the rows of one gradient are read: the number of a tensor, first column, columns, width of the matrix."""

    gradients: int = 0
    first: int = 0
    span: int = 0
    pitch: int = 0


_PART_FIELDS = ("gradients", "first", "span", "pitch")  # what the op has an attribute `segment_*` for


class Segment(NamedTuple):
    """Ids of one table: the op's `segment_*` attributes, and a part of each gradient."""

    table: int = 0
    ids: int = 0
    parts: Sequence[Part] = (Part(),)
    column: int = -1
    columns: int = 0
    wrap: int = 0
    narrow: bool = False


_ID_FIELDS = ("table", "ids", "column", "columns", "wrap", "narrow")


def updated(
    inputs: str,
    program: str,
    results: str,
    tables: Sequence[Table],
    segments: Sequence[Segment] = (),
    *,
    name: str = "",
    dtype: str = "float32",
    ids: Sequence[str] | None = None,
    device: str = "",
    sparse: bool = False,
) -> str:
    """A `Picasso>PackedSparseUpdate` when every write of the program is one of rows that ids name, else the dense one.

    Args:
        inputs: the handles, the ids, the gradients, the scalars and control inputs.
        program: its instructions, "; " between them.
        results: what each state holds afterwards, ", " between them.
        tables: what it updates.
        segments: the ids.
        name: default: the name that the pass gives it, for updates at the top level.
        dtype: of the variables.
        ids: dtype of each tensor of ids; default: one of int32 if there are segments.
        device: where it runs.
        sparse: visit the rows that ids name alone, whatever the program does.
    """
    steps, values = program.split("; ") if program else [], results.split(", ")
    by_row = all(
        value == f"s{i}" or steps[int(value[1:])].split()[0] in REDUCTIONS | TOUCHED for i, value in enumerate(values)
    )
    parts = [part for segment in segments for part in segment.parts]
    ids = ids if ids is not None else ["int32"] * (1 + max((segment.ids for segment in segments), default=-1))
    gradients = [part.gradients for part in parts] + [item for table in tables for item in table.gradients]
    attrs = {
        "dtype": dtype,
        "num_variables": _count(item for table in tables for item in table.states),
        "ids_types": _list(ids),
        "num_gradients": _count(gradients),
        "num_scalars": _count(item for table in tables for item in table.parameters),
        "rule": f'"{rule_name(Program(tuple(steps), tuple(values), by_row))}"',
        "program": _list(f'"{step}"' for step in steps),
        "results": _list(f'"{value}"' for value in values),
        "num_states": len(tables[0].states),
        "num_row_gradients": len(segments[0].parts) if segments else 0,
        "num_table_gradients": len(tables[0].gradients),
        "num_parameters": len(tables[0].parameters),
        "table_names": _list(f'"{table.name}"' for table in tables),
        "table_variables": _list(item for table in tables for item in table.states),
        "table_parameters": _list(item for table in tables for item in table.parameters),
        "table_gradients": _list(item for table in tables for item in table.gradients),
        "drop_negative": str(not any(step.startswith(("scatter_", "touched_")) for step in steps)).lower(),
        **{f"segment_{key}": _list(str(getattr(item, key)).lower() for item in segments) for key in _ID_FIELDS},
        **{f"segment_{key}": _list(getattr(part, key) for part in parts) for key in _PART_FIELDS},
    }
    text = ", ".join(f"{key} = {value}" for key, value in sorted(attrs.items()))
    kind = "Sparse" if sparse or by_row else "Dense"
    place = f" @ {device}" if device else ""
    return f"{name or PACK + tables[0].name} = Picasso>Packed{kind}Update({inputs}) {{{text}}}{place}"


def _count(numbers: Iterable[int]) -> int:
    return 1 + max(numbers, default=-1)


def _list(items: Iterable[object]) -> str:
    return "[" + ", ".join(str(item) for item in items) + "]"

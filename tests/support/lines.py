"""Lines of the text form for what most tests of passes are about: variables, reads, gathers and writes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple


def graph(*lines: str, feeds: Sequence[str] = (), fetches: Sequence[str] = (), preserve: Sequence[str] = ()) -> str:
    """The text of a graph; a line may be a block of several lines."""
    header = ", ".join(
        f"{key} = [{', '.join(names)}]"
        for key, names in (("feeds", feeds), ("fetches", fetches), ("preserve", preserve))
    )
    return "\n".join(["graph {" + header + "}", *lines])


def variable(name: str, shape: str = "<10,4>", dtype: str = "float32", index: int = 0) -> str:
    """A variable as a running function sees it."""
    return f"{name} = _Arg() {{T = resource, _handle_dtypes = [{dtype}], _handle_shapes = [{shape}], index = {index}}}"


def arg(name: str, dtype: str = "int32", shape: str = "<?>", index: int = 0) -> str:
    """An argument of a function."""
    return f"{name} = _Arg() {{T = {dtype}, index = {index}}} -> {shape}"


def scalar(name: str, value: int, dtype: str = "int32") -> str:
    return f"{name} = Const() {{dtype = {dtype}, value = {dtype}[]({value})}} -> <>"


def vector(name: str, *values: int, dtype: str = "int32") -> str:
    numbers = ", ".join(str(value) for value in values)
    return f"{name} = Const() {{dtype = {dtype}, value = {dtype}[{len(values)}]({numbers})}} -> <{len(values)}>"


def read(name: str, inputs: str, dtype: str = "float32", shape: str = "<10,4>") -> str:
    """A read of a whole variable; `inputs` holds the handle and control inputs."""
    return f"{name} = ReadVariableOp({inputs}) {{dtype = {dtype}}} -> {shape}"


def gather(name: str, inputs: str, dtype: str = "float32", shape: str = "<?,4>", batch_dims: int = 0) -> str:
    """A GatherV2; `inputs` holds the source, the ids and the axis."""
    types = f"Taxis = int32, Tindices = int32, Tparams = {dtype}"
    return f"{name} = GatherV2({inputs}) {{{types}, batch_dims = {batch_dims}}} -> {shape}"


def canonical(name: str, inputs: str, dtype: str = "float32", shape: str = "<?,4>") -> str:
    """The ResourceGather that `canonicalize` makes; `inputs` holds the handle, the ids and control inputs."""
    attrs = (
        f'Tindices = int32, _picasso_pass = "canonicalize", batch_dims = 0, dtype = {dtype}, validate_indices = true'
    )
    return f"{name} = ResourceGather({inputs}) {{{attrs}}} -> {shape}"


def lookup(
    name: str, inputs: str, shape: str = "<?,4>", dtype: str = "float32", ids: str = "int32", device: str = ""
) -> str:
    """A ResourceGather; `inputs` holds the handle, the ids and control inputs."""
    place = f" @ {device}" if device else ""
    return f"{name} = ResourceGather({inputs}) {{Tindices = {ids}, dtype = {dtype}}}{place} -> {shape}"


def assign(name: str, inputs: str, dtype: str = "float32") -> str:
    """A write of a whole variable; `inputs` holds the handle, the value and control inputs."""
    return f"{name} = AssignVariableOp({inputs}) {{dtype = {dtype}}}"


def scatter(name: str, inputs: str, dtype: str = "float32") -> str:
    """A write of some rows; `inputs` holds the handle, the ids, the updates and control inputs."""
    return f"{name} = ResourceScatterSub({inputs}) {{Tindices = int32, dtype = {dtype}}}"


def identity(name: str, inputs: str, dtype: str = "float32", shape: str = "") -> str:
    return f"{name} = Identity({inputs}) {{T = {dtype}}}" + (f" -> {shape}" if shape else "")


def concat(name: str, inputs: str, count: int, shape: str, dtype: str = "float32") -> str:
    """A ConcatV2; `inputs` holds the parts and the axis."""
    return f"{name} = ConcatV2({inputs}) {{N = {count}, T = {dtype}, Tidx = int32}} -> {shape}"


class Rows(NamedTuple):
    """One lookup of a packed op: the node that it replaces, and the op's `lookup_*` attributes."""

    name: str
    table: int = 0
    ids: int = 0
    column: int = -1
    columns: int = 0
    wrap: int = 0
    narrow: bool = False


def packed(
    inputs: str,
    lookups: Sequence[Rows],
    outputs: Sequence[tuple[str, Sequence[tuple[int, int]]]],
    *,
    name: str = "",
    dtype: str = "float32",
    ids: Sequence[str] = ("int32",),
    shapes: Sequence[tuple[int, str]] = (),
    device: str = "",
) -> str:
    """A `Picasso>PackedLookup`.

    Args:
        inputs: the handles, the ids, the dense tensors and control inputs.
        lookups: what it looks up.
        outputs: per output its shape and its pieces (source, width); source -1 - d is dense input d.
        name: default: the name that the pass gives it, for lookups at the top level.
        dtype: of the rows.
        ids: dtype of each tensor of ids.
        shapes: (lookup, template) per shape that it tells.
        device: where it runs.
    """
    pieces = [(number, *piece) for number, (_, parts) in enumerate(outputs) for piece in parts]
    attrs = {
        "dtype": dtype,
        "ids_types": _list(ids),
        "num_tables": str(1 + max(rows.table for rows in lookups)),
        "num_dense": str(-min(0, *(source for _, source, _ in pieces), 0)),
        "num_outputs": str(len(outputs)),
        "num_shapes": str(len(shapes)),
        "lookup_names": _list(f'"{rows.name}"' for rows in lookups),
        "output_shapes": _list(shape for shape, _ in outputs),
        "shape_lookup": _list(lookup for lookup, _ in shapes),
        "shape_templates": _list(template for _, template in shapes),
    }
    for field in Rows._fields[1:]:
        attrs[f"lookup_{field}"] = _list(str(getattr(rows, field)).lower() for rows in lookups)
    for place, field in enumerate(("output", "source", "width")):
        attrs[f"piece_{field}"] = _list(piece[place] for piece in pieces)
    text = ", ".join(f"{key} = {value}" for key, value in sorted(attrs.items()))
    ranks = [f"<{template.count(',') + 1}>" for _, template in shapes]
    results = ", ".join([shape for shape, _ in outputs] + ranks)
    name = name or f"picasso/embedding_packing/{lookups[0].name}"
    place_text = f" @ {device}" if device else ""
    return f"{name} = Picasso>PackedLookup({inputs}) {{{text}}}{place_text} -> {results}"


def _list(items: Iterable[object]) -> str:
    return "[" + ", ".join(str(item) for item in items) + "]"

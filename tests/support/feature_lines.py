"""Lines of the text form for what is done to features: hashes, hash tables, masks, and the packed op."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


def hashed(name: str, text: str, shape: str = "<?>", buckets: int = 100) -> str:
    """A StringToHashBucketFast."""
    return f"{name} = StringToHashBucketFast({text}) {{num_buckets = {buckets}}} -> {shape}"


def found(name: str, table: str, keys: str, default: str, dtype: str = "string", shape: str = "<*>") -> str:
    """A LookupTableFindV2 of int64 values."""
    return f"{name} = LookupTableFindV2({table}, {keys}, {default}) {{Tin = {dtype}, Tout = int64}} -> {shape}"


def binary(op: str, name: str, inputs: str, dtype: str = "int64", shape: str = "<?>") -> str:
    """An elementwise op of two inputs."""
    tail = ", incompatible_shape_error = true" if op in ("Equal", "NotEqual") else ""
    return f"{name} = {op}({inputs}) {{T = {dtype}{tail}}} -> {shape}"


def where(name: str, mask: str, rank: int = 1) -> str:
    return f"{name} = Where({mask}) {{T = bool}} -> <?,{rank}>"


def taken(name: str, values: str, indices: str, dtype: str = "string") -> str:
    """A GatherNd of single elements."""
    attrs = f'Tindices = int64, Tparams = {dtype}, bad_indices_policy = ""'
    return f"{name} = GatherNd({values}, {indices}) {{{attrs}}} -> <?>"


class Program(NamedTuple):
    """One feature of a packed op: the first node that it replaces, its dtype, its instructions, its outputs.

    An output is the value, its dtype and its shape.
    """

    name: str
    dtype: str
    instructions: Sequence[str]
    outputs: Sequence[tuple[str, str, str]]


def packed(
    inputs: str,
    programs: Sequence[Program],
    *,
    name: str,
    scalars: Sequence[str] = (),
    tables: int = 0,
    boundaries: Sequence[float] = (),
    others: Sequence[str] = (),
    texts: Sequence[str] = (),
) -> str:
    """A `Picasso>PackedTransforms`; `inputs` holds features, other tensors, scalars, tables and control inputs."""
    outputs = [(number, *output) for number, program in enumerate(programs) for output in program.outputs]
    attrs = {
        "boundaries": _list(boundaries),
        "feature_instructions": _list(len(program.instructions) for program in programs),
        "feature_names": _list(f'"{program.name}"' for program in programs),
        "feature_types": _list(program.dtype for program in programs),
        "num_tables": str(tables),
        "other_types": _list(others),
        "output_feature": _list(number for number, *_ in outputs),
        "output_types": _list(dtype for _, _, dtype, _ in outputs),
        "output_value": _list(f'"{value}"' for _, value, _, _ in outputs),
        "program": _list(f'"{text}"' for program in programs for text in program.instructions),
        "scalar_types": _list(scalars),
        "texts": _list(f'"{text}"' for text in texts),
    }
    text = ", ".join(f"{key} = {value}" for key, value in attrs.items())
    shapes = ", ".join(shape for *_, shape in outputs)
    return f"picasso/feature_packing/{name} = Picasso>PackedTransforms({inputs}) {{{text}}} -> {shapes}"


def _list(items) -> str:
    return "[" + ", ".join(str(item) for item in items) + "]"

"""Builds the NodeDef of one `Picasso>PackedLookup`, piece by piece. See cc/ops/packed_lookup.cc for its attributes."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from graph_passes.analysis.tables import Lookup, RowSource
from graph_passes.ir import DType, Node, Shape, TensorRef
from graph_passes.ir.op_defs import PACKED_LOOKUP
from graph_passes.rewrite.ids import IdsSource
from graph_passes.rewrite.packed_nodes import Numbers, Tables, source_attrs


class PackedLookupNode:
    """Collects tables, ids, lookups, outputs and shape outputs; what comes twice is stored once.

    Outputs must all be added before the first shape output, since their ports come first.

    Args:
        name: of the node.
        dtype: of the rows.
    """

    def __init__(self, name: str, dtype: DType):
        self.name = name
        self._dtype = dtype
        self._tables = Tables()
        self._ids: Numbers[TensorRef] = Numbers()
        self._ids_types: list[DType] = []
        self._dense: Numbers[TensorRef] = Numbers()
        self._lookups: Numbers[tuple[int, int, int, int, int, bool, int, int, float]] = Numbers()
        self._lookup_names: list[str] = []
        self._lookup_sources: list[RowSource] = []
        self._pieces: list[tuple[int, int, int]] = []
        self._outputs: list[Shape] = []
        self._shape_numbers: Numbers[Hashable] = Numbers()
        self._shapes: list[tuple[int, Shape]] = []

    def add_lookup(self, lookup: Lookup, source: IdsSource) -> int:
        """The number of a lookup; the same rows of the same table have one number."""
        table = self._tables.of(lookup.source)
        ids = self._ids.of(source.ref)
        if ids == len(self._ids_types):
            self._ids_types.append(source.dtype)
        read = (source.column, source.columns, source.wrap, source.narrow)
        number = self._lookups.of((table, ids, *read, *lookup.source[2:]))
        if number == len(self._lookup_names):
            self._lookup_names.append(lookup.node.name)
            self._lookup_sources.append(lookup.source)
        return number

    def dense_source(self, ref: TensorRef) -> int:
        """What stands for a tensor that passes through, in a piece."""
        return -1 - self._dense.of(ref)

    def add_output(self, shape: Shape, pieces: Sequence[tuple[int, int]]) -> int:
        """Adds an output that consists of pieces (source, width); returns its port."""
        port = len(self._outputs)
        self._outputs.append(shape)
        self._pieces += [(port, source, width) for source, width in pieces]
        return port

    def shape_port(self, lookup: int, shape: Shape, elements: Hashable) -> int:
        """The port that gives the shape of a tensor which holds the result of a lookup.

        Args:
            lookup: its number.
            shape: static shape of the tensor, at most one dimension unknown.
            elements: stands for how many elements the tensor has; equal shapes with equal keys share an output.
        """
        number = self._shape_numbers.of((shape, elements))
        if number == len(self._shapes):
            self._shapes.append((lookup, shape))
        return len(self._outputs) + number

    def node(self, controls: Sequence[str], device: str) -> Node:
        """The node, once all is added."""
        columns: list[list[Any]] = [list(column) for column in zip(*self._lookups, strict=True)]
        tables, ids, column, count, wrap, narrow = columns[:6]
        output, source, width = (list(part) for part in zip(*self._pieces, strict=True))
        attrs: dict[str, Any] = {
            "dtype": self._dtype,
            "num_tables": len(self._tables.handles),
            "ids_types": self._ids_types,
            "num_dense": len(self._dense),
            "num_outputs": len(self._outputs),
            "num_shapes": len(self._shapes),
            "lookup_names": [name.encode() for name in self._lookup_names],
            "lookup_table": tables,
            "lookup_ids": ids,
            "lookup_column": column,
            "lookup_columns": count,
            "lookup_wrap": wrap,
            "lookup_narrow": narrow,
            "piece_output": output,
            "piece_source": source,
            "piece_width": width,
            "output_shapes": self._outputs,
            "shape_lookup": [lookup for lookup, _ in self._shapes],
            "shape_templates": [shape for _, shape in self._shapes],
            **source_attrs(self._lookup_sources),
            "_output_shapes": self._outputs + [Shape((shape.rank,)) for _, shape in self._shapes],
        }
        inputs = [*self._tables.handles, *self._ids, *self._dense]
        return Node(self.name, PACKED_LOOKUP, inputs, controls, device, attrs)

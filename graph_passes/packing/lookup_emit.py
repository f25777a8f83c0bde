"""Puts a planned packed lookup into the graph."""

from __future__ import annotations

import os
from collections.abc import Hashable
from typing import Any, TypeVar

from graph_passes.ir import DType, Graph, Mutation, Node, Shape, TensorRef
from graph_passes.ir.op_defs import PACKED_LOOKUP
from graph_passes.packing.lookup_plan import GroupPlan

T = TypeVar("T", bound=Hashable)


class _Table(dict[T, int]):
    """Numbers distinct keys in the order of their arrival."""

    def number(self, key: T) -> int:
        return self.setdefault(key, len(self))


def emit(graph: Graph, plan: GroupPlan) -> tuple[Graph, str]:
    """The graph in which the planned op replaces its members, and the name of the new node."""
    mutation = Mutation(graph)
    first = plan.lookups[0].node
    name = mutation.unique_name(_name([lookup.node.name for lookup in plan.lookups]))
    ids: _Table[TensorRef] = _Table()
    tables: _Table[str] = _Table()
    dense: _Table[TensorRef] = _Table()
    lookups: _Table[tuple[Any, ...]] = _Table()
    handles: list[TensorRef] = []
    number_of = []
    for lookup, source in zip(plan.lookups, plan.sources, strict=True):
        table = tables.number(lookup.table.root)
        if table == len(handles):
            handles.append(lookup.handle)
        read = (ids.number(source.ref), source.column, source.columns, source.wrap, source.narrow)
        number_of.append(lookups.number((table, *read)))

    pieces: list[tuple[int, int, int]] = []
    shapes: list[Shape] = []
    for output, join in enumerate(plan.joins):
        shapes.append(join.shape)
        for piece in join.pieces:
            source_number = number_of[piece.lookup] if piece.dense is None else -1 - dense.number(piece.dense)
            pieces.append((output, source_number, piece.width))
    port_of: dict[int, int] = {}
    alone: dict[tuple[int, Shape], int] = {}
    for index, shape in plan.separate.items():
        port = alone.setdefault((number_of[index], shape), len(shapes))
        port_of[index] = port
        if port == len(shapes):  # else the same rows of the same table are looked up twice
            shapes.append(shape)
            pieces.append((port, number_of[index], _row_width(graph, plan, index)))

    wanted = _ShapeOutputs(len(shapes))
    _retire_joins(graph, mutation, plan, name)
    _retire_members(graph, mutation, plan, name, wanted, number_of, port_of)

    rows = list(lookups)
    names: dict[int, bytes] = {}
    for lookup, number in zip(plan.lookups, number_of, strict=True):
        names.setdefault(number, lookup.node.name.encode())
    attrs: dict[str, Any] = {
        "dtype": plan.lookups[0].dtype,
        "num_tables": len(handles),
        "ids_types": [graph.dtype_of(ref) for ref in ids],
        "num_dense": len(dense),
        "num_outputs": len(shapes),
        "num_shapes": len(wanted.templates),
        "lookup_names": [names[number] for number in range(len(rows))],
        "lookup_table": [row[0] for row in rows],
        "lookup_ids": [row[1] for row in rows],
        "lookup_column": [row[2] for row in rows],
        "lookup_columns": [row[3] for row in rows],
        "lookup_wrap": [row[4] for row in rows],
        "lookup_narrow": [row[5] for row in rows],
        "piece_output": [piece[0] for piece in pieces],
        "piece_source": [piece[1] for piece in pieces],
        "piece_width": [piece[2] for piece in pieces],
        "output_shapes": shapes,
        "shape_lookup": [lookup for lookup, _ in wanted.templates],
        "shape_templates": [template for _, template in wanted.templates],
        "_output_shapes": shapes + [Shape((template.rank,)) for _, template in wanted.templates],
    }
    mutation.add(Node(name, PACKED_LOOKUP, [*handles, *ids, *dense], plan.controls, first.device, attrs))
    return mutation.apply(), name


def _name(members: list[str]) -> str:
    """`scope/picasso/embedding_packing/member`: the common scope, the pass and the first member."""
    scope = os.path.commonpath([os.path.dirname(member) for member in members]) if all(members) else ""
    rest = os.path.relpath(members[0], scope) if scope else members[0]
    return "/".join(part for part in (scope, "picasso/embedding_packing", rest) if part)


def _row_width(graph: Graph, plan: GroupPlan, index: int) -> int:
    """Elements per row of a separate output: the table's row; 0 when the shape is taken from the ids."""
    width = plan.lookups[index].row_shape(graph).elements()
    return width if width and plan.separate[index].dims is not None else 0


class _ShapeOutputs:
    """Outputs that give the shape which a replaced tensor would have had."""

    def __init__(self, first_port: int):
        self._first = first_port
        self._number_of: _Table[Hashable] = _Table()
        self.templates: list[tuple[int, Shape]] = []

    def port(self, lookup: int, shape: Shape, elements: Hashable) -> int:
        """The output for a tensor of `shape` that holds the result of `lookup`.

        Tensors of one shape and of one `elements`, which stands for how many elements they have, share an output.
        """
        number = self._number_of.number((shape, elements))
        if number == len(self.templates):
            self.templates.append((lookup, shape))
        return self._first + number


def _retire_joins(graph: Graph, mutation: Mutation, plan: GroupPlan, name: str) -> None:
    for port, join in enumerate(plan.joins):
        _substitute(graph, mutation, join.node, TensorRef(name, port), plan.lookups[0].dtype)


def _substitute(graph: Graph, mutation: Mutation, node: Node, ref: TensorRef, dtype: DType) -> None:
    """Lets all readers of `node` read `ref`; a node whose name must live on becomes an Identity or a NoOp."""
    if node.name in graph.kept_for_data:
        attrs: dict[str, Any] = {"T": dtype}
        if node.attr("_output_shapes"):
            attrs["_output_shapes"] = [node.output_shape()]
        mutation.replace(Node(node.name, "Identity", [ref], (), node.device, attrs))
        return
    mutation.redirect(TensorRef(node.name), ref)
    _retire(graph, mutation, node, ref.node)


def _retire(graph: Graph, mutation: Mutation, node: Node, packed: str) -> None:
    """Takes a node away; what waited for it waits for the packed op. A control output stays, as a NoOp."""
    if node.name in graph.kept:
        mutation.replace(Node(node.name, "NoOp", (), [packed], node.device))
        return
    mutation.redirect_controls(node.name, packed)
    mutation.remove(node.name)


def _retire_members(
    graph: Graph,
    mutation: Mutation,
    plan: GroupPlan,
    name: str,
    wanted: _ShapeOutputs,
    number_of: list[int],
    port_of: dict[int, int],
) -> None:
    shape_ports: dict[str, dict[int, int]] = {}
    # All rows of a concatenation are equally many, so that there the width tells the number of elements.
    elements_of = {
        piece.lookup: (number, piece.width) for number, join in enumerate(plan.joins) for piece in join.pieces
    }
    for index, member in enumerate(plan.views):
        gather = plan.lookups[index].node
        if index in plan.separate:
            _substitute(graph, mutation, gather, TensorRef(name, port_of[index]), plan.lookups[index].dtype)
            continue
        for view in member:
            for use in view.shape_uses:
                port = wanted.port(number_of[index], view.shape, elements_of[index])
                shape_ports.setdefault(use.node.name, {})[use.index] = port
            _retire(graph, mutation, graph.nodes[view.ref.node], name)
    for reader, ports in sorted(shape_ports.items()):
        _retire_shape_reader(graph, mutation, graph.nodes[reader], name, ports)


def _retire_shape_reader(graph: Graph, mutation: Mutation, node: Node, packed: str, ports: dict[int, int]) -> None:
    """Serves a Shape or ShapeN from the packed op; the inputs of a ShapeN that are no lookups stay with it."""
    dtype = node.attr("out_type", DType("int32"))
    left = [index for index in range(len(node.inputs)) if index not in ports]
    for index, port in ports.items():
        mutation.redirect(TensorRef(node.name, index), _as_dtype(mutation, node, TensorRef(packed, port), dtype))
    for new, old in enumerate(left):
        mutation.redirect(TensorRef(node.name, old), TensorRef(node.name, new))
    if left:
        attrs = {key: value for key, value in node.attrs().items() if key != "_output_shapes"} | {"N": len(left)}
        inputs = [node.inputs[old] for old in left]
        mutation.replace(Node(node.name, node.op, inputs, node.controls, node.device, attrs))
    else:
        _retire(graph, mutation, node, packed)


def _as_dtype(mutation: Mutation, reader: Node, ref: TensorRef, dtype: DType) -> TensorRef:
    if dtype == "int32":
        return ref
    name = mutation.unique_name(f"{reader.name}/picasso/as_{dtype}_{ref.port}")
    mutation.add(
        Node(name, "Cast", [ref], (), reader.device, {"SrcT": DType("int32"), "DstT": dtype, "Truncate": False})
    )
    return TensorRef(name)

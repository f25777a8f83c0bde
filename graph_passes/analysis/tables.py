"""Embedding tables of a graph: variables, who reads them, who writes them, which lookups there are."""

from __future__ import annotations

from typing import NamedTuple

from graph_passes.analysis.constants import scalar
from graph_passes.ir import CONTROL, UNKNOWN_SHAPE, DType, Graph, Node, Shape, TensorRef
from graph_passes.ir.op_defs import READERS, TABLE_GATHER

_ANONYMOUS = b"cd2c89b7-88b7-44c8-ad83-06c2a9158347"  # ResourceHandle::ANONYMOUS_NAME: a new variable for each node
_PASS_THROUGH = frozenset({"Identity", "IdentityN", "Enter", "Switch"})


class Table(NamedTuple):
    """A variable, as one graph knows it.

    Attributes:
        root: the tensor that every use of its handle comes from, or its shared name; one variable has one root.
        shape: static shape [rows, ...], unknown rank when the graph does not say.
        traceable: False when the handle is chosen at run time (Merge, loop variables of resource type, ...).
    """

    root: str
    shape: Shape
    traceable: bool


def table_of(graph: Graph, handle: TensorRef) -> Table:
    """The variable that a resource handle belongs to."""
    handle = _source(graph, handle)
    node = graph.producer(handle)
    if node.op == "VarHandleOp" and node.attr("shared_name", _ANONYMOUS) not in (b"", _ANONYMOUS):
        root = f"variable {node.attr('container', b'')!r} {node.attr('shared_name')!r} {node.device}"
        return Table(root, node.attr("shape", UNKNOWN_SHAPE), True)
    shapes = node.attr("_handle_shapes") or [node.attr("shape", UNKNOWN_SHAPE)]
    traceable = node.op in ("_Arg", "VarHandleOp", "Placeholder", "Const")
    return Table(str(handle), shapes[0] if node.op != "Placeholder" else UNKNOWN_SHAPE, traceable)


def _source(graph: Graph, handle: TensorRef) -> TensorRef:
    """The tensor that a handle comes from, through nodes that pass it on."""
    node = graph.producer(handle)
    while node.op in _PASS_THROUGH and node.name not in graph.fed:
        handle = node.inputs[handle.port if node.op == "IdentityN" else 0]
        node = graph.producer(handle)
    return handle


def variable_of(graph: Graph, handle: TensorRef) -> tuple[Shape, DType] | None:
    """Shape and dtype of the variable behind a handle, as its source states them; None when it does not."""
    node = graph.producer(_source(graph, handle))
    if node.op == "VarHandleOp":
        return node.attr("shape", UNKNOWN_SHAPE), node.attr("dtype")
    shapes, dtypes = node.attr("_handle_shapes"), node.attr("_handle_dtypes")
    return (shapes[0], dtypes[0]) if shapes and dtypes else None


class Access(NamedTuple):
    """The nodes that read and that may write one variable; a call that is given the handle counts as a write."""

    reads: list[Node]
    writes: list[Node]


def accesses(graph: Graph) -> dict[str, Access]:
    """Reads and writes of every variable, by root (see `Table`), in the order of names.

    What writes through a handle that is chosen at run time counts as a write of every variable.
    """
    found: dict[str, Access] = {}
    anywhere: list[Node] = []
    for node, ref in _handle_users(graph):
        table = table_of(graph, ref)
        access = found.setdefault(table.root, Access([], []))
        nodes = access.reads if node.op in READERS else access.writes
        if node not in nodes[-1:]:  # a node may take one handle twice
            nodes.append(node)
        if not table.traceable and node.op not in READERS:
            anywhere.append(node)
    for access in found.values():
        access.writes.extend(node for node in anywhere if node not in access.writes)
    return found


_HANDLE_SOURCES = _PASS_THROUGH | {"_Arg", "VarHandleOp", "Placeholder", "Const", "Merge"}


def _handle_users(graph: Graph) -> list[tuple[Node, TensorRef]]:
    """Every node that takes a handle and does more than pass it on, with the handle, by name and input."""
    found = []
    for source in graph.of(*sorted(_HANDLE_SOURCES)):
        dtype = "resource" if source.op == "VarHandleOp" else source.attr("T") or source.attr("dtype")
        if dtype != "resource" and not isinstance(dtype, list):
            continue
        for use in graph.uses(source.name):
            if use.index == CONTROL or use.node.op in _PASS_THROUGH:
                continue
            ref = use.node.inputs[use.index]
            if dtype == "resource" or dtype[ref.port] == "resource":
                found.append((use.node.name, use.index, use.node, ref))
    found.sort(key=lambda user: user[:2])
    return [(node, ref) for _, _, node, ref in found]


GATHERS = ("ResourceGather", TABLE_GATHER)
"""Ops that gather rows of a table: of one variable, or of several that hold its rows."""


class RowSource(NamedTuple):
    """Where the rows of one table are read: in one variable, or spread over several (`picasso_tf/cc/kernels/shards.h`).

    Attributes:
        handles: of the variables, in order.
        tables: the variables.
        rows: 0: row i is row i // n of variable i % n, of n; else each holds so many consecutive rows.
        extras: how many of the first variables hold one more.
        max_norm: rows are clipped to it as they are read; 0: they are not.
    """

    handles: tuple[TensorRef, ...]
    tables: tuple[Table, ...]
    rows: int = 0
    extras: int = 0
    max_norm: float = 0.0

    @property
    def roots(self) -> tuple[str, ...]:
        return tuple(table.root for table in self.tables)


def row_source(graph: Graph, gather: Node) -> RowSource:
    """Where a gather, or a read, takes rows from."""
    handles = gather.inputs[:-1] if gather.op == TABLE_GATHER else gather.inputs[:1]
    tables = tuple(table_of(graph, handle) for handle in handles)
    spread = gather.attr("shard_rows", 0), gather.attr("shard_extras", 0)
    return RowSource(tuple(handles), tables, *spread, gather.attr("max_norm", 0.0))


class Lookup(NamedTuple):
    """One gather of rows of a variable.

    Attributes:
        node: the gather.
        handle: the table's resource handle.
        table: the variable.
        ids: the row numbers, of any shape.
        read: the ReadVariableOp in between, None for a ResourceGather.
        dtype: dtype of the rows.
        source: where the rows of the table are read; `table` is the first of its variables.
    """

    node: Node
    handle: TensorRef
    table: Table
    ids: TensorRef
    read: Node | None
    dtype: DType
    source: RowSource

    def row_shape(self, graph: Graph) -> Shape:
        """Static shape of one row, from the table's or from the gather's own annotation."""
        if self.table.shape.dims:
            return Shape(self.table.shape.dims[1:])
        result, rank = self.node.output_shape().dims, graph.shape(self.ids).rank
        return UNKNOWN_SHAPE if result is None or rank is None else Shape(result[rank:])


def resource_lookups(graph: Graph) -> list[Lookup]:
    """Every gather of rows of a table, by name; see `GATHERS`."""
    found = [_resource_lookup(graph, node) for node in graph.of(*GATHERS)]
    return sorted(found, key=lambda lookup: lookup.node.name)


def refreshed(graph: Graph, lookup: Lookup) -> Lookup:
    """A resource lookup as it stands in a later version of its graph."""
    return _resource_lookup(graph, graph.nodes[lookup.node.name])


def _resource_lookup(graph: Graph, node: Node) -> Lookup:
    source = row_source(graph, node)
    return Lookup(node, node.inputs[0], source.tables[0], node.inputs[-1], None, node.attr("dtype"), source)


def read_lookups(graph: Graph) -> list[Lookup]:
    """Every GatherV2 whose rows come from a ReadVariableOp, through Identity nodes; by name."""
    found = []
    for node in graph.of("GatherV2"):
        source = _upstream(graph, node, ("Identity",))
        if source.op == "ReadVariableOp" and source.name not in graph.fed:
            handle = source.inputs[0]
            dtype = node.attr("Tparams")
            rows = row_source(graph, source)
            found.append(Lookup(node, handle, rows.tables[0], node.inputs[1], source, dtype, rows))
    return found


def read_of(lookup: Lookup) -> Node:
    """The ReadVariableOp of a lookup that `read_lookups` found."""
    assert lookup.read is not None
    return lookup.read


def other_tables(graph: Graph) -> list[tuple[Node, str]]:
    """Every GatherV2 of rows of stored weights that is no lookup of a variable, with the reason code why; by name."""
    found = []
    for node in graph.of("GatherV2"):
        source = _upstream(graph, node, ("Identity", "Cast"))
        if source.op == "ReadVariableOp" and _upstream(graph, node, ("Identity",)) is not source:
            found.append((node, "table_is_cast"))
        elif source.op == "VariableV2" or (source.op == "Const" and _is_matrix(graph, node)):
            found.append((node, "not_a_variable"))
    return found


def _upstream(graph: Graph, gather: Node, ops: tuple[str, ...]) -> Node:
    """The producer of a gather's rows, beyond nodes of `ops`."""
    source = graph.producer(gather.inputs[0])
    while source.op in ops and source.name not in graph.fed:
        source = graph.producer(source.inputs[0])
    return source


def _is_matrix(graph: Graph, gather: Node) -> bool:
    """Tells a table of floats from the vectors of sizes that shape arithmetic gathers from."""
    return (graph.shape(gather.inputs[0]).rank or 0) >= 2 and "float" in gather.attr("Tparams")


def gather_axis(graph: Graph, gather: Node) -> int | None:
    """The axis of a GatherV2 when it is a constant."""
    axis = scalar(graph, gather.inputs[2])
    return None if axis is None else int(axis)

"""Puts a planned packed lookup into the graph."""

from __future__ import annotations

from graph_passes.ir import DType, Graph, Mutation, Node, TensorRef
from graph_passes.packing.lookup_plan import GroupPlan
from graph_passes.packing.packed_lookup_node import PackedLookupNode
from graph_passes.rewrite.packed_nodes import packed_name, retire, substitute


def emit(graph: Graph, plan: GroupPlan) -> tuple[Graph, str]:
    """The graph in which the planned op replaces its members, and the name of the new node."""
    mutation = Mutation(graph)
    name = mutation.unique_name(packed_name(graph, "embedding_packing", [lookup.node.name for lookup in plan.lookups]))
    packed = PackedLookupNode(name, plan.lookups[0].dtype)
    number_of = [packed.add_lookup(*pair) for pair in zip(plan.lookups, plan.sources, strict=True)]
    for join in plan.joins:
        pieces = [
            (number_of[piece.lookup] if piece.dense is None else packed.dense_source(piece.dense), piece.width)
            for piece in join.pieces
        ]
        port = packed.add_output(join.shape, pieces)
        substitute(graph, mutation, join.node, TensorRef(name, port), plan.lookups[0].dtype)
    for index, shape in plan.separate.items():  # one each, also where rows are the same: AddN works in place on buffers
        port = packed.add_output(shape, [(number_of[index], _row_width(graph, plan, index))])
        lookup = plan.lookups[index]
        substitute(graph, mutation, lookup.node, TensorRef(name, port), lookup.dtype)
    _retire_joined(graph, mutation, plan, packed, number_of)
    mutation.add(packed.node(plan.controls, plan.lookups[0].node.device))
    return mutation.apply(), name


def _row_width(graph: Graph, plan: GroupPlan, index: int) -> int:
    """Elements per row of a separate output: the table's row; 0 when the shape is taken from the ids."""
    width = plan.lookups[index].row_shape(graph).elements()
    return width if width and plan.separate[index].dims is not None else 0


def _retire_joined(
    graph: Graph, mutation: Mutation, plan: GroupPlan, packed: PackedLookupNode, number_of: list[int]
) -> None:
    """Takes away members that only concatenations read, their reshapes, and the shape arithmetic on them."""
    # All rows of a concatenation are equally many, so that there the width tells the number of elements.
    elements_of = {
        piece.lookup: (number, piece.width) for number, join in enumerate(plan.joins) for piece in join.pieces
    }
    shape_ports: dict[str, dict[int, int]] = {}
    for index, member in enumerate(plan.views):
        if index in plan.separate:
            continue
        for view in member:
            for use in view.shape_uses:
                port = packed.shape_port(number_of[index], view.shape, elements_of[index])
                shape_ports.setdefault(use.node.name, {})[use.index] = port
            retire(graph, mutation, graph.nodes[view.ref.node], packed.name)
    for reader, ports in sorted(shape_ports.items()):
        _retire_shape_reader(graph, mutation, graph.nodes[reader], packed.name, ports)


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
        retire(graph, mutation, node, packed)


def _as_dtype(mutation: Mutation, reader: Node, ref: TensorRef, dtype: DType) -> TensorRef:
    if dtype == "int32":
        return ref
    name = mutation.unique_name(f"{reader.name}/picasso/as_{dtype}_{ref.port}")
    mutation.add(
        Node(name, "Cast", [ref], (), reader.device, {"SrcT": DType("int32"), "DstT": dtype, "Truncate": False})
    )
    return TensorRef(name)

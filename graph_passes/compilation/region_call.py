"""Puts a region of a graph into a function that XLA compiles, and a call in its place."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tensorflow.core.framework import function_pb2

from graph_passes.analysis.compiled_calls import MUST_COMPILE
from graph_passes.errors import GraphError
from graph_passes.ir import CONTROL, DType, FunctionRef, Graph, Mutation, Node, TensorRef, make_function
from graph_passes.ir.op_defs import is_stateful

_OF_THE_GRAPH = ("_output_shapes", "_class")  # attributes that mean nothing inside a function


@dataclass(frozen=True)
class RegionCall:
    """One region as a function.

    Attributes:
        function: the function; its name tells its content, since XLA keeps what it compiled by that name.
        inputs: tensors that come in, in the order of the function's arguments.
        outputs: tensors of the region that are read outside, in the order of the function's results.
        controls: nodes that the call must wait for.
        types: dtypes of the inputs and of the outputs.
    """

    function: function_pb2.FunctionDef
    inputs: tuple[TensorRef, ...]
    outputs: tuple[TensorRef, ...]
    controls: tuple[str, ...]
    types: tuple[tuple[DType, ...], tuple[DType, ...]]


def region_call(graph: Graph, names: Sequence[str], free: Collection[str]) -> RegionCall:
    """The function of a region.

    Args:
        graph: the graph.
        names: the nodes of the region, in topological order.
        free: constants; the function gets a copy of those that it reads.

    Raises:
        GraphError: the type of a tensor that goes in or out is not known.
    """
    members = set(names)
    inputs: dict[TensorRef, TensorRef] = {}
    controls: dict[str, None] = {}
    body: dict[str, Node] = {}

    def inside(ref: TensorRef) -> TensorRef:
        if ref.node in members:
            return ref
        if ref.node in free:
            body.setdefault(ref.node, _cleaned(graph.nodes[ref.node], (), ()))
            return ref
        return inputs.setdefault(ref, TensorRef(f"arg_{len(inputs)}"))

    for name in names:
        node = graph.nodes[name]
        waits = [control for control in node.controls if control in members]
        controls |= dict.fromkeys(control for control in node.controls if control not in members)
        body[name] = _cleaned(node, [inside(ref) for ref in node.inputs], waits)
    outputs = [TensorRef(name, port) for name in names for port in _read_outside(graph, name, members)]
    types = tuple(tuple(_dtype(graph, ref) for ref in refs) for refs in (inputs, outputs))
    for index, (ref, dtype) in enumerate(zip(inputs.values(), types[0], strict=True)):
        body[ref.node] = Node(ref.node, "_Arg", attrs={"T": dtype, "index": index})
    for index, (ref, dtype) in enumerate(zip(outputs, types[1], strict=True)):
        result = f"result_{index}_RetVal"
        body[result] = Node(result, "_Retval", [ref], attrs={"T": dtype, "index": index})
    effects = [name for name in names if is_stateful(graph.nodes[name])]
    attrs = {MUST_COMPILE: True, "_noinline": True}
    function = make_function("picasso_xla_", body.values(), graph.functions, attrs, effects, named_by_content=True)
    return RegionCall(function, tuple(inputs), tuple(outputs), tuple(controls), (types[0], types[1]))


def emit(graph: Graph, call_name: str, device: str, names: Sequence[str], call: RegionCall) -> tuple[Graph, str]:
    """The graph with a call in the place of a region, and the call's name. Kept names stay, to be waited for."""
    mutation = Mutation(graph)
    name = mutation.unique_name(call_name)
    if call.function.signature.name not in graph.functions:
        mutation.add_function(call.function)
    attrs = {
        "Tin": list(call.types[0]),
        "Tout": list(call.types[1]),
        "f": FunctionRef(call.function.signature.name),
        MUST_COMPILE: True,
        "config": b"",
        "config_proto": b"",
        "executor_type": b"",
        "_output_shapes": [graph.shape(ref) for ref in call.outputs],
    }
    mutation.add(Node(name, "StatefulPartitionedCall", call.inputs, call.controls, device, attrs))
    for port, ref in enumerate(call.outputs):
        mutation.redirect(ref, TensorRef(name, port))
    for member in names:
        mutation.redirect_controls(member, name)
        if member in graph.kept:
            mutation.replace(Node(member, "NoOp", (), [name], graph.nodes[member].device))
        else:
            mutation.remove(member)
    return mutation.apply(), name


def _cleaned(node: Node, inputs: Sequence[TensorRef], controls: Sequence[str]) -> Node:
    attrs = {key: value for key, value in node.stored_attrs().items() if key not in _OF_THE_GRAPH}
    return Node(node.name, node.op, inputs, controls, attrs=attrs)


def _read_outside(graph: Graph, name: str, members: Collection[str]) -> list[int]:
    """Ports of a node that nodes outside of its region read."""
    uses = [use for use in graph.uses(name) if use.index != CONTROL and use.node.name not in members]
    return sorted({use.node.inputs[use.index].port for use in uses})


def _dtype(graph: Graph, ref: TensorRef) -> DType:
    dtype = graph.dtype_of(ref)
    if dtype is None:
        raise GraphError(f"The type of '{ref}' is not known.")
    return dtype

"""Calls that XLA compiles as a whole, and what of embedding tables they hold."""

from __future__ import annotations

from collections.abc import Iterator

from graph_passes.ir import Graph, Node, function_ops, reachable

MUST_COMPILE = "_XlaMustCompile"
# On a NoOp of a function's body: XLA compiled the function as a whole before it was opened, and now wants its share.
OPENED = "_picasso_opened"
CALLS = ("PartitionedCall", "StatefulPartitionedCall")

_ROWS = ("ResourceGather", "ResourceGatherNd", "ResourceScatterAdd", "ResourceScatterSub", "ResourceScatterUpdate")
_HASHES = ("LookupTableFindV2", "LookupTableFind")
_PASS_THROUGH = ("Identity", "Cast")
# Input number of the seed. TensorFlow computes the key of a constant one before XLA sees it, by its own algorithm.
_KINDS = ("Uniform", "Normal", "UniformInt", "UniformFullInt", "Binomial", "Poisson")
_SEEDS = {f"StatelessRandom{kind}": 1 for kind in _KINDS} | {
    "StatelessMultinomial": 2,
    "StatelessParameterizedTruncatedNormal": 1,
    "StatelessRandomGetKeyCounter": 0,
    "StatelessTruncatedNormal": 1,
}


def compiled_calls(graph: Graph) -> list[Node]:
    """Calls that XLA compiles, by name."""
    return [call for op in CALLS for call in graph.of(op) if call.attr(MUST_COMPILE)]


def compiled_lookups(graph: Graph) -> list[Node]:
    """Calls that XLA compiles and that look up or update rows of tables, directly or through other functions."""
    return [call for call in compiled_calls(graph) if handles_tables(graph, call.attr("f").name)]


def handles_tables(graph: Graph, function: str) -> bool:
    """Whether a function, or one that it calls, looks up or updates rows of tables."""
    return any(next(table_ops(graph, name), None) for name in reachable(graph.functions, function))


def table_ops(graph: Graph, function: str) -> Iterator[Node]:
    """The nodes of a function that look up or update rows of a variable, or look a key up in a hash table."""
    nodes = {node.name: node for node in function_ops(graph.functions[function])}
    for node in nodes.values():
        if node.op in _ROWS or node.op in _HASHES or (node.op == "GatherV2" and _reads_variable(nodes, node)):
            yield node


def constant_seed(graph: Graph, function: str) -> Node | None:
    """A node of a function that draws random numbers from a seed which does not depend on anything, or None."""
    nodes = {node.name: node for node in function_ops(graph.functions[function])}
    for node in nodes.values():
        place = _SEEDS.get(node.op)
        if place is not None and _is_constant(nodes, node.inputs[place].node):
            return node
    return None


def _is_constant(nodes: dict[str, Node], ref: str) -> bool:
    node = nodes.get(ref.split(":")[0])
    if node is None or (not node.inputs and node.op != "Const") or node.op == "ReadVariableOp":
        return False
    return all(_is_constant(nodes, item.node) for item in node.inputs)


def _reads_variable(nodes: dict[str, Node], node: Node) -> bool:
    """Whether the first input of a node is the value of a variable; inputs are written `node:output:number`."""
    while node.inputs:
        source = nodes.get(node.inputs[0].node.split(":")[0])
        if source is None:
            return False
        if source.op not in _PASS_THROUGH:
            return source.op == "ReadVariableOp"
        node = source
    return False


def opened_marker(graph: Graph) -> Node | None:
    """The node that says that the graph is the body of a function which XLA compiled as a whole before."""
    return next((node for node in graph.of("NoOp") if node.attr(OPENED)), None)

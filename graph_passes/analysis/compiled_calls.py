"""Calls that XLA compiles as a whole."""

from __future__ import annotations

from graph_passes.ir import FunctionRef, Graph, Node

_GATHERS = ("ResourceGather", "GatherV2")


def compiled_lookups(graph: Graph) -> list[Node]:
    """Calls marked `_XlaMustCompile` whose function, or one that it calls, gathers; by name."""
    calls = [node for node in graph.of("PartitionedCall", "StatefulPartitionedCall") if node.attr("_XlaMustCompile")]
    return [call for call in calls if _gathers(graph, call.attr("f"))]


def _gathers(graph: Graph, function: FunctionRef) -> bool:
    functions = {item.signature.name: item for item in graph.library.function}
    names, seen = [function.name], set()
    while names:
        name = names.pop()
        if name in seen or name not in functions:
            continue
        seen.add(name)
        for node in functions[name].node_def:
            if node.op in _GATHERS:
                return True
            names += [value.func.name for value in node.attr.values() if value.HasField("func")]
            names.append(node.op)
    return False

"""Calls that XLA compiles as a whole."""

from __future__ import annotations

from collections.abc import Mapping

from tensorflow.core.framework import function_pb2

from graph_passes.ir import Graph, Node

_GATHERS = ("ResourceGather", "GatherV2")


def compiled_lookups(graph: Graph) -> list[Node]:
    """Calls marked `_XlaMustCompile` whose function, or one that it calls, gathers; by name."""
    calls = [node for node in graph.of("PartitionedCall", "StatefulPartitionedCall") if node.attr("_XlaMustCompile")]
    functions = {item.signature.name: item for item in graph.library.function} if calls else {}
    return [call for call in calls if _gathers(functions, call.attr("f").name)]


def _gathers(functions: Mapping[str, function_pb2.FunctionDef], function: str) -> bool:
    names, seen = [function], set()
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

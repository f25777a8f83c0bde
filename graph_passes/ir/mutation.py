"""Staged edits of a graph: validated together, then applied or not at all."""

from __future__ import annotations

from tensorflow.core.framework import function_pb2

from graph_passes.errors import GraphError
from graph_passes.ir.graph import Graph
from graph_passes.ir.node import Node
from graph_passes.ir.types import TensorRef


class Mutation:
    """Collects edits of one graph; `apply` gives the edited graph.

    Nothing changes until `apply`, and a mutation that does not fit changes nothing at all: it raises GraphError.

    Example:
        >>> mutation = Mutation(graph)
        >>> mutation.add(Node("packed", "Picasso>PackedLookup", ...))
        >>> mutation.redirect(TensorRef("concat"), TensorRef("packed"))
        >>> mutation.remove("concat")
        >>> graph = mutation.apply()
    """

    def __init__(self, graph: Graph):
        self._graph = graph
        self._added: dict[str, Node] = {}
        self._replaced: dict[str, Node] = {}
        self._removed: set[str] = set()
        self._waits: set[str] = set()  # of those removed
        self._redirects: dict[TensorRef, TensorRef] = {}
        self._control_redirects: dict[str, str | None] = {}
        self._extra_controls: dict[str, list[str]] = {}
        self._functions: dict[str, function_pb2.FunctionDef] = {}

    def unique_name(self, wanted: str) -> str:
        """`wanted`, or `wanted_1`, `wanted_2`, ... when it is taken."""
        name, count = wanted, 0
        while name in self._graph.nodes or name in self._added:
            count += 1
            name = f"{wanted}_{count}"
        return name

    def unique_function_name(self, wanted: str) -> str:
        """`wanted`, or `wanted_1`, `wanted_2`, ... when a function has that name."""
        name, count = wanted, 0
        while name in self._graph.functions or name in self._functions:
            count += 1
            name = f"{wanted}_{count}"
        return name

    def add_function(self, function: function_pb2.FunctionDef) -> None:
        """Adds a function whose name is new to the library; it must not be changed afterwards."""
        name = function.signature.name
        if name in self._graph.functions or name in self._functions:
            raise GraphError(f"A function '{name}' is added, but there is one of that name.")
        self._functions[name] = function

    def add(self, node: Node) -> None:
        """Adds a node whose name is new."""
        if node.name in self._added:
            raise GraphError(f"Two nodes named '{node.name}' were added.")
        self._added[node.name] = node

    def replace(self, node: Node) -> None:
        """Puts `node` in the place of the node that has its name."""
        if node.name not in self._graph.nodes:
            raise GraphError(f"There is no node '{node.name}' to replace.")
        self._replaced[node.name] = node

    def remove(self, name: str) -> None:
        """Removes a node; everything that uses it must be redirected or removed too."""
        self._removed.add(name)

    def remove_wait(self, name: str) -> None:
        """Removes one of `Graph.mere_waits`; another must wait for what it waited for."""
        self._waits.add(name)
        self._removed.add(name)

    def redirect(self, old: TensorRef, new: TensorRef) -> None:
        """Makes every consumer of `old` read `new`. Nodes added by this mutation keep what they were given."""
        self._redirects[old] = new

    def redirect_controls(self, old: str, new: str) -> None:
        """Makes every node that waits for `old` through a control edge wait for `new`."""
        self._control_redirects[old] = new

    def drop_controls(self, old: str) -> None:
        """Makes nothing wait for `old` through a control edge any more."""
        self._control_redirects[old] = None

    def add_control(self, name: str, control: str) -> None:
        """Makes node `name` wait for node `control` too."""
        self._extra_controls.setdefault(name, []).append(control)

    def apply(self) -> Graph:
        """The edited graph.

        Raises:
            GraphError: a name is taken or missing, a removed node is kept or still used, or an input does not exist.
        """
        nodes = dict(self._graph.nodes)
        for name in self._removed:
            is_wait = name in self._waits and name in self._graph.mere_waits
            if name in self._graph.kept and not is_wait:
                raise GraphError(f"Node '{name}' must be kept: it is fed, fetched or preserved.")
            if nodes.pop(name, None) is None:
                raise GraphError(f"There is no node '{name}' to remove.")
        for name, node in self._replaced.items():
            if name in self._removed:
                raise GraphError(f"Node '{name}' is both replaced and removed.")
            nodes[name] = node
        affected = self._affected()
        for name in affected:
            if name in nodes:
                nodes[name] = self._rewire(nodes[name])
        for name, waits in self._extra_controls.items():
            if name not in nodes:
                raise GraphError(f"Node '{name}' does not exist after the edit, so it cannot wait for '{waits[0]}'.")
        for name, node in self._added.items():
            if name in nodes:
                raise GraphError(f"Node '{name}' is added, but the graph has a node of that name.")
            nodes[name] = node
        for name in sorted(affected | self._added.keys() | self._replaced.keys()):
            if name in nodes:
                _check_inputs(nodes, nodes[name])
        edited = self._graph.with_nodes(nodes)
        return edited.with_functions(self._functions.values()) if self._functions else edited

    def _affected(self) -> set[str]:
        """Names of nodes that an edit may reach: found through uses, so that a small edit of a large graph is cheap."""
        sources = {ref.node for ref in self._redirects} | self._control_redirects.keys() | self._removed
        affected = {use.node.name for name in sources for use in self._graph.uses(name)}
        affected |= self._replaced.keys() | self._extra_controls.keys()
        for name in self._removed:
            affected.update(self._graph.colocated.get(name, ()))
        return affected

    def _rewire(self, node: Node) -> Node:
        inputs = tuple([self._redirects.get(ref, ref) for ref in node.inputs])
        waits = [self._control_redirects.get(name, name) for name in node.controls]
        waits += self._extra_controls.get(node.name, [])
        controls = tuple(dict.fromkeys(name for name in waits if name is not None and name != node.name))
        if inputs != node.inputs or controls != node.controls:
            node = node.replace(inputs, controls)
        return self._without_lost_colocation(node)

    def _without_lost_colocation(self, node: Node) -> Node:
        if not self._removed or not (places := node.attr("_class")):
            return node
        kept = [place for place in places if place.decode().removeprefix("loc:@") not in self._removed]
        if len(kept) == len(places):
            return node
        attrs = node.stored_attrs()
        del attrs["_class"]
        return node.replace(attrs=attrs | {"_class": kept} if kept else attrs)


def _check_inputs(nodes: dict[str, Node], node: Node) -> None:
    for ref in node.inputs:
        if ref.node not in nodes:
            raise GraphError(f"Node '{node.name}' reads '{ref}', which does not exist after the edit.")
    for name in node.controls:
        if name not in nodes:
            raise GraphError(f"Node '{node.name}' waits for '{name}', which does not exist after the edit.")

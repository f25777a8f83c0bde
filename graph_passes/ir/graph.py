"""An immutable view of a GraphDef with the indices that passes need."""

from __future__ import annotations

import hashlib
import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property

from tensorflow.core.framework import function_pb2, graph_pb2, versions_pb2

from graph_passes.errors import GraphError
from graph_passes.ir.node import Node, Use, node_name
from graph_passes.ir.types import DType, Shape, TensorRef


class Graph:
    """Nodes by name, and what must survive every rewrite.

    A graph never changes: passes stage edits in a `Mutation`, which gives a new graph that shares the untouched nodes.

    Attributes:
        nodes: all nodes by name, in the order of the GraphDef.
        feeds: tensors that the caller provides; nothing may look through them.
        fetches: tensors that the caller reads.
        preserve: names of nodes that must stay, with their signature.
        library: functions that nodes may call. None is ever changed or removed; a `Mutation` may add some.
        versions: producer and consumer versions of the GraphDef.
    """

    def __init__(
        self,
        nodes: dict[str, Node],
        feeds: Iterable[str] = (),
        fetches: Iterable[str] = (),
        preserve: Iterable[str] = (),
        library: function_pb2.FunctionDefLibrary | None = None,
        versions: versions_pb2.VersionDef | None = None,
    ):
        self.nodes = nodes
        self.feeds = tuple(feeds)
        self.fetches = tuple(fetches)
        self.preserve = tuple(preserve)
        self.library = library if library is not None else function_pb2.FunctionDefLibrary()
        self.versions = versions if versions is not None else versions_pb2.VersionDef()
        self._output_types: dict[str, list[DType] | None] = {}

    @classmethod
    def from_graph_def(
        cls,
        graph_def: graph_pb2.GraphDef,
        fetches: Sequence[str] = (),
        feeds: Sequence[str] = (),
        preserve: Sequence[str] = (),
    ) -> Graph:
        """A view of `graph_def`, which must not be changed while the view lives.

        Raises:
            GraphError: two nodes have one name, or a fetch or a feed does not exist. TensorFlow preserves names that it
                has pruned, so these need not exist.
        """
        nodes = {proto.name: Node.from_proto(proto) for proto in graph_def.node}
        if len(nodes) != len(graph_def.node):
            seen: set[str] = set()
            twice = next(n.name for n in graph_def.node if n.name in seen or seen.add(n.name))  # type: ignore[func-returns-value]
            raise GraphError(f"Node names must be unique. Received two nodes named '{twice}'.")
        graph = cls(nodes, feeds, fetches, preserve, graph_def.library, graph_def.versions)
        for kind, names in (("fetch", fetches), ("feed", feeds)):
            for name in names:
                if node_name(name) not in nodes:
                    raise GraphError(f"The {kind} '{name}' names no node of the graph.")
        return graph

    def to_graph_def(self) -> graph_pb2.GraphDef:
        graph_def = graph_pb2.GraphDef(library=self.library, versions=self.versions)
        graph_def.node.extend(node.to_proto() for node in self.nodes.values())
        return graph_def

    def with_nodes(self, nodes: dict[str, Node]) -> Graph:
        """The same graph with other nodes."""
        return Graph(nodes, self.feeds, self.fetches, self.preserve, self.library, self.versions)

    def with_functions(self, added: Iterable[function_pb2.FunctionDef]) -> Graph:
        """The same graph with more functions in its library."""
        library = function_pb2.FunctionDefLibrary()
        library.CopyFrom(self.library)
        library.function.extend(added)
        return Graph(self.nodes, self.feeds, self.fetches, self.preserve, library, self.versions)

    def __len__(self) -> int:
        return len(self.nodes)

    @cached_property
    def functions(self) -> Mapping[str, function_pb2.FunctionDef]:
        """The functions of the library by name."""
        return {function.signature.name: function for function in self.library.function}

    def producer(self, ref: TensorRef) -> Node:
        return self.nodes[ref.node]

    def shape(self, ref: TensorRef) -> Shape:
        return self.nodes[ref.node].output_shape(ref.port)

    @cached_property
    def is_function(self) -> bool:
        """Whether it is the body of a function, and not a graph that a Session runs."""
        return bool(self.of("_Arg", "_Retval"))

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the graph's structure and of what the caller provides and reads; the order of nodes has no part."""
        nodes = sorted((node.name, node.op, *map(str, node.inputs), *node.controls) for node in self.nodes.values())
        return hashlib.sha256(repr((self.feeds, self.fetches, nodes)).encode()).hexdigest()[:12]

    @cached_property
    def kept(self) -> frozenset[str]:
        """Nodes that must stay under their name: feeds, fetches and the preserve set."""
        names = [*self.feeds, *self.fetches, *self.preserve]
        return frozenset(node_name(name) for name in names)

    @cached_property
    def kept_for_control(self) -> frozenset[str]:
        """Kept nodes that matter only as something to wait for: the control outputs of a function.

        TensorFlow lists every stateful node of a function here, reads of tables included. What a function returns
        leaves it through `_Retval` nodes, so nobody outside can read the outputs of the rest.
        """
        if not self.is_function:
            return frozenset()
        names = [node_name(name) for name in (*self.feeds, *self.fetches)]
        return self.kept.difference(names)

    @cached_property
    def mere_waits(self) -> frozenset[str]:
        """NoOps that are control outputs of the function: one of them may wait for all that they wait for."""
        return self.kept_for_control & {node.name for node in self.of("NoOp") if not node.attr_names()}

    @cached_property
    def kept_for_data(self) -> frozenset[str]:
        """Kept nodes whose outputs somebody outside the graph may read."""
        return self.kept - self.kept_for_control

    @cached_property
    def fed(self) -> frozenset[str]:
        """Nodes whose outputs the caller replaces."""
        return frozenset(node_name(name) for name in self.feeds)

    @cached_property
    def by_op(self) -> dict[str, list[Node]]:
        """Nodes of each op type, sorted by name so that no result depends on the order of nodes."""
        index: dict[str, list[Node]] = {}
        for node in self.nodes.values():
            index.setdefault(node.op, []).append(node)
        for nodes in index.values():
            nodes.sort(key=lambda node: node.name)
        return index

    def of(self, *ops: str) -> list[Node]:
        """All nodes whose op is one of `ops`, sorted by name within an op."""
        return [node for op in ops for node in self.by_op.get(op, ())]

    @cached_property
    def _uses(self) -> dict[str, list[Use]]:
        uses: defaultdict[str, list[Use]] = defaultdict(list)
        for node in self.nodes.values():
            for name, use in node.uses():
                uses[name].append(use)
        return uses

    def uses(self, name: str) -> list[Use]:
        """Every use of any output of node `name`, control uses included."""
        return self._uses.get(name, [])

    def uses_of(self, ref: TensorRef) -> list[Use]:
        """The data uses of one output."""
        return [use for use in self.uses(ref.node) if use.index >= 0 and use.node.inputs[use.index].port == ref.port]

    @cached_property
    def colocated(self) -> dict[str, list[str]]:
        """Names of the nodes that ask to be on the device of a node, by the name of that node."""
        found: dict[str, list[str]] = {}
        for node in self.nodes.values():
            for place in node.attr("_class") or ():
                found.setdefault(place.decode().removeprefix("loc:@"), []).append(node.name)
        return found

    @cached_property
    def topological(self) -> list[Node]:
        """Nodes so that each comes after what it waits for. Back-edges of v1 loops are ignored.

        Raises:
            GraphError: the graph has a cycle.
        """
        return self._sorted(list.pop, list.append)

    def canonical(self) -> list[Node]:
        """The one topological order, with ties by name, that does not depend on the order of `nodes`.

        Raises:
            GraphError: the graph has a cycle.
        """
        return self._sorted(heapq.heappop, heapq.heappush)

    def _sorted(self, pop: Callable[[list[str]], str], push: Callable[[list[str], str], None]) -> list[Node]:
        missing: dict[str, int] = {}
        successors: defaultdict[str, list[str]] = defaultdict(list)
        for name, node in self.nodes.items():
            predecessors = [other for other in self._acyclic_predecessors(node) if other in self.nodes]
            missing[name] = len(predecessors)
            for predecessor in predecessors:
                successors[predecessor].append(name)
        ready = sorted(name for name, count in missing.items() if not count)
        order: list[Node] = []
        while ready:
            name = pop(ready)
            order.append(self.nodes[name])
            for successor in successors.get(name, ()):
                missing[successor] -= 1
                if not missing[successor]:
                    push(ready, successor)
        if len(order) < len(self.nodes):
            stuck = min(name for name, count in missing.items() if count)
            raise GraphError(f"The graph has a cycle through or before node '{stuck}'.")
        return order

    def _acyclic_predecessors(self, node: Node) -> Sequence[str]:
        names = node.predecessors()
        if node.op in ("Merge", "RefMerge"):
            loops = {other.name for other in self.of("NextIteration", "RefNextIteration")}
            return [name for name in names if name not in loops]
        return names

    def dtype_of(self, ref: TensorRef) -> DType | None:
        """The dtype of a tensor as its producer's OpDef states it; None when the op is unknown."""
        types = self.output_types(ref.node)
        return types[ref.port] if types is not None and ref.port < len(types) else None

    def output_types(self, name: str) -> list[DType] | None:
        """The dtypes of all outputs of a node; None when its op is unknown."""
        if name not in self._output_types:
            from graph_passes.ir.op_defs import output_types  # op_defs is built on Node, so it cannot be at the top

            self._output_types[name] = output_types(self.nodes[name], self.library)
        return self._output_types[name]

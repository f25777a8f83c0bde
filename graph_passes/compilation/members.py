"""Which nodes of an opened function XLA gets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from graph_passes.analysis.control_flow import contexts
from graph_passes.analysis.devices import device_type
from graph_passes.analysis.xla_kernels import compiles
from graph_passes.ir import CONTROL, Graph, Node, TensorRef

# Single rows of variables are read and written in place outside; XLA would copy the variable.
_ROWS = frozenset(
    {"ResourceGather", "ResourceGatherNd"}
    | {f"ResourceScatter{kind}" for kind in ("Add", "Sub", "Mul", "Div", "Min", "Max", "Update")}
    | {f"ResourceScatterNd{kind}" for kind in ("Add", "Sub", "Update")}
)
# The shape of their result follows from shapes alone (or is what the caller gives), also where it is not known here.
_SHAPED = frozenset(
    {"_Arg", "IteratorGetNext", "GatherV2", "ResourceGather", "ReadVariableOp", "Identity", "Cast", "ConcatV2"}
    | {"Reshape"}
    | {"LookupTableFindV2", "StringToHashBucketFast", "StringToHashBucketStrong", "AsString", "StringJoin", "Bucketize"}
)
_HEAVY = ("MatMul", "BatchMatMul", "Conv", "Einsum", "While", "If", "PartitionedCall")
_LIGHT = frozenset(
    {"Identity", "IdentityN", "NoOp", "Reshape", "ExpandDims", "Squeeze", "Shape", "ShapeN", "Const", "ReadVariableOp"}
    | {"StopGradient", "PreventGradient", "Snapshot", "Rank", "Size", "Assert", "AssignVariableOp"}
)
# XLA and TensorFlow's kernels agree on these only as long as nothing is out of range and nothing is NaN. So that no
# step fails that XLA ran, they are worth a region of their own.
_TOLERANT = frozenset(
    {
        "GatherV2",
        "GatherNd",
        "ScatterNd",
        "TensorScatterAdd",
        "TensorScatterSub",
        "TensorScatterUpdate",
        "CheckNumerics",
    }
    | {"SparseSoftmaxCrossEntropyWithLogits", "ArgMax", "ArgMin", "TopKV2", "LeftShift", "RightShift"}
)
_DIVISIONS = frozenset({"Div", "FloorDiv", "FloorMod", "Mod", "TruncateDiv", "TruncateMod"})
_ALONE = 16
# Of these types only handles of variables may cross the border of a region, and only inwards.
_BOUND = ("variant", "string", "resource")


class Members:
    """Sorts the nodes of a graph.

    Args:
        graph: the body of an opened function.

    Attributes:
        inside: names of the nodes that XLA can compile, all on one device.
        free: names of constants, of which every region can have a copy.
        device: the device of `inside`.
    """

    def __init__(self, graph: Graph):
        self._graph = graph
        around = contexts(graph)
        self.free = frozenset(n.name for n in graph.of("Const") if not n.controls and n.name not in graph.kept)
        candidates = [
            node
            for node in graph.nodes.values()
            if node.name not in self.free and node.name not in around and self._may_go(node)
        ]
        weights: Counter[str] = Counter()
        for node in candidates:
            weights[node.device] += self.weight(node.name) + 1
        self.device = min(weights, key=lambda device: (-weights[device], device), default="")
        self.inside = {node.name for node in candidates if node.device == self.device}
        self._leave_out_unknown_sizes()

    def weight(self, name: str) -> int:
        """What it is worth to compile a node."""
        node = self._graph.nodes[name]
        op = node.op
        if op in _LIGHT:
            return 0
        if op.startswith("Stateless") or self._is_tolerant(node):  # XLA also draws other random numbers
            return _ALONE
        return 8 if op.startswith(_HEAVY) or op.endswith(_HEAVY) else 1

    def _is_tolerant(self, node: Node) -> bool:
        """Whether XLA gives a value where TensorFlow's kernel raises, or another value."""
        if node.op == "Cast":
            return "float" in (node.attr("SrcT") or "") and "int" in (node.attr("DstT") or "")
        if node.op in _DIVISIONS:
            return "int" in (node.attr("T") or "") and node.inputs[1].node not in self.free
        return node.op in _TOLERANT

    def _may_go(self, node: Node) -> bool:
        graph = self._graph
        if node.op == "NoOp" and not graph.uses(node.name):
            return False  # it joins what a call of the function waits for, and would stay behind under its name
        if node.op in _ROWS or node.name in graph.kept_for_data or node.name in graph.fed:
            return False
        return compiles(node, device_type(node.device) or "CPU", graph.functions)

    def _leave_out_unknown_sizes(self) -> None:
        """Whatever has a size that only values tell would make XLA compile anew in each step."""
        unknown: set[str] = set()
        for node in self._graph.topological:
            if self._is_sized(node):
                continue
            starts = node.name not in self.inside and node.name not in self.free and node.op not in _SHAPED
            starts = starts and not node.op.startswith("Picasso>") and "Variable" not in node.op
            if starts or any(ref.node in unknown for ref in node.inputs):
                unknown.add(node.name)
        self.inside -= unknown

    def _is_sized(self, node: Node) -> bool:
        types = self._graph.output_types(node.name)
        if types is None:
            return False
        shapes = [node.output_shape(port) for port, dtype in enumerate(types) if dtype != "resource"]
        return all(shape.elements() is not None for shape in shapes)

    def leave_out_bound(self, place: Mapping[str, int]) -> bool:
        """Leaves out nodes whose lists, strings or handles would leave their region; what these tie to them follows.

        Args:
            place: the number of the region of each node that has one.

        Returns:
            Whether there were any.
        """
        bound = {name for name in place if self._crosses(self._graph.nodes[name], place)}
        self.inside -= bound
        return bool(bound)

    def _crosses(self, node: Node, place: Mapping[str, int]) -> bool:
        graph, home = self._graph, place[node.name]
        inputs = [ref for ref in node.inputs if ref.node not in self.free and place.get(ref.node) != home]
        if any(self._is_bound(ref) and not self._is_variable(ref) for ref in inputs):
            return True
        uses = [use for use in graph.uses(node.name) if use.index != CONTROL and place.get(use.node.name) != home]
        return any(self._is_bound(use.node.inputs[use.index]) for use in uses)

    def _is_bound(self, ref: TensorRef) -> bool:
        dtype = self._graph.dtype_of(ref)
        return dtype is None or dtype in _BOUND or dtype.endswith("_ref")

    def _is_variable(self, ref: TensorRef) -> bool:
        return self._graph.dtype_of(ref) == "resource" and self._graph.producer(ref).op in ("_Arg", "VarHandleOp")

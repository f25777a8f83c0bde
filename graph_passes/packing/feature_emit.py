"""Puts one packed op into the place of transforms."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from graph_passes.ir import DType, Graph, Mutation, Node, Shape, TensorRef
from graph_passes.ir.op_defs import PACKED_TRANSFORMS
from graph_passes.rewrite.packed_nodes import Numbers, packed_name, retire, substitute
from graph_passes.rewrite.transform_rules import INDICES, JOIN, RULES
from graph_passes.rewrite.transforms import Filled, Transform, is_read_outside


def leaves_as(graph: Graph, found: Mapping[str, Transform], level: Mapping[str, int], name: str) -> DType | None:
    """The dtype of a transform's result when something outside its pack reads it, else None."""
    inside = {use.node.name for use in graph.uses(name) if level[use.node.name] == level[name]} & found.keys()
    return graph.dtype_of(TensorRef(name)) if is_read_outside(graph, name, inside) else None


@dataclass
class _Feature:
    """The program of one feature."""

    ref: TensorRef
    name: str
    program: list[str] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)  # of each transform, as the program names it
    copies: dict[str, str] = field(default_factory=dict)  # likewise of transforms of other features
    whole: set[str] = field(default_factory=set)  # transforms that have all of the feature's elements

    def write(self, *words: str) -> str:
        """Appends an instruction, and gives the name of its result."""
        self.program.append(" ".join(words))
        return f"v{len(self.program) - 1}"


def emit_transforms(graph: Graph, members: Sequence[Transform], sizes: Collection[str]) -> tuple[Graph, str]:
    """The graph in which one op takes the place of transforms, and the op's name.

    Args:
        graph: the graph.
        members: transforms of one level and place, upstream ones first.
        sizes: see `transforms.table_sizes`.
    """
    writer = _Writer(graph, members, sizes)
    inside = {transform.node.name for transform in members}
    for transform in _kept(members, {name for name in inside if is_read_outside(graph, name, inside)}):
        writer.add(transform)
    outputs = [
        (number, feature, name)
        for number, feature in enumerate(writer.features.values())
        for name in feature.values
        if is_read_outside(graph, name, inside)
    ]
    mutation = Mutation(graph)
    name = mutation.unique_name(packed_name(graph, "feature_packing", sorted(inside)))
    removed = inside.union(writer.sizes)
    controls = dict.fromkeys(c for n in sorted(removed) for c in graph.nodes[n].controls if c not in removed)
    types = [graph.dtype_of(TensorRef(output)) for _, _, output in outputs]
    shapes = [_shape(graph, feature, output) for _, feature, output in outputs]
    attrs: dict[str, Any] = {
        "feature_types": [graph.dtype_of(feature.ref) for feature in writer.features.values()],
        "other_types": [graph.dtype_of(ref) for ref in writer.others],
        "scalar_types": [graph.dtype_of(ref) for ref in writer.scalars],
        "num_tables": len(writer.tables),
        "output_types": types,
        "feature_names": [feature.name.encode() for feature in writer.features.values()],
        "feature_instructions": [len(feature.program) for feature in writer.features.values()],
        "program": [text.encode() for feature in writer.features.values() for text in feature.program],
        "boundaries": writer.boundaries,
        "texts": list(writer.texts),
        "output_feature": [number for number, _, _ in outputs],
        "output_value": [feature.values[output].encode() for _, feature, output in outputs],
        "_output_shapes": shapes,
    }
    inputs = [*writer.features, *writer.others, *writer.scalars, *writer.tables]
    mutation.add(Node(name, PACKED_TRANSFORMS, inputs, controls, members[0].node.device, attrs))
    ports = {output: port for port, (_, _, output) in enumerate(outputs)}
    for other in sorted(removed):
        node = graph.nodes[other]
        if other in ports:
            substitute(graph, mutation, node, TensorRef(name, ports[other]), types[ports[other]] or DType(""))
        else:
            retire(graph, mutation, node, name)
    return mutation.apply(), name


def _kept(members: Sequence[Transform], outputs: Collection[str]) -> list[Transform]:
    """Outputs and what these are computed from. What only joins of other features read is computed with these alone."""
    feature_of = {transform.node.name: transform.feature for transform in members}
    kept = set(outputs)
    for transform in members[::-1]:
        if transform.node.name in kept:
            kept.add(transform.mask)
            kept.update(ref.node for ref in transform.reads if feature_of.get(ref.node) == transform.feature)
    return [transform for transform in members if transform.node.name in kept]


def _shape(graph: Graph, feature: _Feature, name: str) -> Shape:
    """Static shape of an output. What a hash table gives has the shape of its keys, which TensorFlow cannot tell."""
    own = graph.nodes[name].output_shape()
    return graph.shape(feature.ref) if own.dims is None and name in feature.whole else own


class _Writer:
    """Writes the programs of features, and collects what they read besides."""

    def __init__(self, graph: Graph, members: Sequence[Transform], sizes: Collection[str]):
        self._graph = graph
        self._members = {transform.node.name: transform for transform in members}
        self._sizes = sizes
        self.features: dict[TensorRef, _Feature] = {}
        self.others: Numbers[TensorRef] = Numbers()
        self.scalars: Numbers[TensorRef] = Numbers()
        self.tables: Numbers[TensorRef] = Numbers()
        self.boundaries: list[float] = []
        self.texts: Numbers[bytes] = Numbers()
        self.sizes: list[str] = []  # the nodes of `sizes` that programs do not need any more

    def add(self, transform: Transform) -> None:
        node = transform.node
        feature = self.features.setdefault(transform.feature, _Feature(transform.feature, node.name))
        if transform.opcode == INDICES:
            feature.values[node.name] = INDICES
            return
        if not transform.mask:
            feature.whole.add(node.name)
        feature.values[node.name] = self._write(feature, transform)

    def _write(self, feature: _Feature, transform: Transform) -> str:
        node = transform.node
        operands = [self._operand(feature, operand) for operand in transform.operands]
        if transform.opcode == JOIN:
            return self._join(feature, operands, str(self.texts.of(node.attr("separator", b""))))
        if RULES[node.op].first:
            operands = [feature.write(RULES[node.op].first, *operands)]
        return feature.write(transform.opcode, *operands, *self._parameters(node), *transform.words.split())

    def _join(self, feature: _Feature, operands: Sequence[str], text: str) -> str:
        """Joins two at a time, beginning with one that is no scalar: the result of an instruction never is."""
        first = next(i for i, operand in enumerate(operands) if not operand.startswith("c"))
        joined = operands[first]
        for operand in operands[first + 1 :]:
            joined = feature.write(JOIN, joined, operand, text)
        for operand in operands[:first][::-1]:
            joined = feature.write(JOIN, operand, joined, text)
        return joined

    def _operand(self, feature: _Feature, operand: TensorRef | Filled) -> str:
        if isinstance(operand, Filled):
            return feature.write(operand.opcode, self._operand(feature, operand.like))
        ref = operand
        if ref == feature.ref:
            return "x"
        if ref.node in feature.values:
            return feature.values[ref.node]
        node = self._graph.producer(ref)
        if node.name in self._sizes:
            self.sizes.append(node.name)
            return f"z{self.tables.of(node.inputs[0])}"
        if self._graph.shape(ref).rank == 0:
            return f"c{self.scalars.of(ref)}"
        return self._of_other(feature, ref)

    def _of_other(self, feature: _Feature, ref: TensorRef) -> str:
        """What a join reads besides its own feature: another one, or a transform of it, which is computed here too."""
        transform = self._members.get(ref.node)
        if transform is None:
            return f"y{self.others.of(ref)}"
        if ref.node not in feature.copies:
            feature.copies[ref.node] = self._write(feature, transform)
        return feature.copies[ref.node]

    def _parameters(self, node: Node) -> list[str]:
        if node.op == "LookupTableFindV2":
            return [str(self.tables.of(node.inputs[0]))]
        if node.op != "Bucketize":
            return []
        first, added = len(self.boundaries), node.attr("boundaries", [])
        self.boundaries += added
        return [str(first), str(first + len(added))]

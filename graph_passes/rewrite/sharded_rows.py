"""Lookups in a list of variables, as `tf.nn.embedding_lookup` writes them: ids are parted, gathered, stitched together.

    FloorMod(ids, n), FloorDiv(ids, n) -> DynamicPartition -> ResourceGather of each shard -> ParallelDynamicStitch

which is the strategy "mod". With "div" shards hold consecutive rows, and the shard is a maximum of two quotients.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from graph_passes.analysis.constants import constant, scalar
from graph_passes.ir import Graph, Node, TensorRef
from graph_passes.rewrite.pattern import AnyTensor, Match, Op, Pattern, Scalar, match

STITCHES = ("DynamicStitch", "ParallelDynamicStitch")


class ShardedRows(NamedTuple):
    """Rows of a table that are gathered from its shards.

    Attributes:
        stitch: the node that brings the rows together, one for each id.
        gathers: the ResourceGather of each shard, in the order of the shards.
        ids: row numbers of the whole table, [ids].
        shard_rows: rows of a shard, for "div"; 0 for "mod".
        extras: how many of the first shards have one more.
    """

    stitch: Node
    gathers: tuple[Node, ...]
    ids: TensorRef
    shard_rows: int
    extras: int

    @property
    def name(self) -> str:
        return self.stitch.name

    @property
    def members(self) -> tuple[Node, ...]:
        """The nodes that one gather takes the place of."""
        return (*self.gathers, self.stitch)

    def waits_for(self) -> list[str]:
        """Nodes that one gather in their place reads or waits for."""
        handles = [gather.inputs[0].node for gather in self.gathers]
        controls = [name for member in self.members for name in member.controls]
        return list(dict.fromkeys([*handles, self.ids.node, *controls]))


def stitched_gathers(graph: Graph) -> list[Node]:
    """Every node that stitches rows of variables together, by name."""
    stitches = sorted(graph.of(*STITCHES), key=lambda node: node.name)
    return [node for node in stitches if any(other.op == "ResourceGather" for other in _parts(graph, node))]


def sharded_rows(graph: Graph, stitch: Node) -> ShardedRows | None:
    """What a stitch of rows of several variables computes; None when it is no lookup in a list of shards."""
    gathers = _parts(graph, stitch)
    if any(gather.op != "ResourceGather" or gather.name in graph.kept_for_data for gather in gathers):
        return None
    places, parted = graph.producer(stitch.inputs[0]), graph.producer(gathers[0].inputs[-1])
    if any(node.op != "DynamicPartition" for node in (places, parted)) or len(gathers) < 2:
        return None
    inner = (*gathers, places, parted)
    if {node.name for node in (stitch, *inner)} & graph.fed or places.controls or parted.controls:
        return None
    if places.inputs[1] != parted.inputs[1] or places.attr("num_partitions") != len(gathers):
        return None
    if list(stitch.inputs[: len(gathers)]) != [TensorRef(places.name, port) for port in range(len(gathers))]:
        return None
    for port, gather in enumerate(gathers):
        if gather.inputs[1] != TensorRef(parted.name, port) or gather.attr("batch_dims", 0):
            return None
        if len(graph.uses_of(TensorRef(gather.name))) != 1:
            return None
    if graph.shape(parted.inputs[1]).rank != 1 or not _counts_up(graph, places.inputs[0]):
        return None
    split = _split(graph, parted, len(gathers))
    return None if split is None else ShardedRows(stitch, tuple(gathers), *split)


def _parts(graph: Graph, stitch: Node) -> list[Node]:
    """The nodes whose rows are stitched together."""
    return [graph.producer(ref) for ref in stitch.inputs[len(stitch.inputs) // 2 :]]


def _counts_up(graph: Graph, ref: TensorRef) -> bool:
    """Whether a vector holds 0, 1, 2, ...; DynamicPartition checks that it is as long as the ids."""
    node = graph.producer(ref)
    if node.op == "Range" and node.name not in graph.fed and not node.controls:
        return scalar(graph, node.inputs[0]) == 0 and scalar(graph, node.inputs[2]) == 1
    value = constant(graph, ref)
    return value is not None and value.ndim == 1 and np.array_equal(value, np.arange(len(value)))


def _divided(op: str, dividend: Pattern, divisor: Scalar) -> Op:
    return Op((op,), (dividend, divisor))


_IDS, _REST = AnyTensor("ids"), AnyTensor("rest")
_LONGER, _SHORTER = Scalar("longer"), Scalar("shorter")
_SHARD = Op(
    ("Maximum",), (_divided("FloorDiv", _IDS, _LONGER), _divided("FloorDiv", _REST, _SHORTER)), commutative=True
)
_ROW_OF_DIV = Op(
    ("Select", "SelectV2"),
    (
        Op(("Less",), (_SHARD, Scalar("extras"))),
        _divided("FloorMod", _IDS, _LONGER),
        _divided("FloorMod", _REST, _SHORTER),
    ),
)
_REST_OF_DIV = Op(("Sub",), (_IDS, Scalar("extras")))


def _split(graph: Graph, parted: Node, count: int) -> tuple[TensorRef, int, int] | None:
    """(ids, rows of a shard, extras) of the arithmetic that parts ids and finds their rows."""
    row, shard = parted.inputs[:2]
    cast = graph.producer(shard)
    if cast.op == "Cast":
        if (cast.attr("SrcT"), cast.attr("DstT")) != ("int64", "int32") or cast.name in graph.fed or cast.controls:
            return None
        shard = cast.inputs[0]
    quotient = _matched(graph, _divided("FloorDiv", _IDS, Scalar(value=count)), row)
    rest = _matched(graph, _divided("FloorMod", _IDS, Scalar(value=count)), shard)
    if quotient is not None and rest is not None:
        same = quotient.tensors == rest.tensors
        return (quotient.tensors["ids"], 0, 0) if same else None
    return _split_of_div(graph, row, shard)


def _split_of_div(graph: Graph, row: TensorRef, shard: TensorRef) -> tuple[TensorRef, int, int] | None:
    found = _matched(graph, _ROW_OF_DIV, row)
    if found is None or graph.producer(graph.producer(row).inputs[0]).inputs[0] != shard:
        return None
    ids, rest = found.tensors["ids"], found.tensors["rest"]
    longer, shorter, extras = (int(found.scalars[name]) for name in ("longer", "shorter", "extras"))
    if longer != shorter + 1 or shorter < 1 or extras < 0:
        return None
    if rest != ids:
        less = _matched(graph, _REST_OF_DIV, rest)
        if less is None or less.tensors["ids"] != ids or less.scalars["extras"] != extras:
            return None
    elif extras:
        return None
    return ids, shorter, extras


def _matched(graph: Graph, pattern: Op, ref: TensorRef) -> Match | None:
    """A match of nodes that wait for nothing but their inputs."""
    found = match(graph, pattern, ref)
    if not isinstance(found, Match) or any(node.controls for node in found.nodes.values()):
        return None
    return found

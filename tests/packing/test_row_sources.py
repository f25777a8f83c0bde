"""Tables in shards and clipped rows in packed ops; shapes of rows inside a chain; gradients of stitched rows."""

import pytest

from graph_passes.cleanup.dead_nodes import DeadNodes
from graph_passes.ir import Node
from graph_passes.packing.embedding_packing import EmbeddingPacking
from graph_passes.packing.pooling_packing import PoolingPacking
from graph_passes.packing.update_packing import UpdatePacking
from tests.support.lines import arg, concat, graph, lookup, scalar, variable
from tests.support.pooled_lines import BASE, pooled
from tests.support.rewrite import graph_of, run


def table_gather(name: str, inputs: str, tables: int, rows: int = 0, extras: int = 0, norm: float = 0.0) -> str:
    attrs = f"num_tables = {tables}, shard_extras = {extras}, shard_rows = {rows}, max_norm = {norm}"
    return f"{name} = Picasso>TableGather({inputs}) {{Tindices = int64, dtype = float32, {attrs}}} -> <?,4>"


def sources(node: Node) -> dict[str, list]:
    names = ("table", "shards", "shard_rows", "shard_extras", "max_norm")
    return {name: node.attr(f"lookup_{name}") for name in names}


TABLES = (*(variable(f"t{n}", index=n) for n in range(3)), arg("ids", "int64", index=3), scalar("axis", 1))


def packed_lookup(*lines: str) -> Node:
    result = run(EmbeddingPacking(), graph_of(graph(*TABLES, *lines, fetches=["joined"])))
    assert not result.report.declined
    return result.graph.nodes[result.report.packed[0].node]


def test_a_table_in_shards_is_all_of_its_variables() -> None:
    node = packed_lookup(
        table_gather("a", "t0, t1, ids", 2, rows=9, extras=2),
        lookup("b", "t2, ids", ids="int64"),
        table_gather("c", "t1, t0, ids", 2),
        concat("joined", "a, b, c, axis", 3, "<?,12>"),
    )
    assert [str(ref) for ref in node.inputs] == ["t0", "t1", "t2", "t1", "t0", "ids"]
    assert sources(node) == {
        "table": [0, 2, 3], "shards": [2, 1, 2], "shard_rows": [9, 0, 0], "shard_extras": [2, 0, 0], "max_norm": None,
    }  # fmt: skip


def test_a_lone_gather_of_clipped_rows_is_packed() -> None:
    node = packed_lookup(table_gather("joined", "t0, ids", 1, norm=2.0))
    assert sources(node)["max_norm"] == [2.0]


def test_one_table_is_read_as_it_is_and_clipped() -> None:
    node = packed_lookup(
        lookup("a", "t0, ids", ids="int64"),
        table_gather("b", "t0, ids", 1, norm=2.0),
        concat("joined", "a, b, axis", 2, "<?,8>"),
    )
    assert [str(ref) for ref in node.inputs] == ["t0", "ids"]
    assert sources(node) == {
        "table": [0, 0], "shards": None, "shard_rows": None, "shard_extras": None, "max_norm": [0.0, 2.0],
    }  # fmt: skip


def chain(*more: str) -> str:
    """A pooled lookup in two shards with clipped rows."""
    lines = pooled("a", "t", "v0", "i0").splitlines()
    lines[2] = table_gather("a/gather", "t, u, a/unique", 2, norm=2.0)
    return "\n".join([variable("u", index=9), *lines, *more])


def pooled_node(*lines: str, **keep: list[str]) -> tuple[Node, dict[str, Node]]:
    result = run(PoolingPacking(), graph_of(graph(BASE, *lines, **keep)))
    assert not result.report.declined
    after = run(DeadNodes(), result.graph).graph
    return after.nodes[result.report.packed[0].node], dict(after.nodes)


def test_a_pooled_lookup_of_shards_and_clipped_rows() -> None:
    node, nodes = pooled_node(chain(), fetches=["a"])
    assert [str(ref) for ref in node.inputs] == ["t", "u", "v0", "i0"]
    assert sources(node) == {
        "table": [0], "shards": [2], "shard_rows": [0], "shard_extras": [0], "max_norm": [2.0],
    }  # fmt: skip
    assert "a/unique" not in nodes


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_the_number_of_ids_tells_the_shape_of_rows(dtype: str) -> None:
    """The gradient of a sum asks for the shape of the distinct rows, which are no longer there."""
    shape = f"shape = Shape(a/gather) {{T = float32, out_type = {dtype}}} -> <2>"
    _, nodes = pooled_node(chain(shape), fetches=["a", "shape"])
    assert nodes["shape"].op == "ConcatV2"
    count, row, axis = (nodes[ref.node] for ref in nodes["shape"].inputs)
    assert (count.op, row.attr("value").tolist(), axis.attr("value")) == ("Slice", [4], 0)
    assert str(nodes[count.inputs[0].node].inputs[0]) == "a/unique"
    assert "a/gather" not in nodes


@pytest.mark.parametrize("op", ["DynamicPartition", "Other"])
def test_the_gradient_of_one_shard_is_read_at_its_places(op: str) -> None:
    text = graph(
        *TABLES[:1],
        *TABLES[3:],
        arg("all", "float32", "<?,8>", 4),
        arg("shard", shape="<?>", index=5),
        arg("places", shape="<?>", index=6),
        scalar("zero", 0),
        "begin = Const() {dtype = int32, value = int32[2](0, 4)} -> <2>",
        "size = Const() {dtype = int32, value = int32[2](-1, 4)} -> <2>",
        "band = Slice(all, begin, size) {Index = int32, T = float32} -> <?,4>",
        "part = DynamicPartition(ids, shard) {T = int64, num_partitions = 2} -> <?>, <?>",
        "place = DynamicPartition(places, shard) {T = int32, num_partitions = 2} -> <?>, <?>",
        f"of_shard = GatherV2(band, {'place:1' if op == 'DynamicPartition' else 'places'}, zero) "
        "{Taxis = int32, Tindices = int32, Tparams = float32, batch_dims = 0} -> <?,4>",
        "squares = Square(of_shard) {T = float32} -> <?,4>",
        "step = Sqrt(squares) {T = float32} -> <?,4>",
        "w = ResourceScatterSub(t0, part:1, step) {Tindices = int64, dtype = float32}",
    )
    result = run(UpdatePacking(), graph_of(text))
    (packed,) = result.report.packed
    node = result.graph.nodes[packed.node]
    if op == "Other":
        assert "of_shard" in {ref.node for ref in node.inputs}
        assert node.attr("gradient_pool") is None
        return
    assert [str(ref) for ref in node.inputs] == ["t0", "part:1", "all", "place:1"]
    assert (node.attr("gradient_pool"), node.attr("segment_first"), node.attr("segment_pitch")) == ([0], [4], [8])

"""pooling_packing and update_packing: sums of the rows of ragged ids, whose segment ids are made of row splits."""

import pytest

from graph_passes.cleanup.dead_nodes import DeadNodes
from graph_passes.ir import Node
from graph_passes.ir.op_defs import PACKED_POOLED_LOOKUP
from graph_passes.packing.pooling_packing import PoolingPacking
from graph_passes.packing.update_packing import UpdatePacking
from tests.support.lines import arg, graph, lookup, scalar, variable, vector
from tests.support.rewrite import graph_of, run

_CUT = "{Index = int32, T = %s, begin_mask = %d, end_mask = %d, shrink_axis_mask = %d}"
SPLITS = "\n".join(
    [
        *(variable("t"), arg("ids", "int32", "<?>", 1), arg("splits", "int64", "<?>", 2)),
        *(vector("first", 0), vector("second", 1), vector("last", -1), vector("flat", -1)),
        *(scalar("zero", 0), scalar("one", 1), scalar("one64", 1, "int64"), scalar("zero64", 0, "int64")),
        lookup("rows", "t, ids", "<?,4>"),
        "sizes = Shape(splits) {T = int64, out_type = int32} -> <1>",
        f"size = StridedSlice(sizes, first, second, second) {_CUT % ('int32', 0, 0, 1)} -> <>",
        "count = Sub(size, one) {T = int32} -> <>",
        "count64 = Cast(count) {SrcT = int32, DstT = int64} -> <>",
        f"ends = StridedSlice(splits, second, first, second) {_CUT % ('int64', 0, 1, 0)} -> <?>",
        f"begins = StridedSlice(splits, first, last, second) {_CUT % ('int64', 1, 0, 0)} -> <?>",
        "lengths = Sub(ends, begins) {T = int64} -> <?>",
        "lengths32 = Cast(lengths) {SrcT = int64, DstT = int32} -> <?>",
        "most = Max(lengths32, first) {T = int32, Tidx = int32, keep_dims = false} -> <>",
        "column = ExpandDims(lengths32, one) {T = int32, Tdim = int32} -> <?,1>",
        "places = Range(zero, most, one) {Tidx = int32} -> <?>",
        "mask = Less(places, column) {T = int32} -> <?,?>",
        "mask/flat = Reshape(mask, flat) {T = bool, Tshape = int32} -> <?>",
        "where = Where(mask/flat) {T = bool} -> <?,1>",
        "where/flat = Squeeze(where) {T = int64, squeeze_dims = [1]} -> <?>",
        "numbers = Range(zero64, count64, one64) {Tidx = int64} -> <?>",
        "numbers/column = ExpandDims(numbers, one) {T = int64, Tdim = int32} -> <?,1>",
        "multiples = Pack(one, most) {N = 2, T = int32, axis = 0} -> <2>",
        "tiled = Tile(numbers/column, multiples) {T = int64, Tmultiples = int32} -> <?,?>",
        "tiled/flat = Reshape(tiled, flat) {T = int64, Tshape = int32} -> <?>",
        "segments = GatherV2(tiled/flat, where/flat, zero) {Taxis = int32, Tindices = int64, Tparams = int64} -> <?>",
    ]
)
"""Ragged ids, and their segment ids as TensorFlow makes them."""

TYPES = "{T = float32, Tindices = int64, Tnumsegments = int32}"
SUM = f"a = UnsortedSegmentSum(rows, segments, count) {TYPES} -> <?,4>"


def packed(
    *lines: str, splits: str = SPLITS, declined: dict | None = None, **keep
) -> tuple[list[Node], dict[str, Node]]:
    """The packed ops, and the other nodes by name, once the pass and `dead_nodes` have run."""
    result = run(PoolingPacking(), graph_of(graph(splits, *lines, **({"fetches": ["a"]} | keep))))
    assert {item.node: item.code for item in result.report.declined} == (declined or {})
    after = run(DeadNodes(), result.graph).graph
    return after.of(PACKED_POOLED_LOOKUP), dict(after.nodes)


def inputs(node: Node) -> list[str]:
    return [str(ref) for ref in node.inputs]


def test_the_row_splits_are_read_where_they_are() -> None:
    ((node,), others) = packed(SUM)
    assert inputs(node) == ["t", "ids", "splits"]
    names = ("segments_are_splits", "lookup_in_turn", "lookup_rows", "lookup_combiner")
    assert [node.attr(name) for name in names] == [[True], [True], [-1], [b"sum"]]
    assert {other.op for other in others.values()} - {"_Arg", "Const"} == {"Identity", node.op}


def test_a_number_of_rows_and_row_numbers_that_were_folded() -> None:
    counted = "counted = Const() {dtype = int64, value = int64[3,1](0, 1, 2)} -> <3,1>"
    known = SPLITS.replace("index = 2} -> <?>", "index = 2} -> <4>").replace("numbers/column, mult", "counted, mult")
    total = SUM.replace("count)", "folded)")
    ((node,), _) = packed(counted, scalar("folded", 3), total, splits=known)
    assert inputs(node) == ["t", "ids", "splits"]
    assert not packed(counted, scalar("folded", 4), total, splits=known, declined={"a": "ragged_reduction"})[0]


def test_rows_times_weights() -> None:
    lines = [
        arg("weights", "float32", "<?>", 3),
        "weights/column = ExpandDims(weights, one) {T = float32, Tdim = int32} -> <?,1>",
        "product = Mul(rows, weights/column) {T = float32} -> <?,4>",
        SUM.replace("(rows", "(product"),
    ]
    ((node,), _) = packed(*lines)
    assert (inputs(node), node.attr("lookup_weights")) == (["t", "ids", "splits", "weights"], [0])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("ends = StridedSlice(splits", "ends = StridedSlice(others"),  # not of the same splits
        ("Range(zero, most", "Range(one, most"),
        ("Tile(numbers/column", "Tile(any"),
        ("Pack(one, most)", "Pack(one, count)"),
        ("Sub(size, one)", "Sub(size, zero)"),
        ("mask = Less", "mask = Greater"),
    ],
)
def test_segment_ids_of_another_origin_stay(before: str, after: str) -> None:
    assert before in SPLITS
    other = [arg("others", "int64", "<?>", 3), arg("any", "int64", "<?,1>", 4)]
    assert not packed(*other, SUM, splits=SPLITS.replace(before, after), declined={"a": "ragged_reduction"})[0]


def test_a_shape_of_the_rows_is_put_together_from_that_of_the_ids() -> None:
    shape = "shape = Shape(rows) {T = float32, out_type = int32} -> <2>"
    ((_,), others) = packed(SUM, shape, "b = Neg(shape) {T = int32}", fetches=["a", "b"])
    assert others["shape"].op == "ConcatV2"
    assert "rows" not in others


@pytest.mark.parametrize(("limit", "pooled"), [("zero64", True), ("one64", False)])
def test_ids_of_a_row_share_its_gradient(limit: str, pooled: bool) -> None:
    lines = [
        *(arg("gradient", "float32", "<?,4>", 5), "nothing = ZerosLike(segments) {T = int64} -> <?>"),
        "at = Maximum(segments, nothing) {T = int64} -> <?>",
        "taken = GatherV2(gradient, at, zero) {Taxis = int32, Tindices = int64, Tparams = float32} -> <?,4>",
        f"test = GreaterEqual(segments, {limit}) {{T = int64}} -> <?>",
        "test/column = ExpandDims(test, one) {T = bool, Tdim = int32} -> <?,1>",
        "true = Const() {dtype = bool, value = bool[](True)} -> <>",
        *("wide = Shape(taken) {T = float32, out_type = int32} -> <2>", "ones = Fill(wide, true) {T = bool} -> <?,4>"),
        "both = LogicalAnd(test/column, ones) -> <?,4>",
        "zeros = ZerosLike(taken) {T = float32} -> <?,4>",
        "each = SelectV2(both, taken, zeros) {T = float32} -> <?,4>",
        "root = Sqrt(each) {T = float32} -> <?,4>",
        "w = ResourceScatterSub(t, ids, root) {Tindices = int32, dtype = float32}",
    ]
    result = run(UpdatePacking(), graph_of(graph(SPLITS, *lines)))
    node = result.graph.nodes[result.report.packed[0].node]
    assert inputs(node) == (["t", "ids", "gradient", "segments"] if pooled else ["t", "ids", "each"])
    assert node.attr("gradient_pool") == ([0] if pooled else None)

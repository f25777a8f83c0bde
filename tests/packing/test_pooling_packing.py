"""pooling_packing: which chains become part of one op, what of them is looked through, and what stays."""

import pytest

from graph_passes.cleanup.dead_nodes import DeadNodes
from graph_passes.ir import Node
from graph_passes.ir.op_defs import PACKED_POOLED_LOOKUP
from graph_passes.packing.pooling_packing import PoolingPacking
from tests.support.lines import assign, concat, graph
from tests.support.pooled_lines import BASE, filled, pooled, safe, zeroed
from tests.support.rewrite import check_rewrite, graph_of, run

PLAIN = pooled("a", "t", "v0", "i0")


def packed(*lines: str, limit: int | None = None, declined: dict | None = None, **keep):
    """(the packed ops, the other nodes by name, the report) once the pass and `dead_nodes` have run."""
    before = graph_of(graph(BASE, *lines, **keep))
    result = run(PoolingPacking(limit), before)
    assert {item.node: item.code for item in result.report.declined} == (declined or {})
    after = run(DeadNodes(), result.graph).graph
    others = {name: node for name, node in after.nodes.items() if name not in before.nodes or node.op != "Const"}
    return sorted(after.of(PACKED_POOLED_LOOKUP), key=lambda node: node.name), others, result.report


def facts(node: Node) -> dict:
    names = ("combiner", "drop", "fill", "ids", "rows", "segments", "table")
    return {name: node.attr(f"lookup_{name}") for name in names}


def test_a_plain_lookup_reads_ids_and_indices_where_they_are() -> None:
    (node,), others, report = packed(PLAIN, fetches=["a"])
    assert [str(ref) for ref in node.inputs] == ["t", "v0", "i0"]
    assert facts(node) == {
        "combiner": [b"mean"], "drop": [False], "fill": [-1], "ids": [0], "rows": [-1], "segments": [0], "table": [0],
    }  # fmt: skip
    assert node.attr("lookup_sort") is None
    assert others["a"].op == "Identity"
    assert not {"a/unique", "a/gather", "a/rows"} & others.keys()
    assert [(item.members, item.absorbed, item.kind) for item in report.packed] == [(("a",), (), "lookup")]


@pytest.mark.parametrize(("op", "combiner"), [("Sum", b"sum"), ("Mean", b"mean"), ("SqrtN", b"sqrtn")])
def test_the_combiner_is_that_of_the_op(op: str, combiner: bytes) -> None:
    (node,), _, _ = packed(pooled("a", "t", "v0", "i0", f"SparseSegment{op}"), fetches=["a"])
    assert node.attr("lookup_combiner") == [combiner]


def test_a_safe_lookup_is_looked_through_down_to_the_sparse_tensor() -> None:
    (node,), others, _ = packed(safe("a", "t", 0), "out = Neg(a) {T = float32} -> <?,?>", fetches=["out"])
    assert [str(ref) for ref in node.inputs] == ["t", "v0", "i0", "s0"]
    assert facts(node) == {
        "combiner": [b"mean"], "drop": [True], "fill": [-1], "ids": [0], "rows": [0], "segments": [0], "table": [0],
    }  # fmt: skip
    assert node.attr("lookup_sort") == [True]
    assert others["out"].inputs[0].node == node.name
    assert {node.op for node in others.values()} == {"_Arg", "Neg", PACKED_POOLED_LOOKUP}


def test_a_default_id_fills_rows_without_ids() -> None:
    seven = "seven = Const() {dtype = int64, value = int64[](7)} -> <>"
    lines = [seven, filled("a/safe", 0, "seven"), pooled("a", "t", "a/safe/fill:1", "a/safe/fill")]
    (node,), _, _ = packed(*lines, fetches=["a"])
    assert [str(ref) for ref in node.inputs] == ["t", "v0", "i0", "s0"]
    assert (node.attr("lookup_fill"), node.attr("lookup_drop")) == ([7], [True])


def test_filled_rows_that_are_not_zeroed_are_that_row() -> None:
    lines = [filled("a/safe", 0), pooled("a", "t", "a/safe/fill:1", "a/safe/fill")]
    assert packed(*lines, fetches=["a"])[0][0].attr("lookup_fill") == [0]


def test_without_a_test_of_the_ids_none_is_dropped() -> None:
    lines = [filled("a/safe", 0, prune=False), pooled("a", "t", "a/safe/fill:1", "a/safe/fill")]
    (node,), _, _ = packed(*lines, fetches=["a"])
    assert [str(ref) for ref in node.inputs] == ["t", "v0", "i0", "s0"]
    assert node.attr("lookup_drop") == [False]


def test_a_select_by_other_rows_stays() -> None:
    """Rows that another feature has none for are zeroed: that is the model's doing."""
    lines = [
        filled("a/safe", 0),
        filled("b/safe", 1),
        pooled("a/sum", "t", "a/safe/fill:1", "a/safe/fill"),
        zeroed("a", "a/sum", "b/safe/fill"),
    ]
    (node,), others, _ = packed(*lines, fetches=["a"])
    assert [str(ref) for ref in node.inputs] == ["t", "a/safe/fill:1", "a/safe/fill"]
    assert others["a"].op == "Select"


def test_a_concatenation_is_written_directly_with_dense_columns_in_between() -> None:
    dense = "x = _Arg() {T = float32, index = 9} -> <?,3>"
    lines = [safe("a", "t", 0), pooled("b", "t2", "v1", "i1", width=8), dense]
    joined = concat("joined", "a, x, b, one", 3, "<?,15>")
    (node,), others, report = packed(*lines, joined, "out = Neg(joined) {T = float32} -> <?,15>", fetches=["out"])
    assert [str(ref) for ref in node.inputs] == ["t", "t2", "v0", "v1", "i0", "i1", "s0", "x"]
    assert (node.attr("piece_source"), node.attr("piece_width")) == ([0, -1, 1], [4, 3, 8])
    assert others["out"].inputs[0].node == node.name
    assert "joined" not in others
    assert report.packed[0].absorbed == ("joined",)


def test_a_result_with_other_readers_keeps_its_concatenation() -> None:
    lines = [PLAIN, pooled("b", "t2", "v1", "i1", width=8), concat("joined", "a, b, one", 2, "<?,12>")]
    (node,), others, report = packed(*lines, "alone = Neg(a) {T = float32} -> <?,4>", fetches=["joined", "alone"])
    assert node.attr("num_outputs") == 2
    assert [str(ref) for ref in others["joined"].inputs[:2]] == [node.name, f"{node.name}:1"]
    assert report.packed[0].absorbed == ()


def test_a_table_that_two_lookups_read_comes_once() -> None:
    (node,), _, _ = packed(PLAIN, pooled("b", "t", "v1", "i0"), fetches=["a", "b"])
    assert [str(ref) for ref in node.inputs] == ["t", "v0", "v1", "i0"]
    assert (node.attr("lookup_table"), node.attr("lookup_segments")) == ([0, 0], [0, 0])


def test_the_most_lookups_of_a_pack() -> None:
    assert len(packed(PLAIN, pooled("b", "t2", "v1", "i1", width=8), limit=1, fetches=["a", "b"])[0]) == 2


def test_lookups_that_depend_on_each_other_are_in_packs_of_their_own() -> None:
    ids = ["m = ArgMax(a, one) {T = float32, Tidx = int32, output_type = int64} -> <?>"]
    nodes, _, _ = packed(PLAIN, *ids, pooled("b", "t2", "m", "i1", width=8), fetches=["b"])
    assert [node.attr("lookup_names") for node in nodes] == [[b"a"], [b"b"]]


def test_order_against_writes_is_kept() -> None:
    x = "x = _Arg() {T = float32, index = 9} -> <10,4>"
    lines = PLAIN.replace("a/gather = ResourceGather(t, a/unique)", "a/gather = ResourceGather(t, a/unique, ^before)")
    (node,), others, _ = packed(x, assign("before", "t, x"), lines, assign("after", "t, x, ^a/gather"), fetches=["a"])
    assert node.controls == ("before",)
    assert others["after"].controls == (node.name,)


WHOLE = "\n".join(
    [
        "a/rows = StridedSlice(i0, at, until, steps) {Index = int32, T = int64, begin_mask = 1, ellipsis_mask = 0, "
        "end_mask = 1, new_axis_mask = 0, shrink_axis_mask = 2} -> <?>",
        "a/read = ReadVariableOp(t) {dtype = float32} -> <10,4>",
        "a = SparseSegmentMean(a/read, v0, a/rows) {T = float32, Tidx = int64, Tsegmentids = int64, "
        "sparse_gradient = false} -> <?,4>",
    ]
)


def test_a_sum_of_rows_of_the_whole_table_reads_the_table_itself() -> None:
    x = "x = _Arg() {T = float32, index = 9} -> <10,4>"
    (node,), others, _ = packed(x, WHOLE, assign("after", "t, x, ^a/read"), fetches=["a"])
    assert [str(ref) for ref in node.inputs] == ["t", "v0", "i0"]
    assert "a/read" not in others
    assert others["after"].controls == (node.name,)


def test_a_snapshot_of_the_table_from_before_a_write_that_the_ids_wait_for_stays() -> None:
    x = "x = _Arg() {T = float32, index = 9} -> <10,4>"
    ids = "late = Identity(v0, ^write) {T = int64} -> <?>"
    lines = [x, WHOLE.replace("a/read, v0", "a/read, late"), assign("write", "t, x, ^a/read"), ids]
    check_rewrite(PoolingPacking(), graph(BASE, *lines, fetches=["a"]), None, declined={"a": "would_form_cycle"})


def test_a_read_of_the_whole_table_with_other_readers_stays() -> None:
    text = graph(BASE, WHOLE, "other = Neg(a/read) {T = float32} -> <10,4>", fetches=["a", "other"])
    check_rewrite(PoolingPacking(), text, None, declined={"a": "gradient_needed"})


def test_what_waits_for_a_gather_comes_before_a_later_lookup() -> None:
    """Not for the sum: the two lookups are in packs of their own, though neither sum leads to the other."""
    x = "x = _Arg() {T = float32, index = 9} -> <10,4>"
    later = pooled("b", "t", "v1", "i1").replace(
        "b/gather = ResourceGather(t, b/unique)", "b/gather = ResourceGather(t, b/unique, ^w)"
    )
    nodes, others, _ = packed(x, PLAIN, assign("w", "t, x, ^a/gather"), later, fetches=["a", "b"])
    first, second = nodes
    assert others["w"].controls == (first.name,)
    assert second.controls == ("w",)


def test_rows_of_several_tables_one_below_the_other_stay_a_concatenation() -> None:
    counted = "SparseSegmentSumWithNumSegments"
    four = "four = Const() {dtype = int32, value = int32[](4)} -> <>"
    lines = [
        pooled(name, "t", ids, "i0", counted)
        .replace(f"{name}/rows) ", f"{name}/rows, four) ")
        .replace("Tsegmentids = int64, sparse", "Tnumsegments = int32, Tsegmentids = int64, sparse")
        .replace(f"{name} = {counted}", f"{name} = {counted}")
        for name, ids in (("a", "v0"), ("b", "v1"))
    ]
    lines = [line.rpartition("-> <?,4>")[0] + "-> <4,4>" for line in lines]
    joined = "c = ConcatV2(a, b, zero) {N = 2, T = float32, Tidx = int32} -> <8,4>"
    (node,), others, _ = packed(four, *lines, joined, fetches=["c"])
    assert node.attr("num_outputs") == 2
    assert others["c"].op == "ConcatV2"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "Reshape(a/safe/fill:2, column) {T = bool, Tshape = int32} -> <?,1>",
            "ExpandDims(a/safe/fill:2, zero) {T = bool, Tdim = int32} -> <1,?>",
        ),
        ("{T = float32} -> <?,4>\na = Select", "{T = float32} -> <1,?,4>\na = Select"),
    ],
)
def test_a_mask_that_is_laid_out_in_another_way_stays(old: str, new: str) -> None:
    masked = zeroed("a", "a/sum", "a/safe/fill")
    assert old in masked
    lines = [filled("a/safe", 0), pooled("a/sum", "t", "a/safe/fill:1", "a/safe/fill"), masked.replace(old, new)]
    others = packed(*lines, fetches=["a"])[1]
    assert others["a"].op == "Select"
    assert "a/safe/fill" in others


def test_gathered_rows_that_something_else_reads_stay() -> None:
    text = graph(BASE, PLAIN, "other = Neg(a/gather) {T = float32} -> <?,4>", fetches=["a", "other"])
    check_rewrite(PoolingPacking(), text, None, declined={"a": "gradient_needed"})


def test_a_chain_whose_rows_a_gradient_reads_stays() -> None:
    gradient = "g = Neg(a/gather) {T = float32} -> <?,4>"
    text = graph(BASE, PLAIN, gradient, fetches=["a", "g"])
    check_rewrite(PoolingPacking(), text, None, declined={"a": "gradient_needed"})


def test_a_gradient_of_distinct_rows_asks_only_for_their_number() -> None:
    types = "{T = float32, Tidx = int32, Tsegmentids = int64}"
    shape = "n = Shape(a/gather) {T = float32, out_type = int32} -> <2>"
    count = "count = GatherV2(n, zero, zero) {Taxis = int32, Tindices = int32, Tparams = int32, batch_dims = 0} -> <>"
    gradient = f"g = SparseSegmentMeanGrad(a, a/unique:1, a/rows, count) {types} -> <?,4>"
    (node,), others, _ = packed(PLAIN, shape, count, gradient, fetches=["g"])
    assert others["n"].op == "ConcatV2"
    assert others["g"].inputs[0].node == node.name
    assert "a/gather" not in others


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("<10,4>", "<?>", "row_shape"),
        ("<10,4>", "<10,2,2>", "row_shape"),
        ("dtype = float32} -> <?,4>", "dtype = float32} @ /job:w/task:1/device:CPU:0 -> <?,4>", "remote_device"),
    ],
)
def test_what_is_left_alone(old: str, new: str, code: str) -> None:
    text = graph(BASE.replace(old, new, 1), PLAIN.replace(old, new, 1), fetches=["a"])
    check_rewrite(PoolingPacking(), text, None, declined={"a": code})

"""pooling_packing and update_packing: sums of weighted rows, and what combines rows in other ways."""

import pytest

from graph_passes.cleanup.dead_nodes import DeadNodes
from graph_passes.ir import Node
from graph_passes.ir.op_defs import PACKED_POOLED_LOOKUP
from graph_passes.packing.pooling_packing import PoolingPacking
from graph_passes.packing.update_packing import UpdatePacking
from tests.support.lines import arg, graph, variable
from tests.support.pooled_lines import BASE, filled_with_weights, pooled, weighted, zeroed
from tests.support.rewrite import check_rewrite, graph_of, run

WEIGHTS = arg("w0", "float32", "<?>", 20)
COMBINERS = pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])


def packed(*lines: str, base: str = BASE, **keep) -> tuple[Node, dict[str, Node]]:
    """The one packed op, and the other nodes by name but constants, once the pass and `dead_nodes` have run."""
    result = run(PoolingPacking(), graph_of(graph(base, WEIGHTS, *lines, **keep)))
    assert not result.report.declined
    after = run(DeadNodes(), result.graph).graph
    (node,) = after.of(PACKED_POOLED_LOOKUP)
    return node, {name: other for name, other in after.nodes.items() if other.op not in ("Const", "_Arg")}


def facts(node: Node) -> tuple:
    names = ("combiner", "weights", "drop", "drop_weightless", "fill", "rows", "sort")
    return tuple(node.attr(f"lookup_{name}") for name in names)


@COMBINERS
def test_a_sum_of_weighted_rows(combiner: str) -> None:
    node, others = packed(weighted("a", "t", "v0", "i0", "w0", combiner), fetches=["a"])
    assert [str(ref) for ref in node.inputs] == ["t", "v0", "i0", "w0"]
    assert facts(node) == ([combiner.encode()], [0], [False], [False], [-1], [-1], None)
    assert node.attr("weights_types") == ["float32"]
    assert {other.op for other in others.values()} == {PACKED_POOLED_LOOKUP, "Identity"}


@COMBINERS
def test_rows_that_are_gathered_for_each_id(combiner: str) -> None:
    """As `allow_fast_lookup` has it."""
    lines = weighted("a", "t", "v0", "i0", "w0", combiner).splitlines()
    kept = [line for line in lines if not line.startswith(("a/unique", "a/each"))]
    text = "\n".join(kept).replace("a/unique", "v0").replace("a/each", "a/gather")
    node, _ = packed(text, fetches=["a"])
    assert [str(ref) for ref in node.inputs] == ["t", "v0", "i0", "w0"]
    assert node.attr("lookup_combiner") == [combiner.encode()]


@COMBINERS
def test_a_safe_lookup_is_looked_through_down_to_the_sparse_tensors(combiner: str) -> None:
    drops = combiner != "sum"
    lines = [
        filled_with_weights("a/safe", 0, "w0", drops),
        weighted("a/sum", "t", "a/safe/fill:1", "a/safe/fill", "a/safe/fill_weights:1", combiner),
        zeroed("a", "a/sum", "a/safe/fill"),
    ]
    node, others = packed(*lines, fetches=["a"])
    assert [str(ref) for ref in node.inputs] == ["t", "v0", "i0", "s0", "w0"]
    assert facts(node) == ([combiner.encode()], [0], [True], [drops], [-1], [0], [True])
    assert {other.op for other in others.values()} == {PACKED_POOLED_LOOKUP, "Identity"}


def test_rows_of_half_types_are_cast_before_and_after() -> None:
    lines = weighted("a", "t", "v0", "i0", "w0", "mean")
    lines = lines.replace("dtype = float32", "dtype = bfloat16").replace("Tparams = float32", "Tparams = bfloat16")
    lines = lines.replace("a/column =", "a/half =").replace(
        "Reshape(w0, column) {T = float32", "Reshape(h, column) {T = bfloat16"
    )
    half = arg("h", "bfloat16", "<?>", 21)
    column = "a/column = Cast(a/half) {DstT = float32, SrcT = bfloat16, Truncate = false} -> <?,1>"
    wide = "a/wide = Cast(a/each) {DstT = float32, SrcT = bfloat16, Truncate = false} -> <?,4>"
    narrow = "b = Cast(a) {DstT = bfloat16, SrcT = float32, Truncate = false} -> <?,4>"
    base = BASE.replace("_handle_dtypes = [float32]", "_handle_dtypes = [bfloat16]", 1)
    lines = lines.replace("Mul(a/each", "Mul(a/wide")
    node, others = packed(half, lines, column, wide, narrow, base=base, fetches=["b"])
    assert [str(ref) for ref in node.inputs] == ["t", "v0", "i0", "a/column"]
    assert sorted(others) == ["a/column", "a/half", "b", node.name]
    assert (node.attr("dtype"), node.attr("weights_types")) == ("bfloat16", ["float32"])


def test_lookups_with_and_without_weights_are_one_op() -> None:
    lines = [weighted("a", "t", "v0", "i0", "w0", "sum"), pooled("b", "t2", "v1", "i1", width=8)]
    node, _ = packed(*lines, fetches=["a", "b"])
    assert [str(ref) for ref in node.inputs] == ["t", "t2", "v0", "v1", "i0", "i1", "w0"]
    assert node.attr("lookup_weights") == [0, -1]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("SegmentSum(a/column, a/segments)", "SegmentSum(a/column, other)"),
        ("SegmentSum(a/column, a/segments)", "SegmentSum(a/other, a/segments)"),
        ("a = DivNoNan(a/total, a/parts)", "a = DivNoNan(a/parts, a/total)"),
    ],
)
def test_what_is_divided_by_something_else_is_a_sum(old: str, new: str) -> None:
    other = [arg("other", "int32", "<?>", 21), arg("w1", "float32", "<?>", 22)]
    column = "a/other = Reshape(w1, column) {T = float32, Tshape = int32} -> <?,1>"
    lines = weighted("a", "t", "v0", "i0", "w0", "mean")
    assert old in lines
    node, others = packed(*other, column, lines.replace(old, new), fetches=["a"])
    assert node.attr("lookup_combiner") == [b"sum"]
    assert others["a"].op == "DivNoNan"


@pytest.mark.parametrize(
    ("old", "new"), [("unit) {T", "nothing) {T"), ("a/safe/weights_2, a/safe/flat:1", "a/safe/weights_2, s0")]
)
def test_weights_that_are_filled_in_another_way_are_read_filled(old: str, new: str) -> None:
    safe = filled_with_weights("a/safe", 0, "w0", True)
    assert old in safe
    lines = weighted("a", "t", "a/safe/fill:1", "a/safe/fill", "a/safe/fill_weights:1", "mean")
    node, _ = packed(safe.replace(old, new), lines, fetches=["a"])
    assert [str(ref) for ref in node.inputs] == ["t", "a/safe/fill:1", "a/safe/fill", "a/safe/fill_weights:1"]


def test_ids_are_left_out_by_tests_of_their_own_weights_only() -> None:
    safe = filled_with_weights("a/safe", 0, "w0", True).replace("Greater(a/safe/weights,", "Greater(w9,")
    lines = weighted("a", "t", "a/safe/fill:1", "a/safe/fill", "a/safe/fill_weights:1", "mean")
    node, _ = packed(arg("w9", "float32", "<?>", 21), safe, lines, fetches=["a"])
    assert [str(ref) for ref in node.inputs[1:3]] == ["a/safe/ids_2", "a/safe/indices_2"]
    assert facts(node)[2:4] == ([False], [False])


def test_rows_that_a_gradient_of_the_weights_needs_stay() -> None:
    other = "other = Mul(a/each, a/each) {T = float32} -> <?,4>"
    text = graph(BASE, WEIGHTS, weighted("a", "t", "v0", "i0", "w0", "sum"), other, fetches=["a", "other"])
    check_rewrite(PoolingPacking(), text, None, declined={"a": "gradient_needed"})


# ---- Gradients ----


def gradient(static: bool) -> list[str]:
    """The gradient of each id's row, `each`, and a write of it by ids."""
    taken = "{Taxis = int32, Tindices = int32, Tparams = float32, batch_dims = 0}"
    shapes = [
        f"n{i} = Shape({of}) {{T = float32, out_type = int32}} -> <2>" for i, of in enumerate(("a/each", "a/column"))
    ]
    lines = [
        arg("gradient", "float32", "<?,4>", 9),
        weighted("a", "t", "v0", "i0", "w0", "sum"),
        f"taken = GatherV2(gradient, a/segments, zero) {taken} -> <?,4>",
        "product = Mul(a/column, taken) {T = float32} -> <?,4>",
        *shapes,
        "args = BroadcastGradientArgs(n0, n1) {T = int32} -> <?>, <?>",
        "summed = Sum(product, args) {T = float32, Tidx = int32, keep_dims = true} -> <?,?>",
        "each = Reshape(summed, n0) {T = float32, Tshape = int32} -> <?,4>",
        "w = ResourceScatterSub(t, v0, each) {Tindices = int64, dtype = float32}",
    ]
    return [line.replace("Reshape(summed", "Reshape(product") for line in lines] if static else lines


@pytest.mark.parametrize("static", [True, False])
def test_the_gradient_of_each_id_is_the_row_that_it_went_into_times_its_weight(static: bool) -> None:
    result = run(UpdatePacking(), graph_of(graph(BASE, WEIGHTS, *gradient(static))))
    node = result.graph.nodes[result.report.packed[0].node]
    assert [str(ref) for ref in node.inputs] == ["t", "v0", "gradient", "i0", "w0"]
    assert (node.attr("gradient_pool"), node.attr("gradient_weights")) == ([0], [0])
    assert (node.attr("gradient_combiner"), node.attr("weights_types")) == ([b"sum"], ["float32"])


@pytest.mark.parametrize("prune_weights", [False, True])
def test_ids_of_sums_are_read_from_before_empty_rows_were_filled(prune_weights: bool) -> None:
    """Unless some are left out for their weights, which packed updates do not know of."""
    taken = "{Taxis = int32, Tindices = int32, Tparams = float32, batch_dims = 0}"
    sums = "{T = float32, Tindices = int32, Tnumsegments = int32}"
    lines = [
        arg("gradient", "float32", "<?,4>", 9),
        filled_with_weights("a/safe", 0, "w0", prune_weights),
        weighted("a/sum", "t", "a/safe/fill:1", "a/safe/fill", "a/safe/fill_weights:1", "sum"),
        zeroed("a", "gradient", "a/safe/fill"),
        f"taken = GatherV2(a, a/sum/segments, zero) {taken} -> <?,4>",
        "each = Mul(a/sum/column, taken) {T = float32} -> <?,4>",
        "count = Size(a/sum/unique) {T = int64, out_type = int32} -> <>",
        f"distinct = UnsortedSegmentSum(each, a/sum/unique:1, count) {sums} -> <?,4>",
        "w = ResourceScatterSub(t, a/sum/unique, distinct) {Tindices = int64, dtype = float32}",
    ]
    result = run(UpdatePacking(), graph_of(graph(BASE, WEIGHTS, *lines)))
    node = result.graph.nodes[result.report.packed[0].node]
    filled_inputs = ["t", "a/safe/fill:1", "a", "a/safe/fill", "a/safe/fill_weights:1"]
    assert [str(ref) for ref in node.inputs] == (
        filled_inputs if prune_weights else ["t", "v0", "gradient", "i0", "w0"]
    )
    assert node.attr("segment_fill") == (None if prune_weights else [0])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Shape(a/column)", "Shape(a/each)"),  # then the weights are no column
        ("Sum(product, args)", "Sum(product, args:1)"),
    ],
)
def test_a_sum_over_something_else_is_read_as_it_is(old: str, new: str) -> None:
    text = graph(BASE, WEIGHTS, *gradient(False)).replace(old, new)
    result = run(UpdatePacking(), graph_of(text))
    node = result.graph.nodes[result.report.packed[0].node]
    assert [str(ref) for ref in node.inputs] == ["t", "v0", "summed"]


# ---- What stays, and why ----

ROWS = "r = ResourceGather(t, v0) {Tindices = int64, dtype = float32} -> <?,4>"
SEGMENTS = arg("s", "int32", "<?>", 21)


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        (["a = SegmentSum(r, s) {T = float32, Tindices = int32} -> <?,4>"], "segment_reduction"),
        (["a = SegmentMax(r, s) {T = float32, Tindices = int32} -> <?,4>"], "segment_reduction"),
        (
            ["a = UnsortedSegmentSum(r, s, one) {T = float32, Tindices = int32, Tnumsegments = int32} -> <?,4>"],
            "ragged_reduction",
        ),
        (
            [
                "c = Reshape(w0, column) {T = float32, Tshape = int32} -> <?,1>",
                "p = Mul(r, c) {T = float32} -> <?,4>",
                "a = SegmentMean(p, s) {T = float32, Tindices = int32} -> <?,4>",
            ],
            "weighted_form",
        ),
        (
            [
                "u = Unique(v0) {T = int64, out_idx = int32} -> <?>, <?>",
                "n = Square(r) {T = float32} -> <?,4>",
                "a = SparseSegmentMean(n, u:1, s) {T = float32, Tidx = int32, Tsegmentids = int32, "
                "sparse_gradient = false} -> <?,4>",
            ],
            "rows_changed",
        ),
        (
            [
                variable("t3", index=23),
                "r2 = ResourceGather(t3, v0) {Tindices = int64, dtype = float32} -> <?,4>",
                "m = DynamicStitch(s, s, r, r2) {N = 2, T = float32} -> <?,4>",
                "a = SparseSegmentMean(m, s, s) {T = float32, Tidx = int32, Tsegmentids = int32, "
                "sparse_gradient = false} -> <?,4>",
            ],
            "sharded_table",
        ),
    ],
)
def test_why_another_form_stays(lines: list[str], code: str) -> None:
    text = graph(BASE, WEIGHTS, SEGMENTS, ROWS, *lines, fetches=["a"])
    check_rewrite(PoolingPacking(), text, None, declined={"a": code})


@pytest.mark.parametrize("segments", ["u:1", "v0"])
def test_sums_over_equal_ids_are_an_optimizers(segments: str) -> None:
    unique = "u = Unique(v0) {T = int64, out_idx = int32} -> <?>, <?>"
    kind = "int32" if segments == "u:1" else "int64"
    line = (
        f"a = UnsortedSegmentSum(r, {segments}, one) {{T = float32, Tindices = {kind}, Tnumsegments = int32}} -> <?,4>"
    )
    check_rewrite(PoolingPacking(), graph(BASE, WEIGHTS, ROWS, unique, line, fetches=["a"]), None)

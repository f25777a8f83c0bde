"""pooling_packing: what TensorFlow folds a safe lookup to where the batch is known, and shapes that change nothing."""

import pytest

from graph_passes.cleanup.dead_nodes import DeadNodes
from graph_passes.ir.op_defs import PACKED_POOLED_LOOKUP
from graph_passes.packing.pooling_packing import PoolingPacking
from tests.packing.test_pooling_packing import PLAIN, packed
from tests.support.lines import assign, concat, graph
from tests.support.pooled_lines import BASE, filled, pooled, zeroed, zeros
from tests.support.rewrite import graph_of, run

MASKS = "begin_mask = 0, ellipsis_mask = 0, end_mask = 0, new_axis_mask = 0, shrink_axis_mask = 1"


def known_batch(reshaped: str = "known, known", value: float = 0.0, width: int = 4, table: str = "t") -> list[str]:
    """A safe lookup in which TensorFlow folded what it could, for the batch is known."""
    zeroed_rows = zeroed("a", "a/sum", "a/safe/fill", width)
    kept = [line for line in zeroed_rows.splitlines() if "ZerosLike" not in line]
    return [
        filled("a/safe", 0, known=reshaped),
        pooled("a/sum", table, "a/safe/fill:1", "a/safe/fill", width=width),
        zeros("a/zeros", "a/sum", width, value),
        *kept,
    ]


def test_what_is_folded_for_a_known_batch_is_looked_through() -> None:
    (node,), others, _ = packed(*known_batch(), "out = Neg(a) {T = float32} -> <6,4>", fetches=["out"])
    assert [str(ref) for ref in node.inputs] == ["t", "v0", "i0", "known"]
    assert (node.attr("lookup_fill"), node.attr("lookup_drop"), node.attr("lookup_sort")) == ([-1], [True], [True])
    assert {node.op for node in others.values()} == {"_Arg", "Neg", PACKED_POOLED_LOOKUP}


def test_a_mask_of_width_one_need_not_be_repeated() -> None:
    table = BASE.replace("<10,4>", "<10,1>")
    lines = "\n".join(known_batch(width=1)).replace("Select(a/tile,", "Select(a/empty,")
    before = graph_of(graph(table, lines, fetches=["a"]))
    after = run(DeadNodes(), run(PoolingPacking(), before).graph).graph
    (node,) = after.of(PACKED_POOLED_LOOKUP)
    assert [str(ref) for ref in node.inputs] == ["t", "v0", "i0", "known"]
    assert after.nodes["a"].op == "Identity"


@pytest.mark.parametrize("value", [-0.0, 1.0])
def test_a_constant_that_is_no_zero_stays(value: float) -> None:
    (node,), others, _ = packed(*known_batch(value=value), fetches=["a"])
    assert others["a"].op == "Select"
    assert [str(ref) for ref in node.inputs] == ["t", "a/safe/fill:1", "a/safe/fill"]


def test_zeros_that_wait_for_a_write_stay() -> None:
    x = "x = _Arg() {T = float32, index = 9} -> <10,4>"
    lines = [line.replace("Const(^a/sum)", "Const(^write)") for line in known_batch()]
    _, others, _ = packed(x, assign("write", "t, x, ^a/sum/gather"), *lines, fetches=["a"])
    assert others["a"].op == "Select"


@pytest.mark.parametrize(
    ("reshaped", "shape"), [("s0, s0", "s0"), ("s0, s1", "a/safe/flat:1"), ("known, other", "a/safe/flat:1")]
)
def test_a_sparse_reshape_is_looked_through_where_it_changes_nothing(reshaped: str, shape: str) -> None:
    other = "other = Const() {dtype = int64, value = int64[2](3, 6)} -> <2>"
    lines = known_batch(reshaped)
    (node,), _, _ = packed(other, *lines, fetches=["a"])
    indices = "i0" if shape == "s0" else "a/safe/flat"
    assert [str(ref) for ref in node.inputs] == ["t", "v0", indices, shape]


def test_a_reshape_to_the_shape_that_is_there_is_looked_through() -> None:
    lines = [
        "shape = Shape(a) {T = float32, out_type = int32} -> <2>",
        f"rows = StridedSlice(shape, begin, size, size) {{Index = int32, T = int32, {MASKS}}} -> <>",
        "four = Const() {dtype = int32, value = int32[](4)} -> <>",
        "to = Pack(rows, four) {N = 2, T = int32, axis = 0} -> <2>",
        "same = Reshape(a, to) {T = float32, Tshape = int32} -> <?,4>",
        "x = _Arg() {T = float32, index = 9} -> <?,3>",
        concat("out", "same, x, one", 2, "<?,7>"),
    ]
    (node,), others, report = packed(PLAIN, *lines, fetches=["out"])
    assert report.packed[0].absorbed == ("out",)
    assert others["out"].inputs[0].node == node.name

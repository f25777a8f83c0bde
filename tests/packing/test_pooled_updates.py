"""update_packing: gradients of pooled lookups are read from before empty rows were filled, where that is the same."""

import pytest

from graph_passes.cleanup.dead_nodes import DeadNodes
from graph_passes.ir import Node
from graph_passes.packing.update_packing import UpdatePacking
from tests.support.lines import arg, graph
from tests.support.pooled_lines import BASE, filled, pooled, zeroed, zeros
from tests.support.rewrite import graph_of, run

TYPES = "{T = float32, Tidx = int32, Tsegmentids = int64}"


def gradient(table: str, width: int, known: bool = False) -> list[str]:
    """The gradient of the distinct rows of a safe lookup: `a/grad`, for the ids `a/sum/unique`."""
    masked = zeroed("a", "gradient", "a/safe/fill", width)
    if known:
        masked = "\n".join(line for line in masked.splitlines() if "ZerosLike" not in line)
        masked = zeros("a/zeros", "a/sum", width) + "\n" + masked
    return [
        arg("gradient", "float32", f"<?,{width}>", 9),
        arg("rate", "float32", "<>", 10),
        filled("a/safe", 0, known="known, known" if known else ""),
        pooled("a/sum", table, "a/safe/fill:1", "a/safe/fill", width=width),
        masked,
        "a/count = Size(a/sum/unique) {T = int64, out_type = int32} -> <>",
        f"a/grad = SparseSegmentMeanGrad(a, a/sum/unique:1, a/sum/rows, a/count) {TYPES} -> <?,{width}>",
    ]


def step(table: str, width: int, function: str) -> list[str]:
    """A write of the distinct rows."""
    return [
        f"a/root = {function}(a/grad) {{T = float32}} -> <?,{width}>",
        f"a/step = Mul(a/root, rate) {{T = float32}} -> <?,{width}>",
        f"w = ResourceScatterSub({table}, a/sum/unique, a/step) {{Tindices = int64, dtype = float32}}",
    ]


def packed(*lines: str) -> tuple[Node, set[str]]:
    """The packed update, and the ops that are left when the dead nodes are gone."""
    result = run(UpdatePacking(), graph_of(graph(BASE, *lines)))
    assert not result.report.declined
    after = run(DeadNodes(), result.graph).graph
    return after.nodes[result.report.packed[0].node], {node.op for node in after.nodes.values()} - {"_Arg", "Const"}


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize(
    ("table", "width", "function"), [("t2", 8, "Rsqrt"), ("t2", 8, "Sqrt"), ("t", 4, "Sqrt"), ("t", 4, "Square")]
)
def test_ids_are_read_from_before_empty_rows_were_filled(table: str, width: int, function: str, known: bool) -> None:
    node, ops = packed(*gradient(table, width, known), *step(table, width, function))
    assert [str(ref) for ref in node.inputs] == [table, "v0", "gradient", "rate", "i0"]
    assert (node.attr("segment_fill"), node.attr("gradient_combiner")) == ([0], [b"mean"])
    assert ops == {node.op}


@pytest.mark.parametrize("known", [False, True])
def test_a_root_of_narrow_rows_needs_the_order_of_the_distinct_ids(known: bool) -> None:
    node, ops = packed(*gradient("t", 4, known), *step("t", 4, "Rsqrt"))
    assert [str(ref) for ref in node.inputs] == ["t", "a/safe/fill:1", "a", "rate", "a/safe/fill"]
    assert node.attr("segment_fill") is None
    assert "Select" in ops

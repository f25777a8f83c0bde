"""pooling_packing and update_packing: sums and means along axis 1 of the rows of a matrix of ids."""

import pytest

from graph_passes.cleanup.dead_nodes import DeadNodes
from graph_passes.ir import Node
from graph_passes.ir.op_defs import PACKED_POOLED_LOOKUP
from graph_passes.packing.pooling_packing import PoolingPacking
from graph_passes.packing.update_packing import UpdatePacking
from tests.support.lines import arg, concat, graph, lookup, scalar, variable, vector
from tests.support.rewrite import graph_of, run

BASE = "\n".join(
    [
        variable("t"),
        variable("t2", "<20,8>", index=1),
        arg("ids", "int32", "<?,?>", 2),
        arg("more", "int32", "<?,6>", 3),
        arg("given", "float32", "<?,6,1>", 4),
        scalar("zero", 0),
        scalar("one", 1),
        scalar("two", 2),
        scalar("ten", 10),
        "none = Const() {dtype = float32, value = float32[](0.0)} -> <>",
    ]
)
ROWS = lookup("rows", "t, ids", "<?,?,4>")
MORE = lookup("rows", "t, more", "<?,6,4>")


def reduce(op: str = "Sum", of: str = "rows", name: str = "a", axis: str = "one", keep: str = "false", shape="<?,4>"):
    return f"{name} = {op}({of}, {axis}) {{T = float32, Tidx = int32, keep_dims = {keep}}} -> {shape}"


def mask(name: str = "mask", ids: str = "ids", shape: str = "<?,?>") -> str:
    column = shape.replace(">", ",1>")
    return "\n".join(
        [
            f"{name}/test = NotEqual({ids}, zero) {{T = int32}} -> {shape}",
            f"{name}/bool = ExpandDims({name}/test, two) {{T = bool, Tdim = int32}} -> {column}",
            f"{name} = Cast({name}/bool) {{SrcT = bool, DstT = float32}} -> {column}",
        ]
    )


def mul(one: str, other: str, shape: str = "<?,?,4>", name: str = "product") -> str:
    return f"{name} = Mul({one}, {other}) {{T = float32}} -> {shape}"


def packed(*lines: str, declined: dict | None = None, **keep) -> tuple[list[Node], dict[str, Node]]:
    """The packed ops, and the other nodes by name, once the pass and `dead_nodes` have run."""
    before = graph_of(graph(BASE, *lines, **({"fetches": ["a"]} | keep)))
    result = run(PoolingPacking(), before)
    assert {item.node: item.code for item in result.report.declined} == (declined or {})
    after = run(DeadNodes(), result.graph).graph
    return after.of(PACKED_POOLED_LOOKUP), dict(after.nodes)


def inputs(node: Node) -> list[str]:
    return [str(ref) for ref in node.inputs]


@pytest.mark.parametrize(("op", "combiner"), [("Sum", b"sum"), ("Mean", b"mean")])
@pytest.mark.parametrize("axis", ["one", "minus_two"])
def test_a_sum_of_the_rows_of_a_matrix_of_ids(op: str, combiner: bytes, axis: str) -> None:
    ((node,), others) = packed(vector("minus_two", -2), ROWS, reduce(op, axis=axis))
    assert inputs(node) == ["t", "ids"]
    assert (node.attr("lookup_combiner"), node.attr("lookup_segments"), node.attr("lookup_rows")) == (
        [combiner],
        [-1],
        [-1],
    )
    assert (node.attr("segments_types"), node.attr("lookup_column"), node.attr("lookup_wrap")) == ([], [-1], [0])
    assert "rows" not in others
    assert others["a"].op == "Identity"


def test_wraps_and_columns_are_read_by_the_op() -> None:
    cut = "{Index = int32, T = int32, begin_mask = 1, end_mask = 1}"
    lines = [
        *(vector("begin", 0, 2), vector("end", 0, 5), vector("steps", 1, 1)),
        f"cut = StridedSlice(more, begin, end, steps) {cut} -> <?,3>",
        "less = Less(cut, zero) {T = int32} -> <?,3>",
        "add = AddV2(cut, ten) {T = int32} -> <?,3>",
        "wrapped = SelectV2(less, add, cut) {T = int32} -> <?,3>",
        *(lookup("rows", "t, wrapped", "<?,3,4>"), reduce()),
    ]
    ((node,), others) = packed(*lines)
    assert inputs(node) == ["t", "more"]
    read = [node.attr(f"lookup_{name}") for name in ("column", "columns", "wrap", "narrow")]
    assert read == [[2], [3], [10], [False]]
    assert "cut" not in others


@pytest.mark.parametrize("swapped", [False, True])
def test_a_product_with_a_mask_of_the_ids(swapped: bool) -> None:
    pair = ("mask", "rows") if swapped else ("rows", "mask")
    ((node,), _) = packed(ROWS, mask(), mul(*pair), reduce(of="product"))
    assert inputs(node) == ["t", "ids", "mask"]
    assert (node.attr("weights_types"), node.attr("lookup_weights")) == (["float32"], [0])


def test_a_choice_between_rows_and_zeros() -> None:
    choice = "product = SelectV2(mask/bool, rows, none) {T = float32} -> <?,?,4>"
    ((node,), _) = packed(ROWS, mask(), choice, reduce(of="product"))
    assert inputs(node) == ["t", "ids", "mask/test"]
    assert (node.attr("weights_types"), node.attr("lookup_weights")) == (["bool"], [0])


def test_weights_that_an_axis_was_added_to() -> None:
    cut = "{Index = int32, T = float32, ellipsis_mask = 1, new_axis_mask = 2}"
    lines = [
        *(arg("plain", "float32", "<?,6>", 5), vector("at", 0, 0), vector("steps", 1, 1)),
        f"column = StridedSlice(plain, at, at, steps) {cut} -> <?,6,1>",
        *(MORE, mul("rows", "column", "<?,6,4>"), reduce(of="product")),
    ]
    assert inputs(packed(*lines)[0][0]) == ["t", "more", "plain"]


def test_weights_by_themselves_have_the_length_of_the_ids() -> None:
    ((node,), _) = packed(MORE, mul("rows", "given", "<?,6,4>"), reduce(of="product"))
    assert inputs(node) == ["t", "more", "given"]


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ([ROWS, mul("rows", "given"), reduce(of="product")], "weighted_form"),  # the length is not known
        (
            [arg("one_each", "float32", "<?,1,1>", 5), MORE, mul("rows", "one_each", "<?,6,4>"), reduce(of="product")],
            "weighted_form",
        ),
        ([ROWS, "square = Square(rows) {T = float32} -> <?,?,4>", reduce(of="square")], "rows_changed"),
        ([ROWS, reduce("Max")], "segment_reduction"),
        ([ROWS, reduce(keep="true", shape="<?,1,4>")], "segment_reduction"),
        ([ROWS, mask(), mul("rows", "mask"), reduce("Mean", of="product")], "weighted_form"),
        ([ROWS, mask(), mul("rows", "mask"), reduce(of="product"), "b = Neg(rows) {T = float32}"], "gradient_needed"),
        ([ROWS, reduce(), "b = Neg(rows) {T = float32}"], "gradient_needed"),
    ],
)
def test_what_stays_is_listed(lines: list[str], code: str) -> None:
    assert not packed(*lines, declined={"a": code}, fetches=["a", "b"] if code == "gradient_needed" else ["a"])[0]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_types_stay(dtype: str) -> None:
    lines = [
        variable("h", dtype=dtype, index=5),
        lookup("rows", "h, ids", "<?,?,4>", dtype),
        reduce().replace("float32", dtype),
    ]
    assert not packed(*lines, declined={"a": "dtype_not_supported"})[0]


def test_sums_over_other_axes_are_no_lookups() -> None:
    for axis, shape in (("zero", "<?,4>"), ("two", "<?,?>")):
        assert not packed(ROWS, reduce(axis=axis, shape=shape))[0]


def test_all_of_one_level_share_a_pack_and_a_concatenation() -> None:
    lines = [
        *(ROWS, reduce("Mean"), lookup("other", "t2, more", "<?,6,8>"), reduce(of="other", name="b", shape="<?,8>")),
        concat("out", "a, b, one", 2, "<?,12>"),
    ]
    ((node,), _) = packed(*lines, fetches=["out"])
    assert (node.attr("num_outputs"), node.attr("piece_width")) == (1, [4, 8])
    assert inputs(node) == ["t", "t2", "ids", "more"]


def test_a_shape_of_the_rows_is_put_together_from_that_of_the_ids() -> None:
    shape = "shape = Shape(rows) {T = float32, out_type = int64} -> <3>"
    ((_,), others) = packed(ROWS, reduce("Mean"), shape, "b = Neg(shape) {T = int64}", fetches=["a", "b"])
    assert others["shape"].op == "ConcatV2"
    of_ids, width, _ = (others[ref.node] for ref in others["shape"].inputs)
    assert (inputs(of_ids), of_ids.attr("out_type"), width.attr("value").tolist()) == (["ids"], "int64", [4])
    assert "rows" not in others


# ---- Gradients ---------------------------------------------------------------------------------------------------

FLAT = "flat = Reshape(ids, minus) {T = int32, Tshape = int32} -> <?>"
GRADIENT = arg("gradient", "float32", "<?,4>", 6)
BY_STITCH = [
    *(vector("axes", 0, 1, 2), ROWS, "shape = Shape(rows) {T = float32, out_type = int32} -> <3>"),
    "kept = DynamicStitch(axes, one, shape, one) {N = 2, T = int32} -> <3>",
    "one_each = Reshape(gradient, kept) {T = float32, Tshape = int32} -> <?,?,?>",
    "repeated = BroadcastTo(one_each, shape) {T = float32, Tidx = int32} -> <?,?,4>",
]
BY_TILE = [
    "one_each = ExpandDims(gradient, one) {T = float32, Tdim = int32} -> <?,1,4>",
    vector("multiples", 1, 6, 1),
    "repeated = Tile(one_each, multiples) {T = float32, Tmultiples = int32} -> <?,6,4>",
]


def updated(*lines: str, of: str = "repeated") -> Node:
    """The packed update of a table by the gradient rows `of`."""
    text = graph(
        *(BASE, GRADIENT, vector("minus", -1), vector("matrix", -1, 4), FLAT, *lines),
        f"each = Reshape({of}, matrix) {{T = float32, Tshape = int32}} -> <?,4>",
        "root = Sqrt(each) {T = float32} -> <?,4>",
        "w = ResourceScatterSub(t, flat, root) {Tindices = int32, dtype = float32}",
    )
    result = run(UpdatePacking(), graph_of(text))
    assert not result.report.declined
    return result.graph.nodes[result.report.packed[0].node]


@pytest.mark.parametrize("lines", [BY_STITCH, BY_TILE], ids=["stitch", "tile"])
def test_the_ids_of_an_example_share_its_gradient(lines: list[str]) -> None:
    node = updated(*lines)
    assert inputs(node) == ["t", "ids", "gradient"]
    assert (node.attr("gradient_pool"), node.attr("gradient_combiner"), node.attr("weights_types")) == (
        *([-2], [b"sum"]),
        None,
    )


def test_a_mask_hides_gradients() -> None:
    choice = "masked = SelectV2(mask/bool, repeated, none) {T = float32} -> <?,?,4>"
    node = updated(*BY_STITCH, mask(), choice, of="masked")
    assert inputs(node) == ["t", "ids", "gradient", "mask/test"]
    assert (node.attr("gradient_pool"), node.attr("weights_types")) == ([-2], ["bool"])


def test_weights_scale_gradients_also_where_dimensions_were_summed() -> None:
    lines = [
        *(mask(), mul("repeated", "mask"), "other = Shape(mask) {T = float32, out_type = int32} -> <3>"),
        "sums = BroadcastGradientArgs(shape, other) {T = int32} -> <?>, <?>",
        "summed = Sum(product, sums) {T = float32, Tidx = int32, keep_dims = true} -> <?,?,?>",
    ]
    node = updated(*BY_STITCH, *lines, of="summed")
    assert inputs(node) == ["t", "ids", "gradient", "mask"]
    assert (node.attr("gradient_pool"), node.attr("gradient_weights")) == ([-2], [0])


@pytest.mark.parametrize(
    "lines",
    [
        [line.replace("one, shape, one", "zero, shape, one") for line in BY_STITCH],  # a sum over examples
        [line.replace("<?,1,4>", "<1,?,4>") for line in BY_TILE],
        [line.replace("value = int32[3](1, 6, 1)", "value = int32[3](6, 1, 1)") for line in BY_TILE],
    ],
)
def test_gradients_that_examples_share_are_read_as_they_are(lines: list[str]) -> None:
    node = updated(*lines)
    assert inputs(node) == ["t", "ids", "repeated"]
    assert node.attr("gradient_pool") is None

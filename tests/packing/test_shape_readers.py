"""embedding_packing: who asks for the shape of a replaced tensor is told by the packed op."""

from tests.packing.test_embedding_packing import A, B, check
from tests.support.lines import Rows, arg, concat, identity, lookup, packed, vector

JOIN = concat("out", "a, b, axis", 2, "<?,12>")
OUT = identity("out", "picasso/embedding_packing/a", shape="<?,12>")
MEMBERS = [Rows("a"), Rows("b", 1)]
JOINED = [("<?,12>", [(0, 4), (1, 8)])]


def test_a_shape_of_int32_is_an_output_of_the_pack() -> None:
    check(
        [A, B, JOIN, "shape = Shape(a) {T = float32, out_type = int32} -> <2>", "n = Neg(shape) {T = int32}"],
        [
            packed("t1, t2, ids", MEMBERS, JOINED, shapes=[(0, "<?,4>")]),
            *[OUT, "n = Neg(picasso/embedding_packing/a:1) {T = int32}"],
        ],
        fetches=["out", "n"],
    )


def test_a_shape_of_int64_is_cast() -> None:
    cast = (
        "shape/picasso/as_int64_1 = Cast(picasso/embedding_packing/a:1) {DstT = int64, SrcT = int32, Truncate = false}"
    )
    check(
        [A, B, JOIN, "shape = Shape(b) {T = float32, out_type = int64} -> <2>", "n = Neg(shape) {T = int64}"],
        [
            packed("t1, t2, ids", MEMBERS, JOINED, shapes=[(1, "<?,8>")]),
            *[OUT, cast, "n = Neg(shape/picasso/as_int64_1) {T = int64}"],
        ],
        fetches=["out", "n"],
    )


def test_a_shape_n_keeps_the_inputs_that_are_no_lookups() -> None:
    dense = arg("dense", "float32", "<?,3>", 3)
    users = ["n{} = Neg(shapes{}) {{T = int32}}".format(i, f":{i}" if i else "") for i in range(4)]
    check(
        [
            *[dense, A, B, JOIN],
            "shapes = ShapeN(dense, a, out, b) {N = 4, T = float32, out_type = int32} -> <2>, <2>, <2>, <2>",
            *users,
        ],
        [
            *[dense, packed("t1, t2, ids", MEMBERS, JOINED, shapes=[(0, "<?,4>"), (1, "<?,8>")]), OUT],
            "shapes = ShapeN(dense, out) {N = 2, T = float32, out_type = int32}",
            "n0 = Neg(shapes) {T = int32}",
            "n1 = Neg(picasso/embedding_packing/a:1) {T = int32}",
            "n2 = Neg(shapes:1) {T = int32}",
            "n3 = Neg(picasso/embedding_packing/a:2) {T = int32}",
        ],
        fetches=["out", *[f"n{i}" for i in range(4)]],
    )


def test_members_of_one_concatenation_with_equal_shapes_share_a_shape_output() -> None:
    other = arg("other", index=3)
    check(
        [
            *[other, A, lookup("b", "t1, other"), concat("out", "a, b, axis", 2, "<?,8>")],
            "shapes = ShapeN(a, b) {N = 2, T = float32, out_type = int32} -> <2>, <2>",
            *["x = Neg(shapes) {T = int32}", "y = Neg(shapes:1) {T = int32}"],
        ],
        [
            other,
            packed(
                "t1, ids, other",
                [Rows("a"), Rows("b", 0, 1)],
                [("<?,8>", [(0, 4), (1, 4)])],
                ids=["int32"] * 2,
                shapes=[(0, "<?,4>")],
            ),
            identity("out", "picasso/embedding_packing/a", shape="<?,8>"),
            *[f"{name} = Neg(picasso/embedding_packing/a:1) {{T = int32}}" for name in "xy"],
        ],
        fetches=["out", "x", "y"],
    )


def test_the_shape_of_a_reshaped_member_has_its_own_form() -> None:
    flat = "flat = Reshape(a, to) {T = float32, Tshape = int32} -> <?,2,2>"
    back = "back = Reshape(flat, at) {T = float32, Tshape = int32} -> <?,4>"
    consts = [vector("to", -1, 2, 2), vector("at", -1, 4)]
    check(
        [
            *[*consts, A, B, flat, back, concat("out", "back, b, axis", 2, "<?,12>")],
            *["shape = Shape(flat) {T = float32} -> <3>", "n = Neg(shape) {T = int32}"],
        ],
        [
            *[*consts, packed("t1, t2, ids", MEMBERS, JOINED, shapes=[(0, "<?,2,2>")]), OUT],
            "n = Neg(picasso/embedding_packing/a:1) {T = int32}",
        ],
        fetches=["out", "n"],
    )


def test_a_member_with_an_output_of_its_own_gives_its_shape_to_the_stock_op() -> None:
    shape = "shape = Shape({}) {{T = float32, out_type = int32}} -> <2>"
    check(
        [A, B, shape.format("a")],
        [
            packed("t1, t2, ids", MEMBERS, [("<?,4>", [(0, 4)]), ("<?,8>", [(1, 8)])]),
            identity("a", "picasso/embedding_packing/a", shape="<?,4>"),
            identity("b", "picasso/embedding_packing/a:1", shape="<?,8>"),
            shape.format("a"),
        ],
        fetches=["a", "b", "shape"],
    )


def test_a_shape_that_is_fetched_or_waits_for_something_stays() -> None:
    shape = "shape = Shape({}) {{T = float32, out_type = int32}} -> <2>"
    late = "late = Shape({}, ^w) {{T = float32, out_type = int32}} -> <2>"
    check(
        [A, B, JOIN, shape.format("a"), "w = NoOp()", late.format("b"), "n = Neg(late) {T = int32}"],
        [
            packed("t1, t2, ids", MEMBERS, [*JOINED, ("<?,4>", [(0, 4)]), ("<?,8>", [(1, 8)])]),
            *[OUT, "w = NoOp()", "n = Neg(late) {T = int32}"],
            *[shape.format("picasso/embedding_packing/a:1"), late.format("picasso/embedding_packing/a:2")],
        ],
        fetches=["out", "shape", "n"],
    )

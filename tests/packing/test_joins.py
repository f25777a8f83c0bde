"""embedding_packing: concatenations and stacks that the packed op writes by itself, and ids read where they are."""

from tests.packing.test_embedding_packing import BASE, A, B, check
from tests.support.lines import Rows, arg, concat, graph, identity, lookup, packed, scalar, variable, vector
from tests.support.rewrite import graph_of

NOT_BEFORE = "Its input '{}' depends on a lookup of the same pack."


def test_columns_of_one_matrix_are_read_in_place() -> None:
    matrix = arg("matrix", "int64", "<?,5>", 3)
    attrs = "Index = int32, T = int64, begin_mask = {}, ellipsis_mask = 0, end_mask = {}, "
    attrs += "new_axis_mask = 0, shrink_axis_mask = {}"
    first = "first = StridedSlice(matrix, at1, at2, ones) {" + attrs.format(1, 1, 2) + "} -> <?>"
    rest = "rest = StridedSlice(matrix, at2, at5, ones) {" + attrs.format(1, 1, 0) + "} -> <?,3>"
    cuts = [matrix, vector("at1", 0, 1), vector("at2", 0, 2), vector("at5", 0, 5), vector("ones", 1, 1), first, rest]
    flat = "flat = Reshape(b, to) {T = float32, Tshape = int32} -> <?,24>"
    check(
        [
            *[*cuts, vector("to", -1, 24), lookup("a", "t1, first", ids="int64")],
            *[lookup("b", "t2, rest", "<?,3,8>", ids="int64"), flat, concat("out", "a, flat, axis", 2, "<?,28>")],
        ],
        [
            *[*cuts, vector("to", -1, 24)],
            packed(
                "t1, t2, matrix",
                [Rows("a", column=1, columns=1), Rows("b", 1, column=2, columns=3)],
                [("<?,28>", [(0, 4), (1, 24)])],
                ids=["int64"],
            ),
            identity("out", "picasso/embedding_packing/a", shape="<?,28>"),
        ],
        fetches=["out"],
    )


def test_ids_that_are_wrapped_and_reshaped_are_read_as_they_were() -> None:
    wrap = [
        "negative = Less(ids, zero) {T = int32} -> <?>",
        scalar("ten", 10),
        "added = AddV2(ids, ten) {T = int32} -> <?>",
        "wrapped = SelectV2(negative, added, ids) {T = int32} -> <?>",
        "column = ExpandDims(wrapped, axis) {T = int32, Tdim = int32} -> <?,1>",
    ]
    check(
        [*wrap, lookup("a", "t1, column", "<?,1,4>"), B],
        [
            *wrap,
            packed("t1, t2, ids", [Rows("a", wrap=10), Rows("b", 1)], [("<?,1,4>", [(0, 4)]), ("<?,8>", [(1, 8)])]),
            identity("a", "picasso/embedding_packing/a", shape="<?,1,4>"),
            identity("b", "picasso/embedding_packing/a:1", shape="<?,8>"),
        ],
        fetches=["a", "b"],
    )


def test_dense_columns_pass_through_at_their_place() -> None:
    dense = arg("dense", "float32", "<?,3>", 3)
    check(
        [dense, A, B, concat("out", "dense, b, a, dense, axis", 4, "<?,18>")],
        [
            dense,
            packed("t1, t2, ids, dense", [Rows("a"), Rows("b", 1)], [("<?,18>", [(-1, 3), (1, 8), (0, 4), (-1, 3)])]),
            identity("out", "picasso/embedding_packing/a", shape="<?,18>"),
        ],
        fetches=["out"],
    )


def test_a_concatenation_that_is_not_fetched_goes_away() -> None:
    report = check(
        [A, B, concat("joined", "a, b, axis", 2, "<?,12>"), "out = Neg(joined) {T = float32}"],
        [
            packed("t1, t2, ids", [Rows("a"), Rows("b", 1)], [("<?,12>", [(0, 4), (1, 8)])]),
            "out = Neg(picasso/embedding_packing/a) {T = float32}",
        ],
        fetches=["out"],
    )
    assert [item.absorbed for item in report.packed] == [("joined",)]


def test_a_stack_is_written_too() -> None:
    stack = "out = Pack(a, c) {N = 2, T = float32, axis = -2} -> <?,2,4>"
    check(
        [A, lookup("c", "t1, zero", "<?,4>"), stack],
        [
            packed("t1, ids, zero", [Rows("a"), Rows("c", 0, 1)], [("<?,2,4>", [(0, 4), (1, 4)])], ids=["int32"] * 2),
            identity("out", "picasso/embedding_packing/a", shape="<?,2,4>"),
        ],
        fetches=["out"],
    )


def test_a_concatenation_of_rank_three_along_the_middle_axis() -> None:
    matrix = arg("matrix", shape="<?,3>", index=3)
    column = arg("column", shape="<?,1>", index=4)
    check(
        [
            *[matrix, column, lookup("a", "t1, matrix", "<?,3,4>"), lookup("b", "t1, column", "<?,1,4>")],
            concat("out", "b, a, axis", 2, "<?,4,4>"),
        ],
        [
            *[matrix, column],
            packed(
                "t1, matrix, column", [Rows("a"), Rows("b", 0, 1)], [("<?,4,4>", [(1, 4), (0, 12)])], ids=["int32"] * 2
            ),
            identity("out", "picasso/embedding_packing/a", shape="<?,4,4>"),
        ],
        fetches=["out"],
    )


def test_a_concatenation_along_axis_zero_is_one_row() -> None:
    three, two = arg("three", shape="<3>", index=3), arg("two", shape="<2>", index=4)
    check(
        [
            *[three, two, lookup("a", "t1, three", "<3,4>"), lookup("b", "t1, two", "<2,4>")],
            concat("out", "a, b, zero", 2, "<5,4>"),
        ],
        [
            *[three, two],
            packed("t1, three, two", [Rows("a"), Rows("b", 0, 1)], [("<5,4>", [(0, 12), (1, 8)])], ids=["int32"] * 2),
            identity("out", "picasso/embedding_packing/a", shape="<5,4>"),
        ],
        fetches=["out"],
    )


def test_a_dense_input_of_unknown_rank_leaves_the_concatenation() -> None:
    three, dense = arg("three", shape="<3>", index=3), arg("dense", "float32", "<*>", 4)
    join = concat("out", "%s, dense, axis", 2, "<3,?>")
    lines = [three, dense, lookup("a", "t1, three", "<3,4>"), lookup("b", "t2, three", "<3,8>"), join % "a"]
    report = check(
        lines,
        [
            *[three, dense],
            packed("t1, t2, three", [Rows("a"), Rows("b", 1)], [("<3,4>", [(0, 4)]), ("<3,8>", [(1, 8)])]),
            identity("b", "picasso/embedding_packing/a:1", shape="<3,8>"),
            join % "picasso/embedding_packing/a",
        ],
        fetches=["b", "out"],
        notes=["out"],
    )
    assert report.notes == [("out", "The row width of its input 'dense' is not known.")]


def test_a_concatenation_that_depends_on_a_lookup_of_the_pack_is_left_and_noted() -> None:
    join = concat("out", "%s, sum, axis", 2, "<?,8>")
    report = check(
        [A, B, "sum = Neg(a) {T = float32} -> <?,4>", join % "a"],
        [
            packed("t1, t2, ids", [Rows("a"), Rows("b", 1)], [("<?,4>", [(0, 4)]), ("<?,8>", [(1, 8)])]),
            identity("b", "picasso/embedding_packing/a:1", shape="<?,8>"),
            "sum = Neg(picasso/embedding_packing/a) {T = float32} -> <?,4>",
            join % "picasso/embedding_packing/a",
        ],
        fetches=["b", "out"],
        notes=["out"],
    )
    assert report.notes == [("out", NOT_BEFORE.format("sum"))]


def test_a_concatenation_that_waits_for_a_reader_of_the_pack_is_left_and_noted() -> None:
    join = concat("out", "%s, %s, axis, ^sum", 2, "<?,12>")
    check(
        [A, B, "sum = Neg(a) {T = float32} -> <?,4>", join % ("a", "b")],
        [
            packed("t1, t2, ids", [Rows("a"), Rows("b", 1)], [("<?,4>", [(0, 4)]), ("<?,8>", [(1, 8)])]),
            "sum = Neg(picasso/embedding_packing/a) {T = float32} -> <?,4>",
            join % ("picasso/embedding_packing/a", "picasso/embedding_packing/a:1"),
        ],
        fetches=["out"],
        notes=["out"],
    )


def test_a_concatenation_of_the_second_level_takes_rows_of_the_first_as_dense() -> None:
    chain = "next = Cast(slot) {DstT = int32, SrcT = float32} -> <?>"
    slot = arg("slot", "float32", "<?>", 3)
    join = concat("out", "%s, c, axis", 2, "<?,8>")
    first, second = "picasso/embedding_packing/a", "picasso/embedding_packing/c"
    check(
        [slot, A, B, chain.replace("(slot)", "(slot, ^a)"), lookup("c", "t1, next"), join % "a"],
        [
            slot,
            packed("t1, t2, ids", [Rows("a"), Rows("b", 1)], [("<?,4>", [(0, 4)]), ("<?,8>", [(1, 8)])]),
            chain.replace("(slot)", f"(slot, ^{first})"),
            identity("b", f"{first}:1", shape="<?,8>"),
            packed(f"t1, next, {first}", [Rows("c")], [("<?,8>", [(-1, 4), (0, 4)])]),
            identity("out", second, shape="<?,8>"),
        ],
        fetches=["b", "out"],
    )


def test_a_member_that_has_another_reader_gets_an_output_beside_the_concatenation() -> None:
    check(
        [A, B, concat("out", "a, b, axis", 2, "<?,12>"), "x = Neg(a) {T = float32}"],
        [
            packed("t1, t2, ids", [Rows("a"), Rows("b", 1)], [("<?,12>", [(0, 4), (1, 8)]), ("<?,4>", [(0, 4)])]),
            identity("out", "picasso/embedding_packing/a", shape="<?,12>"),
            "x = Neg(picasso/embedding_packing/a:1) {T = float32}",
        ],
        fetches=["out", "x"],
    )


def test_a_fetched_member_lives_on_as_an_identity() -> None:
    check(
        [A, B, concat("out", "a, b, axis", 2, "<?,12>")],
        [
            packed("t1, t2, ids", [Rows("a"), Rows("b", 1)], [("<?,12>", [(0, 4), (1, 8)]), ("<?,4>", [(0, 4)])]),
            identity("a", "picasso/embedding_packing/a:1", shape="<?,4>"),
            identity("out", "picasso/embedding_packing/a", shape="<?,12>"),
        ],
        fetches=["a", "out"],
    )


def test_a_member_that_is_only_a_control_output_lives_on_as_something_to_wait_for() -> None:
    check(
        [A, B, concat("out", "a, b, axis", 2, "<?,12>"), "after = NoOp(^b)"],
        [
            packed("t1, t2, ids", [Rows("a"), Rows("b", 1)], [("<?,12>", [(0, 4), (1, 8)])]),
            "a = NoOp(^picasso/embedding_packing/a)",
            "after = NoOp(^picasso/embedding_packing/a)",
            identity("out", "picasso/embedding_packing/a", shape="<?,12>"),
        ],
        fetches=["out"],
        preserve=["a", "after"],
    )


def test_a_preserved_member_of_a_graph_without_arguments_lives_on_as_an_identity() -> None:
    base = "\n".join(
        [
            *['t = VarHandleOp() {dtype = float32, shape = <10,4>, shared_name = "t"} -> <>', scalar("axis", 1)],
            "ids = Placeholder() {dtype = int32, shape = <?>} -> <?>",
        ]
    )
    before = [lookup("a", "t, ids"), lookup("b", "t, axis", "<?,4>"), concat("out", "a, b, axis", 2, "<?,8>")]
    keep = {"feeds": ["ids"], "fetches": ["out"], "preserve": ["a"]}
    name = f"picasso/embedding_packing/a_{graph_of(graph(base, *before, **keep)).fingerprint}"  # it is no function
    op = packed(
        "t, ids, axis",
        [Rows("a"), Rows("b", 0, 1)],
        [("<?,8>", [(0, 4), (1, 4)]), ("<?,4>", [(0, 4)])],
        name=name,
        ids=["int32"] * 2,
    )
    after = [op, identity("a", f"{name}:1", shape="<?,4>"), identity("out", name, shape="<?,8>")]
    check(before, after, base=base, **keep)


def test_control_edges_of_members_and_of_the_concatenation_are_kept() -> None:
    waits = ["w1 = NoOp()", "w2 = NoOp()", "w3 = NoOp()"]
    view = "flat = Identity(a, ^w2) {T = float32} -> <?,4>"
    check(
        [*waits, lookup("a", "t1, ids, ^w1"), B, view, concat("out", "flat, b, axis, ^w3", 2, "<?,12>")],
        [
            *waits,
            packed("t1, t2, ids, ^w1, ^w3, ^w2", [Rows("a"), Rows("b", 1)], [("<?,12>", [(0, 4), (1, 8)])]),
            identity("out", "picasso/embedding_packing/a", shape="<?,12>"),
        ],
        fetches=["out"],
    )


def test_a_fed_concatenation_is_left() -> None:
    join = concat("out", "%s, %s, axis", 2, "<?,12>")
    check(
        [A, B, join % ("a", "b"), "x = Neg(out) {T = float32}"],
        [
            packed("t1, t2, ids", [Rows("a"), Rows("b", 1)], [("<?,4>", [(0, 4)]), ("<?,8>", [(1, 8)])]),
            join % ("picasso/embedding_packing/a", "picasso/embedding_packing/a:1"),
            "x = Neg(out) {T = float32}",
        ],
        feeds=["out"],
        fetches=["x"],
        notes=["out"],
    )


def test_base_is_a_graph_in_the_text_form() -> None:
    assert graph(BASE).startswith("graph {feeds = [], fetches = [], preserve = []}\n" + variable("t1"))

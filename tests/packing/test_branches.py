"""embedding_packing: lookups of different branches and loops never share an op."""

from tests.packing.test_embedding_packing import check
from tests.support.lines import Rows, arg, concat, identity, lookup, packed, scalar, variable

BASE = "\n".join(
    [variable("t1"), variable("t2", index=1), arg("ids", index=2), arg("p", "bool", "<>", 3), scalar("axis", 1)]
)
SWITCHES = "\n".join(
    f"s{name} = Switch({name}, p) {{T = {dtype}}} -> {shape}, {shape}"
    for name, dtype, shape in (("t1", "resource", "<>"), ("t2", "resource", "<>"), ("ids", "int32", "<?>"))
)
TWO = [("<?,4>", [(0, 4)]), ("<?,4>", [(1, 4)])]
ONE = [("<?,8>", [(0, 4), (1, 4)])]
PACK = "picasso/embedding_packing/"


def test_each_branch_of_a_conditional_gets_a_pack_of_its_own() -> None:
    merge = "out = Merge({}, {}) {{N = 2, T = float32}} -> <?,8>, <>"
    check(
        [
            SWITCHES,
            *[lookup("a", "st1, sids"), lookup("b", "st2, sids"), concat("no", "a, b, axis", 2, "<?,8>")],
            *[lookup("c", "st1:1, sids:1"), lookup("d", "st2:1, sids:1"), concat("yes", "d, c, axis", 2, "<?,8>")],
            merge.format("no", "yes"),
        ],
        [
            SWITCHES,
            packed("st1, st2, sids", [Rows("a"), Rows("b", 1)], ONE),
            packed("st1:1, st2:1, sids:1", [Rows("c"), Rows("d", 1)], [("<?,8>", [(1, 4), (0, 4)])]),
            merge.format(PACK + "a", PACK + "c"),
        ],
        base=BASE,
        fetches=["out"],
    )


def test_a_lookup_in_a_branch_does_not_join_those_around_it() -> None:
    merge = "out = Merge(b, zero) {N = 2, T = float32} -> <?,4>, <>"
    zero = "zero = Const(^sids) {dtype = float32, value = float32[1,4](0.0, 0.0, 0.0, 0.0)} -> <1,4>"
    check(
        [SWITCHES, lookup("a", "t1, ids"), lookup("b", "st1:1, sids:1"), lookup("c", "t2, ids"), zero, merge],
        [
            *[SWITCHES, zero, lookup("b", "st1:1, sids:1"), merge],
            packed("t1, t2, ids", [Rows("a"), Rows("c", 1)], TWO),
            identity("a", PACK + "a", shape="<?,4>"),
            identity("c", PACK + "a:1", shape="<?,4>"),
        ],
        base=BASE,
        fetches=["a", "c", "out"],
        declined={"b": "single_lookup"},
    )


def test_a_reshape_that_waits_for_a_branch_stays_in_the_branch() -> None:
    pivot = "pivot = Identity(sids:1) {T = int32} -> <?>"
    view = "view = Identity({}, ^pivot) {{T = float32}} -> <?,4>"
    shape = "shape = Shape(view) {T = float32, out_type = int32} -> <2>"
    check(
        [
            *[SWITCHES, pivot, lookup("a", "t1, ids"), lookup("b", "t2, ids")],
            *[concat("out", "a, b, axis", 2, "<?,8>"), view.format("a"), shape, "n = Neg(shape) {T = int32}"],
        ],
        [
            *[SWITCHES, pivot, packed("t1, t2, ids", [Rows("a"), Rows("b", 1)], [*ONE, ("<?,4>", [(0, 4)])])],
            *[
                identity("out", PACK + "a", shape="<?,8>"),
                view.format(PACK + "a:1"),
                shape,
                "n = Neg(shape) {T = int32}",
            ],
        ],
        base=BASE,
        fetches=["out", "n"],
    )


def test_a_concatenation_that_waits_for_a_branch_is_left_and_noted() -> None:
    pivot = "pivot = Identity(sids:1) {T = int32} -> <?>"
    join = concat("out", "%s, %s, axis, ^pivot", 2, "<?,8>")
    check(
        [SWITCHES, pivot, lookup("a", "t1, ids"), lookup("b", "t2, ids"), join % ("a", "b")],
        [
            *[SWITCHES, pivot, packed("t1, t2, ids", [Rows("a"), Rows("b", 1)], TWO)],
            join % (PACK + "a", PACK + "a:1"),
        ],
        base=BASE,
        fetches=["out"],
        notes=["out"],
    )


LOOP = """
et1 = Enter(t1) {T = resource, frame_name = "f", is_constant = true, parallel_iterations = 10} -> <>
et2 = Enter(t2) {T = resource, frame_name = "f", is_constant = true, parallel_iterations = 10} -> <>
eids = Enter(ids) {T = int32, frame_name = "f", is_constant = true, parallel_iterations = 10} -> <?>
first = Const() {dtype = int32, value = int32[](0)} -> <>
ei = Enter(first) {T = int32, frame_name = "f", is_constant = false, parallel_iterations = 10} -> <>
i = Merge(ei, next) {N = 2, T = int32} -> <>, <>
three = Const(^i) {dtype = int32, value = int32[](3)} -> <>
goes_on = Less(i, three) {T = int32} -> <>
go = LoopCond(goes_on) -> <>
si = Switch(i, go) {T = int32} -> <>, <>
body = Identity(si:1) {T = int32} -> <>
one = Const(^body) {dtype = int32, value = int32[](1)} -> <>
more = AddV2(body, one) {T = int32} -> <>
end = Exit(si) {T = int32} -> <>
"""


def test_lookups_in_a_loop_pack_among_themselves() -> None:
    lines = [
        lookup("a", "et1, eids, ^body"),
        lookup("b", "et2, eids, ^body"),
        lookup("c", "t1, ids"),
        lookup("d", "t2, ids"),
    ]
    check(
        [LOOP, *lines, "next = NextIteration(more, ^a, ^b) {T = int32} -> <>"],
        [
            LOOP,
            packed("et1, et2, eids, ^body", [Rows("a"), Rows("b", 1)], TWO),
            packed("t1, t2, ids", [Rows("c"), Rows("d", 1)], TWO),
            f"next = NextIteration(more, ^{PACK}a) {{T = int32}} -> <>",
            identity("c", PACK + "c", shape="<?,4>"),
            identity("d", PACK + "c:1", shape="<?,4>"),
        ],
        base=BASE,
        fetches=["c", "d", "end"],
    )

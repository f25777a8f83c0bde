"""embedding_packing: which lookups go into one op, and what stays of them."""

import pytest

from graph_passes.errors import ConfigError
from graph_passes.packing.embedding_packing import EmbeddingPacking
from tests.support.lines import Rows, arg, concat, graph, identity, lookup, packed, scalar, variable
from tests.support.rewrite import check_rewrite

BASE = "\n".join(
    [variable("t1"), variable("t2", "<20,8>", index=1), arg("ids", index=2), scalar("axis", 1), scalar("zero", 0)]
)
A, B = lookup("a", "t1, ids"), lookup("b", "t2, ids", "<?,8>")
NATURAL = "<*>"


def check(before: list[str], after: list[str] | None, limit: int | None = None, base: str = BASE, **options):
    """`check_rewrite` of lines that stand below BASE."""
    keep = {key: options.pop(key) for key in ("feeds", "fetches", "preserve") if key in options}
    after_text = None if after is None else graph(base, *after, **keep)
    return check_rewrite(EmbeddingPacking(limit), graph(base, *before, **keep), after_text, **options)


def test_lookups_of_different_widths_get_an_output_each() -> None:
    report = check(
        [A, B, "x = Neg(a) {T = float32}", "y = Neg(b) {T = float32}"],
        [
            packed("t1, t2, ids", [Rows("a"), Rows("b", 1)], [("<?,4>", [(0, 4)]), ("<?,8>", [(1, 8)])]),
            "x = Neg(picasso/embedding_packing/a) {T = float32}",
            "y = Neg(picasso/embedding_packing/a:1) {T = float32}",
        ],
        fetches=["x", "y"],
    )
    assert [(item.node, item.members, item.absorbed) for item in report.packed] == [
        ("picasso/embedding_packing/a", ("a", "b"), ())
    ]


def test_ids_of_both_widths_are_read_without_a_cast() -> None:
    wide = arg("wide", "int64", index=3)
    cast = "cast = Cast(wide) {DstT = int32, SrcT = int64, Truncate = false}"
    check(
        [wide, cast, A, lookup("b", "t2, wide", "<?,8>", ids="int64"), lookup("c", "t1, cast")],
        [
            *[wide, cast],
            packed(
                "t1, t2, ids, wide",
                [Rows("a"), Rows("b", 1, 1), Rows("c", 0, 1, narrow=True)],
                [("<?,4>", [(0, 4)]), ("<?,8>", [(1, 8)]), ("<?,4>", [(2, 4)])],
                ids=["int32", "int64"],
            ),
            identity("a", "picasso/embedding_packing/a", shape="<?,4>"),
            identity("b", "picasso/embedding_packing/a:1", shape="<?,8>"),
            identity("c", "picasso/embedding_packing/a:2", shape="<?,4>"),
        ],
        fetches=["a", "b", "c"],
    )


def test_a_table_that_is_looked_up_twice_comes_in_once() -> None:
    more = arg("more", index=3)
    check(
        [more, A, lookup("b", "t1, more")],
        [
            more,
            packed(
                "t1, ids, more",
                [Rows("a"), Rows("b", 0, 1)],
                [("<?,4>", [(0, 4)]), ("<?,4>", [(1, 4)])],
                ids=["int32"] * 2,
            ),
            identity("a", "picasso/embedding_packing/a", shape="<?,4>"),
            identity("b", "picasso/embedding_packing/a:1", shape="<?,4>"),
        ],
        fetches=["a", "b"],
    )


def test_the_same_rows_looked_up_twice_are_one_lookup_with_two_outputs() -> None:
    check(
        [A, lookup("b", "t1, ids"), "x = Neg(a) {T = float32}", "y = Neg(b) {T = float32}"],
        [
            packed("t1, ids", [Rows("a")], [("<?,4>", [(0, 4)]), ("<?,4>", [(0, 4)])]),
            "x = Neg(picasso/embedding_packing/a) {T = float32}",
            "y = Neg(picasso/embedding_packing/a:1) {T = float32}",
        ],
        fetches=["x", "y"],
    )


def test_the_same_rows_in_two_shapes_are_two_outputs() -> None:
    column = "column = ExpandDims(ids, axis) {T = int32, Tdim = int32} -> <?,1>"
    check(
        [column, A, lookup("b", "t1, column", "<?,1,4>")],
        [
            column,
            packed("t1, ids", [Rows("a")], [("<?,4>", [(0, 4)]), ("<?,1,4>", [(0, 4)])]),
            identity("a", "picasso/embedding_packing/a", shape="<?,4>"),
            identity("b", "picasso/embedding_packing/a:1", shape="<?,1,4>"),
        ],
        fetches=["a", "b"],
    )


def test_more_than_one_unknown_dimension_leaves_the_shape_to_the_ids() -> None:
    matrix = arg("matrix", shape="<?,?>", index=3)
    flat = "flat = Reshape(matrix, axis) {T = int32, Tshape = int32} -> <*>"
    check(
        [matrix, flat, lookup("a", "t1, matrix", "<?,?,4>"), lookup("b", "t2, flat", "<*>")],
        [
            *[matrix, flat],
            packed(
                "t1, t2, matrix, flat",
                [Rows("a"), Rows("b", 1, 1)],
                [(NATURAL, [(0, 0)]), (NATURAL, [(1, 0)])],
                ids=["int32", "int32"],
            ),
            identity("a", "picasso/embedding_packing/a", shape="<?,?,4>"),
            identity("b", "picasso/embedding_packing/a:1", shape="<*>"),
        ],
        fetches=["a", "b"],
    )


def test_rows_of_unknown_width_leave_the_shape_to_the_table() -> None:
    base = "\n".join([variable("t1", "<10,?>"), variable("t2", "<*>", index=1), arg("ids", index=2)])
    check(
        [lookup("a", "t1, ids", "<?,4>"), lookup("b", "t2, ids", "<*>")],
        [
            packed("t1, t2, ids", [Rows("a"), Rows("b", 1)], [(NATURAL, [(0, 0)]), (NATURAL, [(1, 0)])]),
            identity("a", "picasso/embedding_packing/a", shape="<?,4>"),
            identity("b", "picasso/embedding_packing/a:1", shape="<*>"),
        ],
        base=base,
        fetches=["a", "b"],
    )


def test_rows_of_no_elements_leave_the_shape_to_the_table() -> None:
    base = "\n".join([variable("t1", "<10,0>"), variable("t2", "<20,8>", index=1), arg("ids", index=2)])
    check(
        [lookup("a", "t1, ids", "<?,0>"), B],
        [
            packed("t1, t2, ids", [Rows("a"), Rows("b", 1)], [(NATURAL, [(0, 0)]), ("<?,8>", [(1, 8)])]),
            identity("a", "picasso/embedding_packing/a", shape="<?,0>"),
            identity("b", "picasso/embedding_packing/a:1", shape="<?,8>"),
        ],
        base=base,
        fetches=["a", "b"],
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_other_float_dtypes_pack_among_themselves(dtype: str) -> None:
    base = "\n".join([variable("t1", dtype=dtype), variable("t2", index=1), variable("t3", dtype=dtype, index=2)])
    check(
        [
            arg("ids", index=3),
            lookup("a", "t1, ids", dtype=dtype),
            lookup("b", "t2, ids"),
            lookup("c", "t3, ids", dtype=dtype),
        ],
        [
            *[arg("ids", index=3), lookup("b", "t2, ids")],
            packed("t1, t3, ids", [Rows("a"), Rows("c", 1)], [("<?,4>", [(0, 4)]), ("<?,4>", [(1, 4)])], dtype=dtype),
            identity("a", "picasso/embedding_packing/a", dtype, "<?,4>"),
            identity("c", "picasso/embedding_packing/a:1", dtype, "<?,4>"),
        ],
        base=base,
        fetches=["a", "b", "c"],
        declined={"b": "single_lookup"},
    )


def test_rows_that_are_no_floats_are_declined() -> None:
    base = "\n".join([variable("t1", dtype="int8"), variable("t2", dtype="int8", index=1), arg("ids", index=2)])
    check(
        [lookup("a", "t1, ids", dtype="int8"), lookup("b", "t2, ids", dtype="int8")],
        None,
        base=base,
        fetches=["a", "b"],
        declined={"a": "dtype_not_supported", "b": "dtype_not_supported"},
    )


def test_a_lookup_with_batch_dims_and_a_lookup_that_is_fed_are_declined() -> None:
    batched = lookup("a", "t1, ids").replace("{", "{batch_dims = 1, ")
    check([batched, B], None, feeds=["b"], fetches=["a"], declined={"a": "batch_dims", "b": "fed"})


def test_a_single_lookup_is_declined() -> None:
    check([A], None, fetches=["a"], declined={"a": "single_lookup"})


def test_a_single_lookup_that_feeds_a_concatenation_is_packed() -> None:
    dense = arg("dense", "float32", "<?,3>", 3)
    check(
        [dense, A, concat("out", "a, dense, axis", 2, "<?,7>")],
        [
            dense,
            packed("t1, ids, dense", [Rows("a")], [("<?,7>", [(0, 4), (-1, 3)])]),
            identity("out", "picasso/embedding_packing/a", shape="<?,7>"),
        ],
        fetches=["out"],
    )


def test_lookups_on_different_devices_do_not_mix() -> None:
    lines = [variable("t1"), variable("t2", index=1), arg("ids", index=2)]
    base = "\n".join(line.replace("} ", "} @ /device:CPU:0 ").replace("0}", "0} @ /device:CPU:0") for line in lines)
    cpu, other = "/device:CPU:0", "/device:CPU:1"
    names = [("a", cpu), ("b", other), ("c", cpu), ("d", other)]
    lookups = [lookup(name, f"{'t1' if name < 'c' else 't2'}, ids", device=device) for name, device in names]
    results = [("<?,4>", [(0, 4)]), ("<?,4>", [(1, 4)])]

    def left(name: str, port: str, device: str) -> str:
        return f"{name} = Identity(picasso/embedding_packing/{port}) {{T = float32}} @ {device} -> <?,4>"

    check(
        lookups,
        [
            packed("t1, t2, ids", [Rows("a"), Rows("c", 1)], results, device=cpu),
            packed("t1, t2, ids", [Rows("b"), Rows("d", 1)], results, device=other),
            *[left("a", "a", cpu), left("b", "b", other), left("c", "a:1", cpu), left("d", "b:1", other)],
        ],
        base=base,
        fetches=["a", "b", "c", "d"],
    )


def test_a_lookup_whose_ids_depend_on_a_lookup_goes_into_a_later_pack() -> None:
    chain = "next = Cast({}) {{DstT = int32, SrcT = float32}} -> <?,4>"
    check(
        [
            *[A, B, chain.format("a")],
            *[lookup("c", "t1, next", "<?,4,4>"), lookup("d", "t2, next", "<?,4,8>")],
        ],
        [
            packed("t1, t2, ids", [Rows("a"), Rows("b", 1)], [("<?,4>", [(0, 4)]), ("<?,8>", [(1, 8)])]),
            identity("b", "picasso/embedding_packing/a:1", shape="<?,8>"),
            chain.format("picasso/embedding_packing/a"),
            packed("t1, t2, next", [Rows("c"), Rows("d", 1)], [("<?,4,4>", [(0, 4)]), ("<?,4,8>", [(1, 8)])]),
            identity("c", "picasso/embedding_packing/c", shape="<?,4,4>"),
            identity("d", "picasso/embedding_packing/c:1", shape="<?,4,8>"),
        ],
        fetches=["b", "c", "d"],
    )


def test_max_group_size_cuts_packs_and_must_be_two_or_more() -> None:
    outputs = [("<?,4>", [(0, 4)]), ("<?,4>", [(1, 4)])]
    names = ["a", "b", "c", "d", "e"]
    more = [arg(f"ids_{name}", index=index) for index, name in enumerate(names, 3)]
    packs = [
        packed(f"t1, ids_{x}, ids_{y}", [Rows(x), Rows(y, 0, 1)], outputs, ids=["int32"] * 2) for x, y in ("ab", "cd")
    ]
    ports = {"a": "a", "b": "a:1", "c": "c", "d": "c:1"}
    check(
        [*more, *[lookup(name, f"t1, ids_{name}") for name in names]],
        [
            *[*more, *packs, lookup("e", "t1, ids_e")],
            *[identity(name, f"picasso/embedding_packing/{port}", shape="<?,4>") for name, port in ports.items()],
        ],
        limit=2,
        fetches=names,
        declined={"e": "single_lookup"},
    )
    with pytest.raises(ConfigError, match=r"^`max_group_size` must be >= 2. Received: `max_group_size=1`.$"):
        EmbeddingPacking(1)


def test_fuel_limits_the_number_of_packs() -> None:
    lines = [A, lookup("b", "t1, zero", "<4>")]
    report = check(lines, None, fetches=["a", "b"], fuel=0, declined={"a": "out_of_fuel", "b": "out_of_fuel"})
    assert report.packed == []


def test_the_name_of_a_pack_tells_the_common_scope_and_is_new() -> None:
    taken = arg("tower/picasso/embedding_packing/x/a", "float32", index=4)
    check(
        [taken, lookup("tower/x/a", "t1, ids"), lookup("tower/y/b", "t2, ids", "<?,8>")],
        [
            taken,
            packed(
                "t1, t2, ids",
                [Rows("tower/x/a"), Rows("tower/y/b", 1)],
                [("<?,4>", [(0, 4)]), ("<?,8>", [(1, 8)])],
                name="tower/picasso/embedding_packing/x/a_1",
            ),
            identity("tower/x/a", "tower/picasso/embedding_packing/x/a_1", shape="<?,4>"),
            identity("tower/y/b", "tower/picasso/embedding_packing/x/a_1:1", shape="<?,8>"),
        ],
        fetches=["tower/x/a", "tower/y/b"],
    )

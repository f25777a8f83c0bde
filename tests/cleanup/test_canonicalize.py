"""canonicalize: which gathers of a read become gathers of rows, and what they then wait for."""

from graph_passes.cleanup.canonicalize import Canonicalize
from tests.support.lines import arg, assign, canonical, gather, graph, identity, read, scalar, scatter, variable
from tests.support.rewrite import check_rewrite

STAYS = "The whole table is still read elsewhere, so its copy in each step stays."
BASE = "\n".join([variable("t"), arg("ids"), scalar("axis", 0), arg("x", "float32", "<10,4>")])


def check(before: list[str], after: list[str] | None, **options):
    """`check_rewrite` of lines that stand below BASE."""
    keep = {key: options.pop(key) for key in ("feeds", "fetches", "preserve") if key in options}
    after_text = None if after is None else graph(BASE, *after, **keep)
    return check_rewrite(Canonicalize(), graph(BASE, *before, **keep), after_text, **options)


def test_two_gathers_of_one_read_need_no_read() -> None:
    report = check(
        [read("read", "t"), gather("a", "read, ids, axis"), gather("b", "read, ids, axis")],
        [canonical("a", "t, ids"), canonical("b", "t, ids")],
        fetches=["a", "b"],
    )
    assert report.rewritten == ["a", "b"]


def test_a_gather_through_identities_needs_neither_them_nor_the_read() -> None:
    check(
        [read("read", "t"), identity("i", "read"), identity("j", "i"), gather("rows", "j, ids, axis")],
        [canonical("rows", "t, ids")],
        fetches=["rows"],
    )


def test_an_identity_that_waits_for_something_hands_that_on() -> None:
    wait = "wait = NoOp()"
    check(
        [wait, read("read", "t"), identity("i", "read, ^wait"), gather("rows", "i, ids, axis")],
        [wait, read("read", "t"), identity("i", "read, ^wait"), canonical("rows", "t, ids, ^wait")],
        fetches=["rows"],
        notes=["read"],
    )


def test_a_read_that_something_else_uses_stays_and_a_note_says_so_once() -> None:
    other = "sum = Sum(read, ids) {T = float32, Tidx = int32, keep_dims = false}"
    report = check(
        [read("read", "t"), gather("a", "read, ids, axis"), gather("b", "read, ids, axis"), other],
        [read("read", "t"), canonical("a", "t, ids"), canonical("b", "t, ids"), other],
        fetches=["a", "b", "sum"],
        notes=["read"],
    )
    assert report.notes == [("read", STAYS)]


def test_a_read_whose_value_is_fetched_stays() -> None:
    check(
        [read("read", "t"), gather("rows", "read, ids, axis")],
        [read("read", "t"), canonical("rows", "t, ids")],
        fetches=["rows", "read"],
        notes=["read"],
    )


def test_a_read_that_is_only_a_control_output_stays_as_something_to_wait_for() -> None:
    check(
        [read("read", "t"), gather("rows", "read, ids, axis")],
        ["read = NoOp(^rows)", canonical("rows", "t, ids")],
        fetches=["rows"],
        preserve=["read"],
    )


def test_an_identity_that_waits_for_a_preserved_read_is_not_touched() -> None:
    out = identity("out", "rows, ^read")
    check(
        [read("read", "t"), gather("rows", "read, ids, axis"), out],
        ["read = NoOp(^rows)", canonical("rows", "t, ids"), out],
        fetches=["out"],
        preserve=["read"],
    )


def test_a_preserved_read_that_the_ids_wait_for_stays_a_read() -> None:
    late = "late = Neg(ids, ^read) {T = int32} -> <?>"
    check(
        [read("read", "t"), late, gather("rows", "read, late, axis")],
        [read("read", "t"), late, canonical("rows", "t, late")],
        fetches=["rows"],
        preserve=["read"],
        notes=["read"],
    )


def test_ids_that_waited_for_the_read_wait_for_what_it_waited_for() -> None:
    before = ["first = NoOp()", read("read", "t, ^first"), "late = Neg(ids, ^read) {T = int32} -> <?>"]
    check(
        [*before, gather("rows", "read, late, axis")],
        ["first = NoOp()", "late = Neg(ids, ^first) {T = int32} -> <?>", canonical("rows", "t, late, ^first")],
        fetches=["rows"],
    )


def test_a_read_that_waited_for_another_read_waits_for_what_that_one_waited_for() -> None:
    write = assign("w", "t, x")
    check(
        [write, read("r1", "t, ^w"), read("r2", "t, ^r1"), gather("a", "r1, ids, axis"), gather("b", "r2, ids, axis")],
        [write, canonical("a", "t, ids, ^w"), canonical("b", "t, ids, ^w, ^a")],
        fetches=["a", "b"],
    )


def test_a_gather_along_another_axis_or_with_batch_dims_is_declined() -> None:
    check(
        [read("read", "t"), scalar("one", 1), gather("columns", "read, ids, one", shape="<10,?>")],
        None,
        fetches=["columns"],
        declined={"columns": "axis_not_zero"},
    )
    check(
        [read("read", "t"), gather("batched", "read, ids, axis", batch_dims=1)],
        None,
        fetches=["batched"],
        declined={"batched": "axis_not_zero"},
    )


def test_an_axis_that_is_not_a_constant_is_declined() -> None:
    check(
        [read("read", "t"), arg("dynamic", shape="<>"), gather("rows", "read, ids, dynamic")],
        None,
        fetches=["rows"],
        declined={"rows": "axis_not_zero"},
    )


def test_one_declined_gather_keeps_the_read_for_itself_only() -> None:
    lines = [read("read", "t"), scalar("one", 1), gather("columns", "read, ids, one", shape="<10,?>")]
    check(
        [*lines, gather("rows", "read, ids, axis")],
        [*lines, canonical("rows", "t, ids")],
        fetches=["columns", "rows"],
        declined={"columns": "axis_not_zero"},
        notes=["read"],
    )


def test_a_gather_on_another_device_is_declined() -> None:
    on_cpu = read("read", "t").replace(" ->", " @ /device:CPU:0 ->")
    on_gpu = gather("rows", "read, ids, axis").replace(" ->", " @ /device:GPU:0 ->")
    check([on_cpu, on_gpu], None, fetches=["rows"], declined={"rows": "other_device"})


def test_a_handle_that_is_chosen_at_run_time_is_declined() -> None:
    choice = [
        variable("u"),
        arg("p", "bool", "<>"),
        "s = Switch(t, p) {T = resource}",
        "v = Switch(u, p) {T = resource}",
        "m = Merge(s, v:1) {N = 2, T = resource}",
    ]
    check(
        [*choice, read("read", "m"), gather("rows", "read, ids, axis")],
        None,
        fetches=["rows"],
        declined={"rows": "handle_not_traceable"},
    )


def test_fuel_limits_the_number_of_rewritten_gathers() -> None:
    check(
        [read("read", "t"), gather("a", "read, ids, axis"), gather("b", "read, ids, axis")],
        [read("read", "t"), canonical("a", "t, ids"), gather("b", "read, ids, axis")],
        fetches=["a", "b"],
        declined={"b": "out_of_fuel"},
        notes=["read"],
        fuel=1,
    )


def test_a_fed_read_or_a_fed_identity_is_no_candidate() -> None:
    check([read("read", "t"), gather("rows", "read, ids, axis")], None, feeds=["read"], fetches=["rows"])
    check(
        [read("read", "t"), identity("i", "read"), gather("rows", "i, ids, axis")], None, feeds=["i"], fetches=["rows"]
    )


def test_a_table_of_ids_that_is_gathered_by_itself_stays_readable() -> None:
    table = variable("links", "<10>", "int32")
    lines = [table, read("read", "links", "int32", "<10>")]
    check(
        [*lines, gather("rows", "read, read, axis", "int32", "<10>")],
        [*lines, canonical("rows", "links, read", "int32", "<10>")],
        fetches=["rows"],
        notes=["read"],
    )


def test_a_scatter_after_the_read_does_not_count_as_a_reader() -> None:
    update = scatter("w", "t, ids, rows")
    check(
        [read("read", "t"), gather("rows", "read, ids, axis"), update],
        [canonical("rows", "t, ids"), update],
        preserve=["w"],
    )

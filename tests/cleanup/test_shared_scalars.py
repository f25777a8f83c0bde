"""shared_scalars: the same scalar is computed once, and never across a write or a branch."""

from graph_passes.cleanup.shared_scalars import SharedScalars
from tests.support.lines import arg, assign, graph, read, variable
from tests.support.rewrite import check_rewrite

BASE = "\n".join([variable("rate", "<>"), variable("step", "<>", "int64", 1), arg("x", "float32", "<4>", 2)])
A, B = read("a", "rate", shape="<>"), read("b", "rate", shape="<>")
OUT = ["out", "other"]


def use(name: str, of: str) -> str:
    return f"{name} = Mul(x, {of}) {{T = float32}} -> <4>"


def neg(name: str, of: str, rest: str = "") -> str:
    return f"{name} = Neg({of}) {{T = float32}}{rest} -> <>"


def check(before: list[str], after: list[str] | None, **options):
    keep = {key: options.pop(key) for key in ("feeds", "fetches", "preserve") if key in options}
    keep = {"fetches": OUT, **keep}
    after_text = None if after is None else graph(BASE, *after, **keep)
    return check_rewrite(SharedScalars(), graph(BASE, *before, **keep), after_text, **options)


def test_reads_and_what_is_computed_from_them() -> None:
    report = check(
        [A, B, neg("na", "a"), neg("nb", "b"), use("out", "na"), use("other", "nb")],
        [A, neg("na", "a"), use("out", "na"), use("other", "na")],
    )
    assert report.rewritten == ["b", "nb"]


def test_what_waited_for_the_one_that_goes_waits_for_the_one_that_stays() -> None:
    check(
        [ZERO, A, B, use("out", "a"), use("other", "b"), assign("w", "rate, zero, ^b")],
        [ZERO, A, use("out", "a"), use("other", "a"), assign("w", "rate, zero, ^a")],
    )


ZERO = "zero = Const() {dtype = float32, value = float32[](0.0)} -> <>"


def test_a_write_that_is_not_before_both_keeps_reads_apart() -> None:
    write = assign("w", "rate, zero, ^a")
    after = read("b", "rate, ^w", shape="<>")
    check([ZERO, A, write, after, use("out", "a"), use("other", "b")], None)
    handle = "h = Identity(rate, ^w) {T = resource} -> <>"
    check([ZERO, A, write, handle, read("b", "h", shape="<>"), use("out", "a"), use("other", "b")], None)


def test_reads_that_wait_are_left() -> None:
    lines = [read("a", "rate, ^x", shape="<>"), read("b", "rate, ^x", shape="<>")]
    check([*lines, use("out", "a"), use("other", "b")], None)


def test_reads_of_different_variables_dtypes_and_devices_are_left() -> None:
    second = variable("beta", "<>", index=3)
    placed = f"{read('c', 'rate', shape='<>').replace(' ->', ' @ /device:CPU:1 ->')}"
    lines = [A, read("b", "beta", shape="<>"), placed, use("out", "a"), use("other", "b"), use("third", "c")]
    check([second, *lines], None, fetches=[*OUT, "third"])


def test_attributes_and_ports_tell_nodes_apart() -> None:
    to = "{0} = Cast(a) {{DstT = {1}, SrcT = float32, Truncate = false}} -> <>"
    back = "{0}f = Cast({0}) {{DstT = float32, SrcT = {1}, Truncate = false}} -> <>"
    casts = [cast.format(*types) for cast in (to, back) for types in (("c", "float64"), ("d", "float16"))]
    uses = [use("out", "cf"), use("other", "df")]
    after = [A, *casts, *uses, use("third", "a")]
    check([A, B, *casts, *uses, use("third", "b")], after, fetches=[*OUT, "third"])


def test_vectors_random_numbers_and_graphs_without_two_reads_are_left() -> None:
    draw = "{} = RandomUniform(shape) {{T = int32, dtype = float32, seed = 0, seed2 = 0}} -> <>"
    shape = "shape = Const() {dtype = int32, value = int32[0]()} -> <0>"
    two = [A, read("b", "beta", shape="<>"), variable("beta", "<>", index=3), use("third", "a"), use("fourth", "b")]
    lines = [shape, draw.format("r"), draw.format("s"), use("out", "r"), use("other", "s")]
    check([*two, *lines], None, fetches=[*OUT, "third", "fourth"])
    ones = [f"{name} = Neg(x) {{T = float32}} -> <4>" for name in OUT]
    check([*two, *ones], None, fetches=[*OUT, "third", "fourth"])
    check([A, neg("n", "a"), neg("m", "a"), use("out", "n"), use("other", "m")], None)


def test_a_preserved_read_stays_though_nobody_reads_it() -> None:
    report = check(
        [A, B, use("out", "a"), use("other", "b")], [A, B, use("out", "a"), use("other", "a")], preserve=["b"]
    )
    assert report.rewritten == ["b"]


def test_a_fetched_scalar_is_left() -> None:
    check([A, B, use("out", "a"), use("other", "b")], None, fetches=[*OUT, "a", "b"])


def test_scalars_of_a_branch_are_shared_within_it_only() -> None:
    switch = ["p = _Arg() {T = bool, index = 5} -> <>", "s = Switch(a, p) {T = float32} -> <>, <>"]
    inner = [neg("n0", "s"), neg("n1", "s"), neg("m", "s:1")]
    uses = [use("out", "n0"), use("other", "n1"), use("third", "m"), use("fourth", "b")]
    check(
        [A, B, *switch, *inner, *uses],
        [
            A,
            *switch,
            neg("n0", "s"),
            neg("m", "s:1"),
            use("out", "n0"),
            use("other", "n0"),
            uses[2],
            use("fourth", "a"),
        ],
        fetches=[*OUT, "third", "fourth"],
    )


def test_fuel() -> None:
    check([A, B, use("out", "a"), use("other", "b")], None, fuel=0)

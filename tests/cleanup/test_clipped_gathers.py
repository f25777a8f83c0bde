"""clipped_gathers: a gather and what clips its rows become one gather; what is not quite that stays."""

import pytest

from graph_passes.cleanup.clipped_gathers import ClippedGathers
from tests.support.lines import arg, assign, graph, lookup, scalar, variable, vector
from tests.support.rewrite import check_rewrite

FLOAT = "{T = float32}"
BASE = (
    *(variable("t"), variable("t2", "<10,2,2>", index=1), arg("ids", index=2)),
    *(scalar("zero", 0, "float32"), scalar("most", 2, "float32"), scalar("three", 3, "float32"), vector("axis", 1)),
)
BASE = tuple(line.replace("float32[](0)", "float32[](0.0)").replace("[](2)", "[](2.0)") for line in BASE)
BASE = tuple(line.replace("[](3)", "[](3.0)") for line in BASE)
ROWS = lookup("rows", "t, ids")
CLIP = (
    f"squares = Square(rows) {FLOAT} -> <?,4>",
    "total = Sum(squares, axis) {T = float32, Tidx = int32, keep_dims = true} -> <?,1>",
    f"some = Greater(total, zero) {FLOAT} -> <?,1>",
    "shape = Shape(total) {T = float32, out_type = int32} -> <2>",
    "ones = Fill(shape, most) {T = float32, index_type = int32} -> <?,1>",
    f"safe = Select(some, total, ones) {FLOAT} -> <?,1>",
    f"root = Sqrt(safe) {FLOAT} -> <?,1>",
    f"norm = Select(some, root, total) {FLOAT} -> <?,1>",
    f"divisor = Maximum(norm, most) {FLOAT} -> <?,1>",
    f"product = Mul(rows, most) {FLOAT} -> <?,4>",
    f"clipped = RealDiv(product, divisor) {FLOAT} -> <?,4>",
)


def clipped(inputs: str = "t, ids", norm: float = 2.0, tables: int = 1, rows: int = 0, extras: int = 0) -> str:
    attrs = f"max_norm = {norm}, num_tables = {tables}, shard_extras = {extras}, shard_rows = {rows}"
    return f"clipped = Picasso>TableGather({inputs}) {{Tindices = int32, dtype = float32, {attrs}}} -> <?,4>"


def changed(old: str, new: str, lines: tuple[str, ...] = CLIP) -> tuple[str, ...]:
    assert any(old in line for line in lines)
    return tuple(line.replace(old, new) for line in lines)


@pytest.mark.parametrize(
    "clip",
    [
        CLIP,
        changed("Square(rows)", "Mul(rows, rows)"),
        changed("Mul(rows, most)", "Mul(most, rows)"),
        changed("Select(", "SelectV2("),
    ],
    ids=["as it is", "a square by itself", "factors swapped", "SelectV2"],
)
def test_a_gather_clips_its_rows(clip: tuple[str, ...]) -> None:
    before = graph(*BASE, ROWS, *clip, fetches=["clipped"])
    check_rewrite(ClippedGathers(), before, graph(*BASE, clipped(), fetches=["clipped"]))


def test_a_product_with_one_is_left_out() -> None:
    base = changed("[](2.0)", "[](1.0)", BASE)
    clip = changed("RealDiv(product", "RealDiv(rows", tuple(line for line in CLIP if not line.startswith("product")))
    before = graph(*base, ROWS, *clip, fetches=["clipped"])
    check_rewrite(ClippedGathers(), before, graph(*base, clipped(norm=1.0), fetches=["clipped"]))


def test_rows_of_shards_are_clipped_too_and_what_waits_still_waits() -> None:
    shards = "Picasso>TableGather(t, t, ids, ^first) {Tindices = int32, dtype = float32, num_tables = 2, "
    shards = f"rows = {shards}shard_extras = 1, shard_rows = 3, max_norm = 0.0}} -> <?,4>"
    ends = [arg("value", "float32", "<10,4>", 3), assign("first", "t, value")]
    before = graph(*BASE, *ends, shards, *CLIP, assign("then", "t, value, ^rows"), fetches=["clipped", "then"])
    one = clipped("t, t, ids, ^first", tables=2, rows=3, extras=1)
    after = graph(*BASE, *ends, one, assign("then", "t, value, ^clipped"), fetches=["clipped", "then"])
    check_rewrite(ClippedGathers(), before, after)


@pytest.mark.parametrize("reader", ["rows", "total", "norm", "product"])
def test_what_a_gradient_reads_stays(reader: str) -> None:
    text = graph(*BASE, ROWS, *CLIP, f"more = Neg({reader}) {FLOAT}", fetches=["clipped", "more"])
    check_rewrite(ClippedGathers(), text, None, declined={"clipped": "gradient_needed"})


@pytest.mark.parametrize(
    ("old", "new"),
    [("[](2.0)", "[](-2.0)"), ("int32[1](1)", "int32[1](0)")],
    ids=["a norm below 0", "another axis"],
)
def test_norms_of_another_kind(old: str, new: str) -> None:
    text = graph(*changed(old, new, BASE), ROWS, *CLIP, fetches=["clipped"])
    check_rewrite(ClippedGathers(), text, None, declined={"clipped": "rows_changed"})


def test_rows_that_are_no_vectors() -> None:
    clip = changed("<?,1>", "<?,1,2>", changed("<?,4>", "<?,2,2>"))
    text = graph(*BASE, lookup("rows", "t2, ids", "<?,2,2>"), *clip, fetches=["clipped"])
    check_rewrite(ClippedGathers(), text, None, declined={"clipped": "rows_changed"})


def test_half_types() -> None:
    base, clip = changed("float32", "float16", BASE), changed("float32", "float16")
    text = graph(*base, lookup("rows", "t, ids", dtype="float16"), *clip, fetches=["clipped"])
    check_rewrite(ClippedGathers(), text, None, declined={"clipped": "rows_changed"})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Mul(rows, most)", "Mul(rows, three)"),
        ("Greater(total, zero)", "Greater(total, three)"),
        ("Maximum(norm, most)", "Maximum(most, norm)"),
        ("keep_dims = true", "keep_dims = false"),
    ],
)
def test_other_arithmetic_is_no_candidate(old: str, new: str) -> None:
    text = graph(*BASE, ROWS, *changed(old, new), fetches=["clipped"])
    check_rewrite(ClippedGathers(), text, None)


def test_no_more_than_the_fuel_allows() -> None:
    text = graph(*BASE, ROWS, *CLIP, fetches=["clipped"])
    check_rewrite(ClippedGathers(), text, None, declined={"clipped": "out_of_fuel"}, fuel=0)

"""cross_packing: hashed crosses of one level become one op."""

from __future__ import annotations

from collections.abc import Sequence

from graph_passes.packing.cross_packing import CrossPacking
from graph_passes.pipeline.base import PassReport
from tests.support.lines import arg, graph, identity, scalar
from tests.support.rewrite import check_rewrite, graph_of, run

S, T, N = arg("s", "string", "<?,1>"), arg("t", "string", "<?,1>", 1), arg("n", "int64", "<?,1>", 2)
SPARSE = [arg("i", "int64", "<?,2>", 3), arg("v", "string", "<?>", 4), arg("d", "int64", "<2>", 5)]
FEATURES = [S, T, N, *SPARSE]
ZERO = scalar("zero", 0, "int64")


def check(before: list[str], after: list[str] | None, declined: dict[str, str] | None = None, fuel=None, **keep):
    after_text = None if after is None else graph(*FEATURES, *after, **keep)
    return check_rewrite(CrossPacking(), graph(*FEATURES, *before, **keep), after_text, declined, fuel=fuel)


def report_of(before: list[str], **keep) -> PassReport:
    """What the pass says of a graph, whose result is only verified."""
    return run(CrossPacking(), graph_of(graph(*FEATURES, *before, **keep))).report


def crossed(
    name: str, inputs: str, dense: str = "string, int64", sparse: str = "", buckets: int = 10, hashed: bool = True
) -> str:
    """A SparseCross; `inputs` holds indices, values and shapes of sparse columns, dense columns and control inputs."""
    count = len(sparse.split(", ")) if sparse else 0
    dtype = "int64" if hashed else "string"
    attrs = f"N = {count}, dense_types = [{dense}], hash_key = 77, hashed_output = {str(hashed).lower()}"
    attrs += f", internal_type = int64, num_buckets = {buckets}, out_type = {dtype}, sparse_types = [{sparse}]"
    return f"{name} = SparseCross({inputs}) {{{attrs}}} -> <?,2>, <?>, <2>"


def dense_form(name: str, cross: str, default: str = "zero") -> str:
    attrs = "T = int64, Tindices = int64, validate_indices = true"
    return f"{name} = SparseToDense({cross}, {cross}:2, {cross}:1, {default}) {{{attrs}}} -> <?,?>"


def packed(
    name: str,
    inputs: str,
    crosses: Sequence[tuple[str, list[int], int]],
    outputs: Sequence[tuple[int, str]],
    dense: str = "string, int64",
    sparse: str = "",
) -> str:
    """A `Picasso>PackedCrosses` of (name, columns, buckets), and its outputs (cross, kind)."""
    shapes = {"indices": "<?,2>", "values": "<?>", "shape": "<2>", "dense": "<?,?>"}
    attrs = {
        "cross_buckets": [buckets for *_, buckets in crosses],
        "cross_columns": [column for _, columns, _ in crosses for column in columns],
        "cross_keys": [77] * len(crosses),
        "cross_names": "[" + ", ".join(f'"{cross}"' for cross, *_ in crosses) + "]",
        "cross_sizes": [len(columns) for _, columns, _ in crosses],
        "dense_types": f"[{dense}]",
        "num_outputs": len(outputs),
        "num_sparse": len(sparse.split(", ")) if sparse else 0,
        "output_cross": [number for number, _ in outputs],
        "output_kind": "[" + ", ".join(f'"{kind}"' for _, kind in outputs) + "]",
        "sparse_types": f"[{sparse}]",
    }
    text = ", ".join(f"{key} = {value}" for key, value in attrs.items())
    results = ", ".join(shapes[kind] for _, kind in outputs)
    return f"picasso/cross_packing/{name} = Picasso>PackedCrosses({inputs}) {{{text}}} -> {results}"


def values_of(*crosses: str) -> list[str]:
    return [identity(f"read_{cross}", f"{cross}:1", "int64", "<?>") for cross in crosses]


def test_matrices_that_are_made_of_crosses_are_outputs() -> None:
    before = [ZERO, crossed("x", "s, n"), dense_form("a", "x"), crossed("y", "s, t", "string, string")]
    before += [dense_form("b", "y"), identity("read_a", "a", "int64", "<?,?>"), identity("i_y", "y", "int64", "<?,2>")]
    op = packed(
        "x",
        "s, n, t",
        [("x", [0, 1], 10), ("y", [0, 2], 10)],
        [(0, "dense"), (1, "indices"), (1, "dense")],
        dense="string, int64, string",
    )
    after = [ZERO, op, identity("read_a", "picasso/cross_packing/x", "int64", "<?,?>")]
    after += [identity("i_y", "picasso/cross_packing/x:1", "int64", "<?,2>")]
    after += [identity("b", "picasso/cross_packing/x:2", "int64", "<?,?>")]
    report = check(before, after, fetches=["read_a", "i_y", "b"])
    assert [(item.members, item.kind) for item in report.packed] == [(("x", "a", "y", "b"), "transform")]


def test_a_sparse_column_is_an_input_once() -> None:
    before = [crossed("x", "i, v, d, n", "int64", "string"), crossed("y", "i, i, v, v, d, d", "", "string, string", 7)]
    op = packed(
        "x",
        "i, v, d, n",
        [("x", [0, 1], 10), ("y", [0, 0], 7)],
        [(0, "values"), (1, "values")],
        dense="int64",
        sparse="string",
    )
    readers = [
        identity("read_x", "picasso/cross_packing/x", "int64", "<?>"),
        identity("read_y", "picasso/cross_packing/x:1", "int64", "<?>"),
    ]
    check([*before, *values_of("x", "y")], [op, *readers], fetches=["read_x", "read_y"])


def test_a_matrix_with_another_default_or_that_waits_for_something_is_made_of_the_sparse_outputs() -> None:
    other = dense_form("a", "x", "one"), dense_form("a", "x").replace("zero)", "zero, ^t)")
    for form in other:
        before = [ZERO, scalar("one", 1, "int64"), crossed("x", "s, n"), form, crossed("y", "t, n"), *values_of("y")]
        report = report_of(before, fetches=["a", "read_y"])
        assert [item.members for item in report.packed] == [("x", "y")]


def test_of_two_matrices_of_one_cross_one_is_an_output() -> None:
    before = [ZERO, crossed("x", "s, n"), dense_form("b", "x"), dense_form("a", "x"), crossed("y", "t, n")]
    report = report_of([*before, *values_of("y")], fetches=["a", "b", "read_y"])
    assert [item.members for item in report.packed] == [("x", "a", "y")]


def test_a_cross_of_a_cross_is_in_a_later_pack() -> None:
    before = [crossed("x", "s, n"), crossed("y", "t, n"), crossed("u", "x, x:1, x:2, n", "int64", "int64")]
    before += [crossed("w", "y, y:1, y:2, n", "int64", "int64"), *values_of("u", "w")]
    report = report_of(before, fetches=["read_u", "read_w"])
    assert [item.members for item in report.packed] == [("x", "y"), ("u", "w")]


def test_what_waits_for_a_cross_waits_for_the_pack_and_what_it_waits_for_comes_first() -> None:
    before = [crossed("x", "s, n, ^t"), crossed("y", "t, n"), *values_of("x", "y"), "wait = NoOp(^x)"]
    op = packed(
        "x", "s, n, t, ^t", [("x", [0, 1], 10), ("y", [2, 1], 10)], [(0, "values"), (1, "values")],
        dense="string, int64, string",
    )  # fmt: skip
    after = [op, identity("read_x", "picasso/cross_packing/x", "int64", "<?>"), "wait = NoOp(^picasso/cross_packing/x)"]
    after += [identity("read_y", "picasso/cross_packing/x:1", "int64", "<?>")]
    check(before, after, fetches=["read_x", "read_y", "wait"])


def test_crosses_that_are_declined() -> None:
    string = crossed("x", "s, n", hashed=False)
    check([string], None, {"x": "string_cross"}, fetches=["x"])
    joined = "x = SparseCrossV2(s, n, c) {N = 0, dense_types = [string, int64], sparse_types = []} -> <?,2>, <?>, <2>"
    check([arg("c", "string", "<>", 6), joined], None, {"x": "string_cross"}, fetches=["x"])
    check([crossed("x", "s, n"), *values_of("x")], None, {"x": "single_transform"}, fetches=["read_x"])
    fetched = [crossed("x", "s, n"), crossed("y", "t, n"), *values_of("y")]
    check(fetched, None, {"x": "fed", "y": "single_transform"}, fetches=["x:1", "read_y"])
    gpu = crossed("x", "s, n").replace(" -> ", " @ /device:GPU:0 -> ")
    check([gpu, *values_of("x")], None, {"x": "no_kernel"}, fetches=["read_x"])


def test_crosses_that_nobody_reads_and_fuel() -> None:
    before = [crossed("x", "s, n"), crossed("y", "t, n")]
    check(before, None, fetches=["s"])
    before += values_of("x", "y")
    check(before, None, {"x": "out_of_fuel", "y": "out_of_fuel"}, fuel=0, fetches=["read_x", "read_y"])

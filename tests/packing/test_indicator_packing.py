"""indicator_packing: counts of ids become one op; what is no count of ids stays."""

from __future__ import annotations

import pytest

from graph_passes.packing.indicator_packing import IndicatorPacking
from graph_passes.pipeline.base import PassReport
from tests.support.lines import arg, graph, identity, scalar, vector
from tests.support.rewrite import check_rewrite, graph_of, run

INPUTS = [arg("i", "int64", "<?,2>"), arg("v", "int64", "<?>", 1), arg("d", "int64", "<2>", 2)]
INPUTS += [scalar("none", -1, "int64"), scalar("ten", 10), vector("axis", -2), vector("rows", 0)]
INPUTS += [scalar("zero_id", 0, "int64"), arg("f", "float32", "<?,10>", 3)]
INPUTS += [f"{name} = Const() {{dtype = float32, value = float32[]({name[1]}.0)}} -> <>" for name in ("c0", "c1", "c2")]


def indicator(name: str, **changes: str) -> list[str]:
    """The three nodes; `changes` are of the second one's on value, the default, the axis, and so on."""
    given = {"ids": "v", "missing": "none", "on": "c1", "off": "c0", "axis": "axis", "last": "-1", "keep": "false"}
    given |= {"validate": "true", "wait": ""} | changes
    dense = f"Tindices = int64, validate_indices = {given['validate']}"
    return [
        f"{name}_x = SparseToDense(i, d, {given['ids']}, {given['missing']}) {{T = int64, {dense}}} -> <?,?>",
        f"{name}_y = OneHot({name}_x, ten, {given['on']}, {given['off']}{given['wait']}) "
        f"{{T = float32, TI = int64, axis = {given['last']}}} -> <?,?,10>",
        f"{name} = Sum({name}_y, {given['axis']}) {{T = float32, Tidx = int32, keep_dims = {given['keep']}}} -> <?,10>",
    ]


def packed(*names: str, inputs: str) -> str:
    quoted = ", ".join(f'"{name}"' for name in names)
    types = ", ".join(["int64"] * len(names))
    depths = ", ".join(["10"] * len(names))
    attrs = f"depths = [{depths}], feature_names = [{quoted}], id_types = [{types}], num_features = {len(names)}"
    shapes = ", ".join(["<?,10>"] * len(names))
    return f"picasso/indicator_packing/{names[0]} = Picasso>PackedIndicators({inputs}) {{{attrs}}} -> {shapes}"


def check(before: list[str], after: list[str] | None, declined: dict[str, str] | None = None, fuel=None, **keep):
    after_text = None if after is None else graph(*INPUTS, *after, **keep)
    return check_rewrite(IndicatorPacking(), graph(*INPUTS, *before, **keep), after_text, declined, fuel=fuel)


def report_of(before: list[str], **keep) -> PassReport:
    return run(IndicatorPacking(), graph_of(graph(*INPUTS, *before, **keep))).report


def test_counts_become_one_op_and_the_one_hot_vectors_go() -> None:
    before = [
        *indicator("a"),
        *indicator("b"),
        identity("ra", "a", shape="<?,10>"),
        identity("rb", "b", shape="<?,10>"),
    ]
    after = [packed("a", "b", inputs="i, i, v, v, d, d")]
    after += [identity("ra", "picasso/indicator_packing/a", shape="<?,10>")]
    after += [identity("rb", "picasso/indicator_packing/a:1", shape="<?,10>")]
    report = check(before, after, fetches=["ra", "rb"])
    members = ("a_x", "a_y", "a", "b_x", "b_y", "b")
    assert [(item.members, item.kind) for item in report.packed] == [(members, "transform")]


def test_counts_of_what_is_computed_from_counts_are_a_later_pack() -> None:
    """`u` is computed from a, so that c and e come after a and b."""
    before = [
        *indicator("a"),
        *indicator("b"),
        "u = ArgMax(a, ten) {T = float32, Tidx = int32, output_type = int64} -> <?>",
    ]
    before += [*indicator("c", ids="u"), *indicator("e", ids="u")]
    report = report_of(before, fetches=["b", "c", "e"])
    assert [item.members[2::3] for item in report.packed] == [("a", "b"), ("c", "e")]


@pytest.mark.parametrize(
    "changes",
    [
        {"missing": "zero_id"},  # what is missing counts
        {"on": "c2"},
        {"off": "c1"},
        {"axis": "rows"},
        {"last": "1"},
        {"keep": "true"},
        {"validate": "false"},
        {"wait": ", ^f"},
    ],
    ids=str,
)
def test_other_arithmetic_stays(changes: dict[str, str]) -> None:
    check([*indicator("a", **changes), *indicator("b")], None, {"b": "single_transform"}, fetches=["a", "b"])


def test_vectors_that_something_else_reads_stay() -> None:
    for kept in ("a_x", "a_y"):
        check([*indicator("a"), *indicator("b")], None, {"b": "single_transform"}, fetches=["a", "b", kept])


def test_indicators_that_are_declined() -> None:
    both = [*indicator("a"), *indicator("b")]
    check(both, None, {"a": "out_of_fuel", "b": "out_of_fuel"}, fuel=0, fetches=["a", "b"])
    gpu = [line.replace(" -> ", " @ /device:GPU:0 -> ") for line in both]
    check(gpu, None, {"a": "no_kernel", "b": "no_kernel"}, fetches=["a", "b"])


def test_indices_of_a_vector_are_no_feature() -> None:
    lines = [*indicator("a"), *indicator("b")]
    text = graph(*INPUTS, *lines, fetches=["a", "b"]).replace(
        "i = _Arg() {T = int64, index = 0} -> <?,2>", "i = _Arg() {T = int64, index = 0} -> <2>"
    )
    check_rewrite(IndicatorPacking(), text, None)

"""update_packing: updates in branches, and the conditional that Keras 3 puts around a division by dense values."""

import pytest

from tests.packing.test_update_packing import ONE, SGD, STEPS, A, check
from tests.support.lines import arg, scalar, variable
from tests.support.update_lines import PACK, Segment, Table, number, op, scatter, updated, write

SWITCHES = "\n".join(
    [
        *[arg("p", "bool", "<>", 9), "st = Switch(t1, p) {T = resource} -> <>, <>"],
        *["si = Switch(ids, p) {T = int32} -> <?>, <?>", "sg = Switch(g1, p) {T = float32} -> <?,4>, <?,4>"],
        *["sr = Switch(rate, p) {T = float32} -> <>, <>"],
    ]
)
NO = [op("xn", "Mul", "sg, sr"), scatter("a", "Sub", "st, si, xn")]
YES = [op("xy", "Mul", "sg:1, sr:1"), scatter("b", "Sub", "st:1, si:1, xy")]


def test_each_branch_of_a_conditional_gets_an_update_of_its_own() -> None:
    check(
        [SWITCHES, *NO, *YES],
        [
            *[SWITCHES, NO[0], YES[0], updated("st, si, sg, sr", *SGD, ONE, [Segment()])],
            updated("st:1, si:1, sg:1, sr:1", *SGD, [Table("b", (0,), (0,))], [Segment()]),
        ],
    )


def test_a_write_in_a_branch_is_no_write_after_it_for_one_outside() -> None:
    outside = scatter("b", "Sub", "t1, ids, g1")
    check([SWITCHES, *NO, outside], None, declined={"a": "unordered_write", "b": "unordered_write"})


def test_an_update_that_waits_for_a_branch_lies_in_it() -> None:
    pivot = ["sp = Switch(p, p) {T = bool} -> <>, <>", "pivot = Identity(sp:1) {T = bool} -> <>"]
    lines = [SWITCHES, *pivot, *STEPS]
    check(
        [*lines, A.replace("x1)", "x1, ^pivot)"), scatter("b", "Sub", "t2, more, x2")],
        [
            *[*lines, updated("t1, ids, g1, rate, ^pivot", *SGD, ONE, [Segment()])],
            updated("t2, more, g2, rate", *SGD, [Table("b", (0,), (0,))], [Segment()]),
        ],
    )


def test_what_an_update_needs_may_not_be_in_a_branch_that_it_is_not_in() -> None:
    """r waits for a branch and must come before the update, which waits for none."""
    lines = [SWITCHES, "pivot = Identity(si:1) {T = int32} -> <?>", STEPS[0], A]
    reader = "r = ReadVariableOp(t1, ^pivot) {dtype = float32} -> <10,4>"
    check([*lines, reader, "s = Neg(r) {T = float32}"], None, fetches=["s"], declined={"a": "other_control_flow"})


DIVISOR = [
    *[variable("m", index=9), scalar("axis0", 0), scalar("axis1", 1), number("zero", 0.0), number("epsilon", 0.001)],
    "state = ReadVariableOp(m) {dtype = float32} -> <10,4>",
    *[op("shifted", "AddV2", "state, epsilon", "<10,4>"), op("root", "Sqrt", "shifted", "<10,4>")],
]
TEST = [
    *["zeros = Equal(zero, root) {T = float32} -> <10,4>", "nans = IsNan(root) {T = float32} -> <10,4>"],
    "either = LogicalOr(zeros, nans) -> <10,4>",
    "rows = Any(either, axis1) {Tidx = int32, keep_dims = false} -> <10>",
    "any = Any(rows, axis0) {Tidx = int32, keep_dims = false} -> <>",
]
GATHER = "{name} = GatherV2({inputs}, axis0) {{Taxis = int32, Tindices = int32, Tparams = float32}} -> <?,4>"
GUARDED = [
    *["si = Switch(ids, any) {T = int32} -> <?>, <?>", "sx = Switch(x1, any) {T = float32} -> <?,4>, <?,4>"],
    "sr = Switch(root, any) {T = float32} -> <10,4>, <10,4>",
    *["same = Identity(si) {T = int32} -> <?>", "others = Neg(si:1) {T = int32} -> <?>"],
    *[GATHER.format(name="divisor", inputs="sr, same"), op("quotient", "RealDiv", "sx, divisor")],
    *[GATHER.format(name="divisor_1", inputs="sr:1, others"), op("quotient_1", "RealDiv", "sx:1, divisor_1")],
    "indices = Merge(others, same) {N = 2, T = int32} -> <?>, <>",
    "values = Merge(quotient_1, quotient) {N = 2, T = float32} -> <?,4>, <>",
]
UPDATE = [write("w", "Add", "m, d1, ^a"), scatter("a", "Sub", "t1, indices, values")]
PROGRAM = "mul p0 g0; add s0 p1; sqrt v1; div v0 v2; scatter_sub s1 v3; add s0 t0"


def test_the_guard_of_a_division_by_dense_values_is_seen_through() -> None:
    lines = [STEPS[0], *DIVISOR, *TEST, *GUARDED]
    segment = Segment(parts=SEGMENT_PARTS)
    after = updated(
        "m, t1, ids, d1, g1, rate, epsilon", PROGRAM, "v5, v4", [Table("w", (0, 1), (0, 1), (0,))], [segment]
    )
    check([*lines, *UPDATE], [*lines, after])


SEGMENT_PARTS = [Segment().parts[0]._replace(gradients=1)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("AddV2(state, epsilon)", "AddV2(state, zero)"),  # a divisor that can be zero
        ("AddV2(state, epsilon)", "Mul(state, epsilon)"),
        ("IsNan(root)", "IsInf(root)"),
        ("LogicalOr(zeros, nans)", "LogicalAnd(zeros, nans)"),
        ("Equal(zero, root)", "Equal(epsilon, root)"),
        ("IsNan(root)", "IsNan(shifted)"),
    ],
)
def test_another_conditional_is_not_seen_through(old: str, new: str) -> None:
    lines = [line.replace(old, new) for line in (STEPS[0], *DIVISOR, *TEST, *GUARDED)]
    after = updated("t1, indices, values", "scatter_sub s0 g0", "v0", [Table("a")], [Segment()])
    both = [UPDATE[0].replace("^a", f"^{PACK}a"), after]
    check([*lines, *UPDATE], [*lines, *both], declined={"w": "single_update"})

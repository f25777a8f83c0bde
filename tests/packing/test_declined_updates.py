"""update_packing: writes that stay as they are, each with the code that says why."""

import pathlib
import re

import pytest

from graph_passes.packing import update_packing
from tests.packing.test_update_packing import STEPS, A, check
from tests.support.lines import arg, read, variable
from tests.support.update_lines import op, scatter, segment_sum, unique, write

SUMS = [unique("u", "ids"), op("count", "Size", "u", "<>", "int32"), segment_sum("sums", "g1, u:1, count")]


def declined(lines: list[str], reasons: dict[str, str], **options) -> None:
    check(lines, None, declined=reasons, **options)


def test_updates_in_another_process_stay_there() -> None:
    home, server = "/job:worker/replica:0/task:0/device:CPU:0", "/job:ps/replica:0/task:0/device:CPU:0"
    text = [
        f"{variable('t1')} @ {server}",
        *[f"{arg(name, 'int32', '<?>', index)}".replace(" ->", f" @ {home} ->") for index, name in enumerate("xyz")],
        arg("g1", "float32", "<?,4>", 4),
        scatter("a", "Sub", "t1, x, g1", device=server),
    ]
    declined(text, {"a": "remote_device"}, base="")


def test_updates_stay_where_the_build_has_no_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(update_packing, "has_kernel", lambda op, device: device != "GPU")
    declined([STEPS[0], A + " @ /device:GPU:0"], {"a": "no_kernel"})


def test_the_variable_must_be_known_and_so_must_its_shape() -> None:
    lines = [
        *[arg("p", "bool", "<>", 9), "s1 = Switch(t1, p) {T = resource}", "s3 = Switch(t3, p) {T = resource}"],
        *[variable("t3", index=10), "h = Merge(s1, s3:1) {N = 2, T = resource}", variable("t4", "<?,4>", index=11)],
        *[scatter("a", "Sub", "h, ids, g1"), scatter("b", "Sub", "t4, ids, g1")],
    ]
    declined(lines, {"a": "handle_not_traceable", "b": "unknown_shape"})


def test_duplicates_that_a_training_op_applies_in_turn() -> None:
    apply = "a = ResourceSparseApplyAdagradV2(t1, m, rate, rate, g1, ids) {T = float32, Tindices = int32}"
    declined([variable("m", index=9), apply], {"a": "duplicates_apply_in_turn"})


def test_one_operation_on_one_dense_variable_is_not_worth_it() -> None:
    declined([op("x", "Mul", "d1, rate", "<10,4>"), write("a", "Sub", "t1, x")], {"a": "single_update"})


def test_an_assignment_that_the_old_value_has_no_part_in() -> None:
    lines = [variable("m", index=9), read("r", "m"), op("x", "Mul", "r, d1", "<10,4>"), write("b", "Add", "m, d1")]
    declined([*lines, write("a", "", "t1, x")], {"a": "not_an_update", "b": "not_an_update"})


def test_slots_of_another_shape() -> None:
    apply = "a = ResourceApplyAdagradV2(t1, m, rate, rate, d1) {T = float32}"
    report = check([variable("m", "<4>", index=9), apply], None, declined={"a": "update_arithmetic"})
    assert report.declined[0].detail == "Its slots do not have the shape of the variable."


@pytest.mark.parametrize(
    "apply",
    [
        "ResourceApplyAdagradV2(t1, m, rate, rate, d1) {T = float32, update_slots = false}",
        "ResourceApplyFtrl(t1, m, n, d1, rate, rate, rate, rate) {T = float32, multiply_linear_by_lr = true}",
    ],
)
def test_training_ops_in_a_form_that_no_rule_describes(apply: str) -> None:
    slots = [variable("m", index=9), variable("n", index=10)]
    report = check([*slots, f"a = {apply}"], None, declined={"a": "update_arithmetic"})
    assert report.declined[0].detail == f"This form of {apply.split('(')[0]} is not known."


def test_training_ops_and_scatters_that_no_rule_describes() -> None:
    lines = [
        "a = ResourceApplyProximalGradientDescent(t1, rate, rate, rate, d1) {T = float32}",
        scatter("b", "Mul", "t2, more, g2"),
    ]
    report = check(lines, None, declined={"a": "update_arithmetic", "b": "update_arithmetic"})
    assert [item.detail for item in report.declined] == [
        "Nothing is known about the op ResourceApplyProximalGradientDescent.",
        "Nothing is known about the op ResourceScatterMul.",
    ]


def test_a_rate_must_be_a_scalar() -> None:
    apply = "a = ResourceApplyAdagradV2(t1, m, rates, rate, d1) {T = float32}"
    lines = [variable("m", index=9), arg("rates", "float32", "<1>", 10), apply]
    assert check(lines, None, declined={"a": "update_arithmetic"}).declined[0].detail == "'rates' is no scalar."


def test_every_reason_is_asserted_somewhere() -> None:
    """Codes that no graph can bring about are left out on purpose: parts on different ids become a leaf."""
    tests = "".join(path.read_text() for path in pathlib.Path(__file__).parent.glob("test_*update*.py"))
    codes = re.findall(r'NotPackable\(\s*"(\w+)"', "".join(path.read_text() for path in SOURCES))
    assert {code for code in codes if f'"{code}"' not in tests} <= {"parts_differ", "ids_dtype"}


SOURCES = [
    *pathlib.Path(update_packing.__file__).parent.glob("update_*.py"),
    *(pathlib.Path(update_packing.__file__).parents[1] / "rewrite").glob("update_*.py"),
]

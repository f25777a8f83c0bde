"""control_outputs: one NoOp waits for what the caller of a function would wait for through many."""

from graph_passes.cleanup.control_outputs import ControlOutputs
from tests.support.lines import arg, assign, graph, variable
from tests.support.rewrite import check_rewrite

BASE = "\n".join(
    [variable("t"), variable("u"), arg("x", "float32", "<10,4>"), assign("w", "t, x"), assign("v", "u, x")]
)
NAMES = ["a", "b", "c"]


def check(before: list[str], after: list[str] | None, base: str = BASE, **keep):
    after_text = None if after is None else graph(base, *after, **keep)
    return check_rewrite(ControlOutputs(), graph(base, *before, **keep), after_text)


def test_the_first_waits_for_all_that_the_others_waited_for() -> None:
    before = ["c = NoOp(^w)", "a = NoOp(^w)", "b = NoOp(^w, ^v)"]
    assert check(before, ["a = NoOp(^w, ^v)"], preserve=NAMES).rewritten == ["b", "c"]


def test_what_waits_for_one_that_goes_waits_for_what_it_waited_for() -> None:
    before = ["a = NoOp(^w)", "b = NoOp(^v)", "n = Neg(x, ^b, ^a) {T = float32}"]
    after = ["a = NoOp(^w, ^v)", "n = Neg(x, ^v, ^w) {T = float32}"]
    check(before, after, preserve=NAMES, fetches=["n"])


def test_the_first_is_waited_for_by_nothing_that_it_would_wait_for() -> None:
    base = "\n".join([variable("t"), arg("x", "float32", "<10,4>"), assign("w", "t, x")])
    before = ["a = NoOp(^w)", assign("v", "t, x, ^a"), "b = NoOp(^v)"]
    check(before, ["a = NoOp(^w, ^v)", assign("v", "t, x, ^w")], base=base, preserve=NAMES)


def test_one_that_waits_for_another_waits_for_what_stays() -> None:
    before = ["a = NoOp(^w)", "b = NoOp(^v)", "c = NoOp(^b)", "n = Neg(x, ^c) {T = float32}"]
    after = ["a = NoOp(^w, ^v)", "n = Neg(x, ^v) {T = float32}"]
    check(before, after, preserve=NAMES, fetches=["n"])


def test_one_that_waits_for_the_first_goes() -> None:
    before = ["a = NoOp(^w)", "b = NoOp(^a)", "n = Neg(x, ^b) {T = float32}"]
    check(before, ["a = NoOp(^w)", "n = Neg(x, ^w) {T = float32}"], preserve=NAMES, fetches=["n"])


def test_one_that_gathers_several_waits_for_a_reader_stays() -> None:
    check(["a = NoOp(^w)", "b = NoOp(^w, ^v)", "n = Neg(x, ^b) {T = float32}"], None, preserve=NAMES, fetches=["n"])


def test_marked_ones_and_those_that_are_no_control_outputs_stay() -> None:
    check(["a = NoOp(^w)", "b = NoOp(^v) {_mark = true}", "n = NoOp(^w)", "m = NoOp(^v)"], None, preserve=NAMES)


def test_those_of_other_devices_stay_apart() -> None:
    before = ["a = NoOp(^w) @ /device:CPU:0", "b = NoOp(^v) @ /device:CPU:1", "c = NoOp(^v) @ /device:CPU:0"]
    after = ["a = NoOp(^w, ^v) @ /device:CPU:0", "b = NoOp(^v) @ /device:CPU:1"]
    check(before, after, preserve=NAMES)


def test_one_that_waits_for_one_of_another_device() -> None:
    zero, one = "@ /device:CPU:0", "@ /device:CPU:1"
    before = [f"a = NoOp(^w) {zero}", f"b = NoOp(^v) {one}", f"c = NoOp(^a) {one}", f"d = NoOp(^v) {zero}"]
    before.append("n = Neg(x, ^c) {T = float32}")
    after = [f"a = NoOp(^w, ^v) {zero}", f"b = NoOp(^v, ^w) {one}", "n = Neg(x, ^w) {T = float32}"]
    check(before, after, preserve=[*NAMES, "d"], fetches=["n"])


def test_in_a_session_any_of_them_may_be_run() -> None:
    base = "\n".join(["x = Placeholder() {dtype = float32}", "w = Neg(x) {T = float32}"])
    check(["a = NoOp(^w)", "b = NoOp(^w)"], None, base=base, preserve=NAMES)


def test_with_branches_all_stay() -> None:
    branch = [arg("p", "bool", "<>"), "s = Switch(x, p) {T = float32}"]
    check([*branch, "a = NoOp(^s)", "b = NoOp(^w)"], None, preserve=NAMES)

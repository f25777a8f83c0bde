"""feature_packing: strings that are joined from features and constants, and hashed, never leave the packed op."""

from __future__ import annotations

from graph_passes.packing.feature_packing import FeaturePacking
from graph_passes.pipeline.base import PassReport
from tests.support.feature_lines import Program, binary, hashed, packed, taken, where
from tests.support.lines import arg, graph, identity
from tests.support.rewrite import check_rewrite, graph_of, run

FEATURES = [arg("s", "string"), arg("t", "string", "<?>", 1), arg("n", "int64", "<?>", 2), arg("c", "string", "<>", 3)]
FEATURES += [arg("u", "string", "<*>", 4)]
AS_STRING = (
    'text = AsString(n) {T = int64, fill = "", precision = -1, scientific = false, shortest = false, width = -1} -> <?>'
)


def joined(name: str, inputs: str, separator: str = "", shape: str = "<?>") -> str:
    return f'{name} = StringJoin({inputs}) {{N = {len(inputs.split(", "))}, separator = "{separator}"}} -> {shape}'


def check(before: list[str], after: list[str] | None, declined: dict[str, str] | None = None, **keep) -> PassReport:
    after_text = None if after is None else graph(*FEATURES, *after, **keep)
    return check_rewrite(FeaturePacking(), graph(*FEATURES, *before, **keep), after_text, declined)


def report_of(before: list[str], **keep) -> PassReport:
    """What the pass says of a graph, whose result is only verified."""
    return run(FeaturePacking(), graph_of(graph(*FEATURES, *before, **keep))).report


def results(first: str, name: str) -> list[str]:
    return [
        identity(first, f"picasso/feature_packing/{name}", "int64", "<?>"),
        identity("b", f"picasso/feature_packing/{name}:1", "int64", "<?>"),
    ]


OF_B = Program("b", "string", ["hash_fast x 100"], [("v0", "int64", "<?>")])


def test_a_prefix_and_a_suffix() -> None:
    before = [joined("j", "c, c, s, c", "/"), hashed("a", "j"), hashed("b", "t")]
    lines = ["join x c0 0", "join c0 v0 0", "join c0 v1 0", "hash_fast v2 100"]
    op = packed(
        "s, t, c",
        [Program("j", "string", lines, [("v3", "int64", "<?>")]), OF_B],
        name="a",
        scalars=["string"],
        texts=["/"],
    )
    check(before, [op, *results("a", "a")], fetches=["a", "b"])


def test_a_cross_by_hand_reads_another_feature() -> None:
    """What the join reads of it is computed in the program of the first feature, however often it is read."""
    before = [AS_STRING, joined("j", "s, text, t, text", "_X_"), hashed("a", "j"), hashed("b", "t")]
    lines = ["as_string y0", "join x v0 0", "join v1 y1 0", "join v2 v0 0", "hash_fast v3 100"]
    op = packed(
        "t, s, n, t",
        [OF_B, Program("j", "string", lines, [("v4", "int64", "<?>")])],
        name="a",
        others=["int64", "string"],
        texts=["_X_"],
    )
    after = [op, identity("b", "picasso/feature_packing/a", "int64", "<?>")]
    after += [identity("a", "picasso/feature_packing/a:1", "int64", "<?>")]
    report = check(before, after, fetches=["a", "b"])
    assert report.packed[0].members == ("a", "b", "j", "text")


def test_the_old_hash() -> None:
    old = "a = StringToHashBucket(s) {num_buckets = 7} -> <?>"
    program = Program("a", "string", ["hash_legacy x 7"], [("v0", "int64", "<?>")])
    check([old, hashed("b", "t")], [packed("s, t", [program, OF_B], name="a"), *results("a", "a")], fetches=["a", "b"])


def test_strings_that_a_mask_takes_are_joined_with_scalars_or_as_a_feature_of_their_own() -> None:
    mask = [binary("NotEqual", "m", "s, c", "string"), where("w", "m"), taken("v", "s", "w")]
    report = report_of([*mask, joined("j", "c, v"), hashed("a", "j"), hashed("b", "t")], fetches=["a", "b"])
    assert [item.members for item in report.packed] == [("a", "b", "j", "m", "v", "w")]
    report = report_of([*mask, joined("j", "v, t"), hashed("a", "j"), hashed("b", "t")], fetches=["a", "b"])
    assert [item.members for item in report.packed] == [("a", "b", "j")]
    assert not report.declined


def test_joins_that_stay() -> None:
    def packed_of(join: str, **keep) -> tuple[str, ...]:
        report = report_of([join, hashed("a", "j"), hashed("b", "t")], **keep)
        assert [(item.code, item.node) for item in report.declined] == [("strings_leave", "j")]
        return report.packed[0].members

    assert packed_of(joined("j", "s, t"), fetches=["a", "b", "j"]) == ("a", "b")
    assert packed_of(joined("j", "s, u"), fetches=["a", "b"]) == ("a", "b")  # a scalar, perhaps
    assert packed_of(joined("j", "s"), fetches=["a", "b"]) == ("a", "b")

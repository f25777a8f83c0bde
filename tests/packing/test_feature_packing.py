"""feature_packing: what is done to features becomes the programs of one op."""

from __future__ import annotations

from graph_passes.packing.feature_packing import FeaturePacking
from graph_passes.pipeline.base import PassReport
from tests.support.feature_lines import Program, binary, found, hashed, packed, taken, where
from tests.support.lines import arg, graph, identity, scalar, variable
from tests.support.rewrite import check_rewrite, graph_of, run

FEATURES = [arg("s", "string"), arg("t", "string", "<?,1>", 1), arg("n", "int64", "<?>", 2)]
TABLE = "table = _Arg() {T = resource, index = 3}"
EMPTY = "empty = Const() {dtype = string, value = string[](base64 CAcSAEIA)} -> <>"
MINUS_ONE = scalar("none", -1, "int64")
OF_S = Program("a", "string", ["hash_fast x 100"], [("v0", "int64", "<?>")])
OF_T = Program("b", "string", ["hash_fast x 100"], [("v0", "int64", "<?,1>")])


def check(before: list[str], after: list[str] | None, declined: dict[str, str] | None = None, fuel=None, **keep):
    after_text = None if after is None else graph(*FEATURES, *after, **keep)
    return check_rewrite(FeaturePacking(), graph(*FEATURES, *before, **keep), after_text, declined, fuel=fuel)


def report_of(before: list[str], **keep) -> PassReport:
    """What the pass says of a graph, whose result is only verified."""
    return run(FeaturePacking(), graph_of(graph(*FEATURES, *before, **keep))).report


def read_by(name: str, dtype: str = "int64", shape: str = "<?>") -> str:
    """A reader that is no transform."""
    return identity(f"read_{name}", name, dtype, shape)


def test_hashes_of_features_of_any_shape_become_one_op() -> None:
    before = [hashed("a", "s"), hashed("b", "t", "<?,1>"), read_by("a"), read_by("b", shape="<?,1>")]
    op = packed("s, t", [OF_S, OF_T], name="a")
    readers = [
        identity("read_a", "picasso/feature_packing/a", "int64", "<?>"),
        identity("read_b", "picasso/feature_packing/a:1", "int64", "<?,1>"),
    ]
    report = check(before, [op, *readers], fetches=["read_a", "read_b"])
    assert [(item.members, item.kind) for item in report.packed] == [(("a", "b"), "transform")]


def test_a_vocabulary_with_buckets_for_other_words_is_one_program() -> None:
    """As tf.lookup.StaticVocabularyTable is computed."""
    before = [
        TABLE,
        MINUS_ONE,
        hashed("h", "s", buckets=3),
        found("f", "table", "s", "none"),
        "size = LookupTableSizeV2(table, ^f) {} -> <>",
        binary("AddV2", "sum", "size, h"),
        binary("NotEqual", "known", "f, none", shape="<*>"),
        "out = SelectV2(known, f, sum) {T = int64} -> <*>",
        read_by("out"),
    ]
    instructions = ["hash_fast x 3", "find x c0 0 int64", "not_equal v1 c0", "add z0 v0", "select v2 v1 v3"]
    program = Program("h", "string", instructions, [("v4", "int64", "<?>")])
    op = packed("s, none, table", [program], name="f", scalars=["int64"], tables=1)
    check(
        before,
        [TABLE, MINUS_ONE, op, identity("read_out", "picasso/feature_packing/f", "int64", "<?>")],
        fetches=["read_out"],
    )


def test_a_dense_feature_is_made_sparse_by_the_program() -> None:
    before = [
        EMPTY,
        binary("NotEqual", "mask", "t, empty", "string", "<?,1>"),
        where("indices", "mask", 2),
        taken("words", "t", "indices"),
        hashed("ids", "words"),
        read_by("ids"),
        identity("read_indices", "indices", "int64", "<?,2>"),
    ]
    program = Program(
        "mask",
        "string",
        ["not_equal x c0", "take x v0", "hash_fast v1 100"],
        [("indices", "int64", "<?,2>"), ("v2", "int64", "<?>")],
    )
    after = [
        EMPTY,
        packed("t, empty", [program], name="ids", scalars=["string"]),
        identity("read_ids", "picasso/feature_packing/ids:1", "int64", "<?>"),
        identity("read_indices", "picasso/feature_packing/ids", "int64", "<?,2>"),
    ]
    check(before, after, fetches=["read_ids", "read_indices"])


def test_a_second_mask_of_a_feature_stays() -> None:
    before = [EMPTY, arg("word", "string", "<>", 3)]
    for n, other in enumerate(("empty", "word")):
        before += [
            binary("NotEqual", f"mask{n}", f"s, {other}", "string"),
            where(f"indices{n}", f"mask{n}"),
            taken(f"words{n}", "s", f"indices{n}"),
            hashed(f"ids{n}", f"words{n}"),
        ]
    report = report_of(before, fetches=["ids0", "ids1"])
    assert [item.members for item in report.packed] == [("ids0", "ids1", "indices0", "mask0", "words0")]


def test_a_chain_through_another_node_is_two_packs() -> None:
    before = [hashed("a", "s"), "u = Unique(a) {T = int64, out_idx = int32} -> <?>, <?>"]
    before += [
        scalar("k", 7, "int64"),
        binary("FloorMod", "m", "u, k"),
        hashed("b", "t", "<?,1>"),
        binary("FloorMod", "o", "n, k"),
    ]
    report = report_of(before, fetches=["m", "b", "o"])
    assert [item.members for item in report.packed] == [("a", "b", "o")]
    assert [(item.code, item.node) for item in report.declined] == [("single_transform", "m")]


def test_what_the_first_pack_gives_is_a_feature_of_the_second() -> None:
    before = [
        hashed("a", "s"),
        hashed("b", "t", "<?,1>"),
        "top = Max(a, axis) {T = int64, Tidx = int32, keep_dims = false} -> <>",
    ]
    before += [scalar("axis", 0), binary("FloorMod", "m", "a, top"), binary("FloorMod", "o", "b, top", shape="<?,1>")]
    of_b = OF_T._replace(outputs=[("v0", "int64", "<?,1>")])
    after = [
        scalar("axis", 0),
        packed("s, t", [OF_S, of_b], name="a"),
        "top = Max(picasso/feature_packing/a, axis) {T = int64, Tidx = int32, keep_dims = false} -> <>",
        packed(
            "picasso/feature_packing/a, picasso/feature_packing/a:1, top",
            [
                Program("m", "int64", ["floor_mod x c0"], [("v0", "int64", "<?>")]),
                Program("o", "int64", ["floor_mod x c0"], [("v0", "int64", "<?,1>")]),
            ],
            name="m",
            scalars=["int64"],
        ),
        identity("m", "picasso/feature_packing/m", "int64", "<?>"),
        identity("o", "picasso/feature_packing/m:1", "int64", "<?,1>"),
    ]
    check(before, after, fetches=["m", "o"])


def test_a_mask_that_nothing_is_taken_by_stays() -> None:
    before = [
        hashed("a", "s"),
        hashed("b", "t", "<?,1>"),
        scalar("k", 3, "int64"),
        binary("Equal", "mask", "a, k"),
        where("w", "mask"),
    ]
    report = report_of(before, fetches=["a", "b", "w"])
    assert [item.members for item in report.packed] == [("a", "b", "mask")]


def test_strings_that_something_else_reads_are_not_computed() -> None:
    before = [
        "text = AsString(n) {T = int64} -> <?>",
        hashed("a", "text"),
        hashed("b", "s"),
    ]
    keep = {"fetches": ["a", "b"]}
    report = report_of(before, **keep)
    assert [item.members for item in report.packed] == [("a", "b", "text")]
    report = report_of(before, fetches=["a", "b", "text"])
    assert [item.members for item in report.packed] == [("a", "b")]


def test_operands_that_may_differ_in_shape_are_declined() -> None:
    before = [arg("k", "int64", "<?>", 3), binary("FloorMod", "m", "n, k"), hashed("a", "s"), hashed("b", "t", "<?,1>")]
    report = report_of(before, fetches=["m", "a", "b"])
    assert [item.members for item in report.packed] == [("a", "b")]
    assert [(item.code, item.node) for item in report.declined] == [("not_elementwise", "m")]


def test_a_table_that_is_written_between_lookups_is_read_before_and_after() -> None:
    before = [
        TABLE,
        MINUS_ONE,
        found("f", "table", "s", "none"),
        hashed("a", "s"),
        "write = LookupTableInsertV2(table, s, a, ^f) {Tin = string, Tout = int64}",
        found("g", "table", "s", "none, ^write"),
        found("h", "table", "t", "none, ^write"),
    ]
    report = report_of(before, fetches=["f", "g", "h", "write"])
    assert [item.members for item in report.packed] == [("a", "f"), ("g", "h")]


def test_lookups_that_nobody_reads_stay() -> None:
    """Something may still wait for them."""
    finds = [found("f", "table", "s", "none"), found("g", "table", "t", "none"), "waits = NoOp(^f, ^g)"]
    check([TABLE, MINUS_ONE, *finds], None, fetches=["waits"])


def test_a_size_that_something_else_reads_or_waits_for_keeps_its_place() -> None:
    size = "size = LookupTableSizeV2(table, ^f) {} -> <>"
    before = [TABLE, MINUS_ONE, found("f", "table", "s", "none"), hashed("h", "s"), size]
    before += [found("g", "table", "t", "none, ^size"), hashed("i", "t", "<?,1>")]
    report = report_of(before, fetches=["f", "g", "h", "i", "size"])
    assert [item.members for item in report.packed] == [("f", "h", "i")]
    report = report_of([*before, binary("AddV2", "sum", "size, h")], fetches=["f", "g", "i", "sum"])
    assert [item.members for item in report.packed] == [("f", "g", "h", "i", "sum")]


def test_a_remainder_of_scalars_is_no_candidate() -> None:
    check(
        [scalar("k", 7, "int64"), arg("i", "int64", "<>", 3), binary("FloorMod", "m", "i, k", shape="<>")],
        None,
        fetches=["m"],
    )


def test_one_transform_alone_and_other_devices_are_declined() -> None:
    check([hashed("a", "s")], None, {"a": "single_transform"}, fetches=["a"])
    gpu = "b = Bucketize(n) {T = int64, boundaries = [1.0]} @ /device:GPU:0 -> <?>"
    check([gpu], None, {"b": "no_kernel"}, fetches=["b"])


def test_what_has_no_instruction_is_declined_too() -> None:
    """What follows a split is packed: its values are a feature like any other."""
    split = "p = StringSplitV2(s, c) {maxsplit = -1} -> <?,2>, <?>, <2>"
    before = [arg("c", "string", "<>", 3), split, hashed("a", "p:1"), hashed("b", "t", "<?,1>")]
    report = report_of(before, fetches=["a", "b"])
    assert [item.members for item in report.packed] == [("a", "b")]
    assert [(item.code, item.node) for item in report.declined] == [("string_split", "p")]


def test_fuel_and_graphs_without_features() -> None:
    before = [hashed("a", "s"), hashed("b", "t", "<?,1>")]
    check(before, None, {"a": "out_of_fuel", "b": "out_of_fuel"}, fuel=0, fetches=["a", "b"])
    check([variable("v"), "c = Cast(n) {DstT = int32, SrcT = int64, Truncate = false} -> <?>"], None, fetches=["c"])


def test_a_fetched_transform_lives_on_and_a_fed_one_is_left_alone() -> None:
    before = [hashed("a", "s"), hashed("b", "t", "<?,1>")]
    after = [
        packed("s, t", [OF_S, OF_T], name="a"),
        identity("a", "picasso/feature_packing/a", "int64", "<?>"),
        identity("b", "picasso/feature_packing/a:1", "int64", "<?,1>"),
    ]
    check(before, after, fetches=["a", "b"])
    check(before, None, {"a": "single_transform", "b": "not_elementwise"}, feeds=["b"], fetches=["a", "b"])


def test_parsed_features_that_nobody_reads_are_told() -> None:
    """Which stay: an example with another dtype of one of them is an error."""
    types = "Tdense = [float32, int64], dense_shapes = [<1>, <1>], num_sparse = 1, sparse_types = [string]"
    ragged = "ragged_split_types = [int64], ragged_value_types = [int64]"
    names = [arg(name, "string", "<?>", 10 + i) for i, name in enumerate(("e", "e_names", "ks", "kd", "kr"))]
    names += [arg("d0", "float32", "<1>", 15), arg("d1", "int64", "<1>", 16)]
    shapes = "<?,2>, <?>, <2>, <?,1>, <?,1>, <?>, <?>"
    parse = f"p = ParseExampleV2(e, e_names, ks, kd, kr, d0, d1) {{{types}, {ragged}}} -> {shapes}"
    ports = {"sparse": 1, "dense": 3, "other": 4, "ragged": 6}
    dtypes = {"sparse": "string", "dense": "float32", "other": "int64", "ragged": "int64"}
    for unread in (None, *ports):
        read = [name for name in ports if name != unread]
        readers = [identity(name, f"p:{ports[name]}", dtypes[name]) for name in read]
        report = report_of([*names, parse, *readers], fetches=read)
        assert [item.code for item in report.declined] == ([] if unread is None else ["parsed_unread"])

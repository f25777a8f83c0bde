"""The packed transforms give the bits of TensorFlow's own ops, run one by one, and of their oracle."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from picasso_tf.ops import Program, packed_transforms
from tests.support.packed_transforms_calls import (
    BOUNDARIES,
    LOWEST,
    TABLES,
    WORDS,
    HashTable,
    assert_same,
    check,
    one,
    random_values,
)

SHAPES = ([], [0], [1], [511], [512], [513], [2048], [2049], [5000], [3, 0], [40, 30], [7, 5, 40])
STRINGS = random_values("string", [600])
NUMBERS = ("int32", "int64", "float32", "float64")


def numbers(dtype):
    """All pairs of values at which arithmetic changes, as two arrays."""
    some = [0, 1, -1, 2, 3, -3, 7, -7, 100, LOWEST.get(dtype, -1e30), -1 - LOWEST.get(dtype, 0)]
    if dtype.startswith("float"):
        some += [0.1, -0.0, np.inf, -np.inf, np.nan]
    pairs = np.array(list(itertools.product(some, some)), object)
    return pairs[:, 0].astype(dtype), pairs[:, 1].astype(dtype)


@pytest.mark.parametrize("buckets", [1, 7, 1000, 2**31, 2**63 - 1])
def test_hashes(buckets):
    wanted = tf.strings.to_hash_bucket_fast(STRINGS, buckets)
    assert_same(one(STRINGS, f"hash_fast x {buckets}"), wanted.numpy())
    for key in ([1, 2], [0, 0], [-1, 2**63 - 1]):
        wanted = tf.strings.to_hash_bucket_strong(STRINGS, buckets, key)
        assert_same(one(STRINGS, f"hash_strong x {buckets} {key[0]} {key[1]}"), wanted.numpy())


def test_hashes_of_strings_of_all_lengths():
    """Hashes take other ways for other lengths; strings of up to 22 bytes lie in the tensor itself."""
    letters = np.random.default_rng(0).integers(0, 256, 300, np.uint8).tobytes()
    texts = np.array([letters[:size] for size in range(300)], object)
    assert_same(one(texts, "hash_fast x 1000003"), tf.strings.to_hash_bucket_fast(texts, 1000003).numpy())
    wanted = tf.strings.to_hash_bucket_strong(texts, 1000003, [3, 5])
    assert_same(one(texts, "hash_strong x 1000003 3 5"), wanted.numpy())


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("boundaries", [[], [0.0], list(BOUNDARIES), [i / 8 for i in range(-400, 400)]], ids=len)
def test_bucketize(dtype, boundaries):
    values = np.concatenate([random_values(dtype, [600]), np.array([-10, -2.5, 0, 0.1, 7, 49.875]).astype(dtype)])
    wanted = tf.raw_ops.Bucketize(input=values, boundaries=boundaries).numpy()
    assert_same(one(values, f"bucketize x 0 {len(boundaries)}", boundaries=boundaries), wanted)


def test_bucketize_with_boundaries_of_several_instructions():
    values = random_values("float32", [100])
    program = Program(["bucketize x 0 2", "bucketize x 2 2", "bucketize x 2 5"], [(f"v{i}", "int32") for i in range(3)])
    found = check([values], [program], boundaries=[1.0, 2.0, -5.0, 0.0, 5.0])[0]
    for result, boundaries in zip(found, ([1.0, 2.0], [], [-5.0, 0.0, 5.0]), strict=True):
        assert_same(result, tf.raw_ops.Bucketize(input=values, boundaries=boundaries).numpy())


@pytest.mark.parametrize("mutable", [False, True], ids=["static", "mutable"])
@pytest.mark.parametrize(("keys", "values"), TABLES)
def test_tables(keys, values, mutable):
    if mutable and (keys, values) == ("int32", "int64"):
        pytest.skip("TensorFlow has no such table.")
    table = HashTable.of(TABLES[keys, values], keys, values, mutable)
    for shape in ([0], [3], [2100], [2, 3, 100], []):
        features = random_values(keys, shape)
        for default in (0, -1):
            default = tf.constant(default, values)
            wanted = tf.raw_ops.LookupTableFindV2(
                table_handle=table.table.resource_handle, keys=features, default_value=default
            )
            found = one(features, f"find x c0 0 {values}", scalars=[default.numpy()], tables=[table])
            assert_same(found, wanted.numpy())


def test_a_static_vocabulary_table_with_hashed_buckets():
    """What it does: a lookup, a hash, its bucket behind the keys, and a choice."""
    contents = dict(zip(WORDS[:5], range(5), strict=True))
    table = HashTable.of(contents)
    initializer = tf.lookup.KeyValueTensorInitializer(list(contents), tf.range(5, dtype=tf.int64))
    stock = tf.lookup.StaticVocabularyTable(initializer, 10).lookup(tf.constant(STRINGS))
    lines = ["find x c0 0 int64", "hash_fast x 10", "add v1 z0", "equal v0 c0", "select v3 v2 v0"]
    assert_same(one(STRINGS, *lines, scalars=[np.int64(-1)], tables=[table]), stock.numpy())


def test_a_table_that_is_written_between_two_calls():
    table = HashTable.of({b"a": 1}, mutable=True)
    line = "find x c0 0 int64"
    found = [one(STRINGS, line, scalars=[np.int64(-1)], tables=[table])]
    table.table.insert(["b"], tf.constant([7], tf.int64))
    table.contents[b"b"] = 7
    found.append(one(STRINGS, line, scalars=[np.int64(-1)], tables=[table]))
    assert [(result == 7).any() for result in found] == [False, True]


ARITHMETIC = {
    "add": tf.raw_ops.AddV2,
    "sub": tf.raw_ops.Sub,
    "mul": tf.raw_ops.Mul,
    "max": tf.raw_ops.Maximum,
    "min": tf.raw_ops.Minimum,
    "floor_mod": tf.raw_ops.FloorMod,
    "trunc_mod": tf.raw_ops.Mod,
}
TESTS = {
    "equal": tf.raw_ops.Equal,
    "not_equal": tf.raw_ops.NotEqual,
    "less": tf.raw_ops.Less,
    "less_equal": tf.raw_ops.LessEqual,
    "greater": tf.raw_ops.Greater,
    "greater_equal": tf.raw_ops.GreaterEqual,
}


@pytest.mark.parametrize("opcode", ARITHMETIC)
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_arithmetic(opcode, dtype):
    some, others = numbers(dtype)
    for other in np.unique(others):
        divides = opcode.endswith("mod")
        if not (divides and other == 0):
            wanted = ARITHMETIC[opcode](x=some, y=other).numpy()
            assert_same(one(some, f"{opcode} x c0", scalars=[other]), wanted)
        divisors = some[some != 0] if divides else some
        assert_same(one(divisors, f"{opcode} c0 x", scalars=[other]), ARITHMETIC[opcode](x=other, y=divisors).numpy())


def test_truncate_mod_is_mod():
    some, _ = numbers("int64")
    for other in (7, -7, 2**63 - 1):
        wanted = tf.truncatemod(some, tf.constant(other, tf.int64)).numpy()
        assert_same(one(some, "trunc_mod x c0", scalars=[np.int64(other)]), wanted)


@pytest.mark.parametrize("opcode", TESTS)
@pytest.mark.parametrize("dtype", [*NUMBERS, "bool", "string"])
def test_comparisons(opcode, dtype):
    if dtype in ("bool", "string") and opcode not in ("equal", "not_equal"):
        pytest.skip("TensorFlow has no such comparison.")
    some = numbers(dtype)[0] if dtype in NUMBERS else random_values(dtype, [600])
    for other in np.unique(some):
        scalar = np.array(other, some.dtype)
        assert_same(one(some, f"{opcode} x c0", scalars=[scalar]), TESTS[opcode](x=some, y=scalar).numpy())
        assert_same(one(some, f"{opcode} c0 x", scalars=[scalar]), TESTS[opcode](x=scalar, y=some).numpy())
    assert_same(one(some, f"{opcode} x x"), TESTS[opcode](x=some, y=some).numpy())


def test_logic():
    some = random_values("bool", [700])
    for other in (np.array(False), np.array(True)):
        assert_same(one(some, "and x c0", scalars=[other]), tf.logical_and(some, other).numpy())
        assert_same(one(some, "or c0 x", scalars=[other]), tf.logical_or(some, other).numpy())
    assert_same(one(some, "not x"), tf.logical_not(some).numpy())


@pytest.mark.parametrize("to", ["bool", *NUMBERS])
@pytest.mark.parametrize("dtype", ["bool", *NUMBERS])
def test_casts(dtype, to):
    some = random_values(dtype, [3000])
    if dtype.startswith("float"):
        edges = [2.0**31 - 1, -(2.0**31), -(2.0**31) - 1, 2.0**63, -(2.0**63), 2.0**53 + 1, 0.9, -0.9, 1e300, 3e38]
        with np.errstate(over="ignore"):
            some = np.concatenate([some, np.array(edges).astype(dtype)])
    if dtype == "int64":
        some = np.concatenate([some, np.array([9007199791611905, 2**60 + 2**36 + 1, 2**32, 2**31])])
    assert_same(one(some, f"cast x {to}"), tf.cast(some, to).numpy())


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_numbers_as_strings(dtype):
    some = random_values(dtype, [900])
    wanted = tf.strings.to_hash_bucket_fast(tf.strings.as_string(some), 2**40)
    assert_same(one(some, "as_string x", f"hash_fast v0 {2**40}"), wanted.numpy())
    for value in (LOWEST[dtype], 0):
        text = np.array(str(value).encode(), object)
        found = one(some, "as_string x", "equal v0 c0", scalars=[text])
        assert found.tolist() == (some == value).tolist()


@pytest.mark.parametrize("dtype", ["bool", *NUMBERS, "string"])
def test_select_zeros_and_ones(dtype):
    some = random_values(dtype, [600])
    other = some[3:4].reshape([])
    for chosen in (np.array(True), np.array(False)):
        line = "select c1 x c0" if dtype != "string" else "select c1 x c0;hash_fast v0 1000;add v1 c2"
        found = one(some, *line.split(";"), scalars=[other, chosen, np.int64(0)])
        wanted = tf.where(chosen, some, other)
        assert_same(found, (wanted if dtype != "string" else tf.strings.to_hash_bucket_fast(wanted, 1000)).numpy())
    test = tf.equal(some, other)
    if dtype == "string":
        found = one(some, "equal x c0", "zeros_like x", "select v0 v1 x", "hash_fast v2 1000", scalars=[other])
        assert_same(found, tf.strings.to_hash_bucket_fast(tf.where(test, "", some), 1000).numpy())
        return
    assert_same(
        one(some, "equal x c0", "zeros_like x", "select v0 v1 x", scalars=[other]),
        np.where(test, 0, some).astype(dtype),
    )
    assert_same(one(some, "ones_like x"), tf.ones_like(some).numpy())
    assert_same(one(some, "zeros_like x"), tf.zeros_like(some).numpy())


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape], ids=str)
@pytest.mark.parametrize("dtype", ["int64", "float32", "string"])
def test_a_mask_takes_what_where_and_gather_nd_take(dtype, shape):
    some = random_values(dtype, shape)
    zero = np.array(b"", object) if dtype == "string" else np.array(0, dtype)
    lines = ["not_equal x c0", "take x v0", "take v0 v0", "hash_fast v1 100" if dtype == "string" else "cast v1 int32"]
    outputs = [("indices", "int64"), ("v2", "bool"), ("v3", "int64" if dtype == "string" else "int32"), ("v0", "bool")]
    found = check([some], [Program(lines, outputs)], [zero])[0]
    indices = tf.where(tf.not_equal(some, zero))
    taken = tf.gather_nd(some, indices)
    assert_same(found[0], indices.numpy())
    assert_same(found[1], np.ones(len(indices), bool))
    last = tf.strings.to_hash_bucket_fast(taken, 100) if dtype == "string" else tf.cast(taken, tf.int32)
    assert_same(found[2], last.numpy())


@pytest.mark.parametrize("count", [0, 1, 700])
def test_a_mask_that_takes_all_or_nothing(count):
    some = random_values("int64", [700])
    for chosen in (True, False):
        mask = np.full(700, chosen)
        mask[:count] = not chosen
        program = Program(["take x x"], [("v0", "bool"), ("indices", "int64")])
        found = check([mask], [program])[0]
        assert_same(found[1], np.flatnonzero(mask)[:, None])
    assert one(some, "equal x x", "take x v0").tolist() == some.tolist()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_outputs_have_the_shape_of_the_feature(shape):
    for dtype in ("int64", "float64", "bool"):
        some = random_values(dtype, shape)
        assert_same(check([some], [Program([], [("x", dtype)])])[0][0], some)
    assert one(random_values("string", shape), "hash_fast x 9").shape == tuple(shape)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bits_of_floats_that_are_only_moved(dtype):
    """Denormals, which TensorFlow's threads flush to zero when they compute, and NaNs with something in them."""
    bits = np.array([1, 2**20, 2**31 - 1, 2**31 + 5, 0x7F800001, 0xFFC12345, 2**31] * 2000, np.uint32)
    some = (bits if dtype == "float32" else bits.astype(np.uint64) * (2**32 + 1)).view(dtype)
    outputs = [("v2", dtype), ("v3", dtype), ("x", dtype)]
    program = Program(["cast x bool", "or v0 c0", "take x v1", "select v1 x c1"], outputs)
    scalars = [np.array(True), np.array(1.5, dtype)]
    for result in packed_transforms([some], [program], scalars=scalars)[0]:
        assert result.numpy().tobytes() == some.tobytes()


def test_scalars_keep_denormals():
    tiny = np.float32(1e-42)
    found = packed_transforms(
        [np.ones(9000, bool)], [Program(["select x c0 c1"], [("v0", "float32")])], scalars=[tiny, 0.0]
    )
    assert found[0][0].numpy().tobytes() == np.full(9000, tiny).tobytes()


def test_shapes_that_are_inferred():
    program = Program(["not_equal x c0", "take x v0", "hash_fast v1 9", "hash_fast x 9"], [])
    program = program._replace(outputs=[("v3", "int64"), ("v2", "int64"), ("indices", "int64"), ("v0", "bool")])

    @tf.function
    def function(feature):
        (results,) = packed_transforms([feature], [program], scalars=[tf.constant("")])
        return results

    found = []
    for shape in ([None, 3], [4], None):
        found.append(function.get_concrete_function(tf.TensorSpec(shape, tf.string)).output_shapes)
    assert [[shape.as_list() for shape in shapes] for shapes in found[:2]] == [
        [[None, 3], [None], [None, 2], [None, 3]],
        [[4], [None], [None, 1], [4]],
    ]
    assert [shape.rank for shape in found[2]] == [None, 1, 2, None]


def test_an_output_twice_and_features_without_outputs():
    some = random_values("int64", [30])
    programs = [Program(["add x x"], [("v0", "int64"), ("x", "int64"), ("v0", "int64")]), Program(["add x x"], [])]
    found = check([some, some], programs)
    assert [len(results) for results in found] == [3, 0]

"""What the packed transforms and their wrapper refuse: the error classes of stock, in one clear sentence."""

import re

import numpy as np
import pytest
import tensorflow as tf

from graph_passes.errors import ConfigError
from picasso_tf.bridge import library
from picasso_tf.ops import Program, packed_transforms
from tests.support.packed_transforms_calls import HashTable, random_values

WORDS = np.array([b"a", b"b", b"", b"a"], object)
NUMBERS = np.array([3, 0, -1, 5])


def refused(message):
    return pytest.raises(tf.errors.InvalidArgumentError, match=re.escape(message))


def run(feature, *lines, output=("v0", "int64"), **given):
    return packed_transforms([feature], [Program(lines, [output])], **given)[0][0].numpy()


BAD_LINES = {
    "hash x 10": "'hash x 10': there is no instruction 'hash'.",
    "": "'': there is no instruction ''.",
    "hash_fast": "'hash_fast': an operand is missing.",
    "hash_fast x": "'hash_fast x': a number is missing.",
    "hash_fast x 0": "'hash_fast x 0': it needs a bucket.",
    "hash_fast x 9 9": "'hash_fast x 9 9': '9' is too much.",
    "hash_fast y 9": "'hash_fast y 9': 'y' is not a value: x, or one of c, z, y, v and a number.",
    "hash_fast c1 9": "'hash_fast c1 9': there is no 'c1' yet.",
    "hash_fast c0 9": "'hash_fast c0 9': it has scalars only.",
    "hash_fast v0 9": "'hash_fast v0 9': there is no 'v0' yet.",
    "add x c0": "'add x c0': it does not take such dtypes.",
    "bucketize x 0 0": "'bucketize x 0 0': it does not take such dtypes.",
    "take x x": "'take x x': it does not take such dtypes.",
    "find x c0 0 int64": "'find x c0 0 int64': it does not take such dtypes.",
    "join x c0 0": "'join x c0 0': there is no such text.",
    "cast x int": "'cast x int': a dtype is missing.",
}


@pytest.mark.parametrize("line", BAD_LINES)
def test_a_wrong_program_is_said_with_its_line(line):
    with refused(f"PackedTransforms: in the program of feature 0, {BAD_LINES[line]}"):
        run(WORDS, line, scalars=[tf.constant("")])


@pytest.mark.parametrize(
    ("lines", "output", "sentence"),
    [
        (["equal x x"], ("v1", "bool"), "`output_value[0]` is 'v1', but there is no 'v1' yet."),
        (["equal x x"], ("w", "bool"), "`output_value[0]` is 'w', but 'w' is not a value"),
        (["equal x x"], ("v0", "int64"), "`output_value[0]` is 'v0', but it has another dtype."),
        (["equal x x"], ("c0", "int64"), "`output_value[0]` is 'c0', but it is a scalar."),
        (["as_string x"], ("v0", "int64"), "`output_value[0]` is 'v0', but strings cannot be outputs."),
        (
            ["equal x x"],
            ("indices", "int64"),
            "`output_value[0]` is 'indices', but its feature's program takes no part.",
        ),
        (["equal x x", "take x v0"], ("indices", "int32"), "`output_value[0]` is 'indices', but it has another dtype."),
    ],
)
def test_a_wrong_output(lines, output, sentence):
    with refused(f"PackedTransforms: {sentence}"):
        run(NUMBERS, *lines, output=output, scalars=[np.int64(1)])


ATTRIBUTES = {
    "feature_types": [tf.int64, tf.int64],
    "other_types": [],
    "scalar_types": [],
    "feature_names": ["one", "two"],
    "feature_instructions": [1, 1],
    "program": ["add x x", "sub x x"],
    "output_feature": [0, 1],
    "output_value": ["v0", "v0"],
    "output_types": [tf.int64, tf.int64],
}


@pytest.mark.parametrize(
    ("attribute", "value", "sentence"),
    [
        ("feature_names", ["one"], "`feature_names` must have one entry for each feature (2), but it has 1."),
        ("feature_instructions", [2], "`feature_instructions` must have one entry for each feature (2), but it has 1."),
        ("feature_instructions", [1, 2], "`feature_instructions[1]` must be in [0, 2), but it is 2."),
        ("feature_instructions", [-1, 2], "`feature_instructions[0]` must be in [0, 3), but it is -1."),
        ("feature_instructions", [1, 0], "`program` must have one entry for each instruction (1), but it has 2."),
        ("output_feature", [0], "`output_feature` must have one entry for each output (2), but it has 1."),
        ("output_value", ["v0"], "`output_value` must have one entry for each output (2), but it has 1."),
        ("output_feature", [0, 2], "`output_feature[1]` must be in [0, 2), but it is 2."),
        ("output_feature", [-1, 0], "`output_feature[0]` must be in [0, 2), but it is -1."),
        ("output_types", [tf.int64, tf.bool], "`output_value[1]` is 'v0', but it has another dtype."),
        ("program", ["add x x", "sub x v0"], "in the program of feature 1, 'sub x v0': there is no 'v0' yet."),
    ],
)
def test_attributes_are_checked_when_a_graph_is_made(attribute, value, sentence):
    attributes = {name: kept for name, kept in ATTRIBUTES.items() if not name.endswith("_types")}
    attributes |= {"output_types": ATTRIBUTES["output_types"], attribute: value}

    @tf.function
    def function():
        ops = library.ops()
        return ops.picasso_packed_transforms(
            features=[tf.range(3, dtype=tf.int64)] * 2, others=[], scalars=[], tables=[], **attributes
        )

    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match=re.escape(sentence)):
        function.get_concrete_function()


@pytest.mark.parametrize("shape", [[3], [1, 4], [], [4, 1]])
def test_another_tensor_of_another_shape(shape):
    with refused("'features[0]' reads tensors of shapes [4] and "):
        run(WORDS, "join x y0 0", "hash_fast v0 9", others=[tf.fill(shape, "a")], texts=[""], output=("v1", "int64"))


def test_a_scalar_that_is_none():
    with refused("scalar 0 has shape [1]."):
        run(NUMBERS, "add x c0", scalars=[np.array([1])])

    @tf.function
    def function(scalar):
        return packed_transforms([NUMBERS], [Program(["add x c0"], [("v0", "int64")])], scalars=[scalar])

    with pytest.raises(ValueError, match="Shape must be rank 0 but is rank 1"):
        function.get_concrete_function(tf.TensorSpec([1], tf.int64))


@pytest.mark.parametrize(
    ("features", "programs", "sentence"),
    [
        ([], [], "lists of the same length, at least 1. Received: 0 features and 0 programs."),
        ([NUMBERS], [], "Received: 1 features and 0 programs."),
        ([NUMBERS], [Program(["as_string x"], [("v0", "string")])], "float64. Received: v0 as string."),
    ],
)
def test_the_wrapper_says_what_is_wrong(features, programs, sentence):
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        packed_transforms(features, programs)


@pytest.mark.parametrize("dtype", [tf.float16, tf.uint8, tf.complex64])
def test_dtypes_of_features(dtype):
    with pytest.raises((TypeError, ValueError, tf.errors.InvalidArgumentError), match="allowed values"):
        run(tf.zeros([3], dtype), "equal x x", output=("v0", "bool"))


@pytest.mark.parametrize("opcode", ["floor_mod", "trunc_mod"])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_a_division_by_zero(opcode, dtype):
    stock = tf.raw_ops.FloorMod if opcode == "floor_mod" else tf.raw_ops.Mod
    output = ("v0", dtype)
    zero, some = np.array(0, dtype), NUMBERS.astype(dtype)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Integer division by zero"):
        stock(x=some, y=zero)
    with refused("Integer division by zero, in 'features[0]'."):
        run(some, f"{opcode} x c0", output=output, scalars=[zero])
    with refused("Integer division by zero, in 'features[0]'."):
        run(some, f"{opcode} c0 x", output=output, scalars=[zero])
    assert run(some[:0], f"{opcode} x c0", output=output, scalars=[zero]).tolist() == []
    # What the mask leaves out divides nothing.
    lines = ["not_equal x c0", "take x v0", f"{opcode} c0 v1"]
    assert run(some, *lines, output=("v2", dtype), scalars=[zero]).tolist() == [0, 0, 0]


def test_a_division_by_zero_far_back_in_one_of_many_features():
    features = [np.full(9000, 3) for _ in range(5)]
    features[3][8999] = 0
    programs = [Program(["floor_mod c0 x"], [("v0", "int64")])] * 5
    for _ in range(20):
        with refused("Integer division by zero, in 'features[3]'."):
            packed_transforms(features, programs, scalars=[np.int64(7)])


@pytest.mark.parametrize("shape", [[], [1] * 9])
def test_a_mask_of_a_rank_that_where_does_not_take(shape):
    some = tf.ones(shape, tf.int64)
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.raw_ops.Where(condition=tf.equal(some, 1))
    with refused("'features[0]' takes a part of a tensor, whose rank must be 1 to 8, but its shape is ["):
        run(some, "equal x x", "take x v0", output=("v1", "int64"))


@pytest.mark.parametrize("words", [WORDS, WORDS[:0]], ids=["some", "none"])
def test_an_uninitialised_table_is_the_error_of_stock(words):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        initializer = tf.lookup.KeyValueTensorInitializer(["a"], tf.constant([4], tf.int64))
        table = tf.lookup.StaticHashTable(initializer, -1)
        words = tf.constant(words, tf.string)
        stock = table.lookup(words)
        program = Program(["find x c0 0 int64"], [("v0", "int64")])
        given = {"scalars": [tf.constant(-1, tf.int64)], "tables": [table.resource_handle]}
        ours = packed_transforms([words, words], [program, program], **given)
        with pytest.raises(tf.errors.OpError) as caught:
            session.run(stock)
        assert type(caught.value) is tf.errors.FailedPreconditionError
        with pytest.raises(type(caught.value)):
            session.run(ours)
        session.run(tf.compat.v1.tables_initializer())
        wanted = session.run(stock).tolist()
        assert [result[0].tolist() for result in session.run(ours)] == [wanted, wanted]


FIND = "find x c0 0 int64"


def find(words, handle, default):
    return run(words, FIND, scalars=[default], tables=[handle])


def test_a_table_of_other_dtypes_is_the_error_of_stock():
    of_words = HashTable.of({b"a": 1}).table
    of_numbers = HashTable.of({1: 1}, "int64", "int64").table
    for table, keys in ((of_words, NUMBERS), (of_numbers, WORDS)):
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.raw_ops.LookupTableFindV2(table_handle=table.resource_handle, keys=keys, default_value=np.int64(0))
        with pytest.raises(tf.errors.InvalidArgumentError, match="Key must be type"):
            find(keys, table.resource_handle, np.int64(0))
    with pytest.raises(tf.errors.InvalidArgumentError):
        run(
            WORDS, "find x c0 0 int32", output=("v0", "int32"), scalars=[np.int32(0)], tables=[of_words.resource_handle]
        )


def test_a_handle_of_something_else():
    variable = tf.Variable(tf.zeros([3]))
    with pytest.raises((tf.errors.InvalidArgumentError, tf.errors.NotFoundError)) as stock:
        tf.raw_ops.LookupTableFindV2(table_handle=variable.handle, keys=WORDS, default_value=np.int64(0))
    with pytest.raises(type(stock.value)):
        find(WORDS, variable.handle, np.int64(0))


@pytest.mark.parametrize("shape", [[3], []])
def test_a_key_that_a_dense_table_refuses(shape):
    table = tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, -1, empty_key=-5, deleted_key=-6)
    table.insert([3, 0], tf.constant([30, 1], tf.int64))
    keys = np.broadcast_to(np.int64(3), shape)
    assert find(keys, table.resource_handle, np.int64(-1)).tolist() == np.full(shape, 30).tolist()
    bad = np.broadcast_to(np.int64(-5), shape)
    with pytest.raises(tf.errors.InvalidArgumentError) as stock:
        table.lookup(bad)
    with pytest.raises(type(stock.value), match="empty_key"):
        find(bad, table.resource_handle, np.int64(-1))


def test_values_that_are_no_scalars():
    table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, default_value=[0, 0])
    table.insert([3], tf.constant([[1, 2]], tf.int64))
    with pytest.raises(tf.errors.InvalidArgumentError):
        find(NUMBERS, table.resource_handle, np.int64(0))


def test_features_without_elements():
    dtypes = ("bool", "int32", "int64", "float32", "float64", "string")
    for shape in ([0], [4, 0], [0, 3, 2]):
        features = [random_values(dtype, shape) for dtype in dtypes]
        program = Program(["equal x x", "take x v0"], [("v0", "bool"), ("indices", "int64")])
        for results in packed_transforms(features, [program] * len(dtypes)):
            assert [result.shape for result in results] == [shape, [0, len(shape)]]


def test_reads_and_writes_of_one_function_keep_their_order():
    table = HashTable.of({b"a": 1}, mutable=True).table
    program = Program([FIND], [("v0", "int64")])
    given = {"scalars": [np.int64(-1)], "tables": [table.resource_handle]}

    @tf.function
    def function():
        before = packed_transforms([WORDS], [program], **given)[0][0]
        table.insert(["b"], tf.constant([7], tf.int64))
        after = packed_transforms([WORDS], [program], **given)[0][0]
        table.remove(tf.constant(["b"]))
        return before, after

    for _ in range(20):
        before, after = function()
        assert before.numpy().tolist() == [1, -1, -1, 1]
        assert after.numpy().tolist() == [1, 7, -1, 1]

"""Picasso>PackedCrosses gives what SparseCross gives, and its errors."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from graph_passes.errors import ConfigError
from picasso_tf.bridge import library
from picasso_tf.ops import Cross, packed_crosses
from tests.support import packed_crosses_oracle as oracle
from tests.support.packed_crosses_oracle import Rows
from tests.support.packed_transforms_calls import WORDS, assert_same

KEYS = (0, 77, 0xDECAFCAFFE, -1, 2**63 - 1)
BUCKETS = (0, 1, 7, 1000, 2**40, 2**63 - 1)
OUTPUTS = ("indices", "values", "shape", "dense")
INTEGERS = (0, 1, -1, 2**31, 2**63 - 1, -(2**63), 12345)


def stock(tensors, num_buckets, hash_key):
    """What TensorFlow's ops give. They take sparse columns first."""
    sparse = [tensor for tensor in tensors if isinstance(tensor, tf.SparseTensor)]
    dense = [tensor for tensor in tensors if not isinstance(tensor, tf.SparseTensor)]
    found = tf.raw_ops.SparseCross(
        indices=[tensor.indices for tensor in sparse],
        values=[tensor.values for tensor in sparse],
        shapes=[tensor.dense_shape for tensor in sparse],
        dense_inputs=dense,
        hashed_output=True,
        num_buckets=num_buckets,
        hash_key=hash_key,
        out_type=tf.int64,
        internal_type=tf.int64,
    )
    matrix = tf.raw_ops.SparseToDense(
        sparse_indices=found[0], output_shape=found[2], sparse_values=found[1], default_value=np.int64(0)
    )
    return [*found, matrix]


@st.composite
def crossed(draw):
    """Columns of one number of rows, sparse ones first, and crosses of them."""
    size = draw(st.integers(0, 6))
    columns = []
    for is_sparse in sorted(draw(st.lists(st.booleans(), min_size=1, max_size=4)), reverse=True):
        dtype = draw(st.sampled_from(["string", "int64"]))
        features = st.sampled_from(WORDS if dtype == "string" else INTEGERS)
        width = draw(st.integers(0, 3))
        lengths = [draw(st.integers(0, 3)) if is_sparse else width for _ in range(size)]
        rows = [draw(st.lists(features, min_size=length, max_size=length)) for length in lengths]
        columns.append(Rows(rows, dtype, is_sparse))
    crosses = []
    for _ in range(draw(st.integers(1, 4))):
        numbers = sorted(draw(st.lists(st.integers(0, len(columns) - 1), min_size=1, max_size=4)))
        crosses.append((numbers, draw(st.sampled_from(BUCKETS)), draw(st.sampled_from(KEYS))))
    return columns, crosses


@settings(deadline=None, max_examples=200)
@given(crossed())
def test_random_crosses(drawn):
    columns, crosses = drawn
    tensors = [column.tensor() for column in columns]
    found = packed_crosses([Cross([tensors[n] for n in of], *rest, OUTPUTS) for of, *rest in crosses])
    for (of, *rest), results in zip(crosses, found, strict=True):
        wanted = oracle.packed_crosses([columns[n] for n in of], *rest)
        by_stock = stock([tensors[n] for n in of], *rest)
        for kind, result, expected in zip(OUTPUTS, results, by_stock, strict=True):
            assert_same(result, wanted[kind])
            assert_same(result, expected.numpy())


@pytest.mark.parametrize("rows", [1023, 1024, 1025, 2049, 9000])
def test_large_crosses_on_several_threads(rows):
    random = np.random.default_rng(rows)
    words = tf.constant(random.choice(np.array(WORDS, object), [rows, 1]))
    numbers = tf.constant(random.integers(-50, 50, [rows, 1]))
    ragged = tf.RaggedTensor.from_row_lengths(
        tf.gather(tf.constant(WORDS), random.integers(0, len(WORDS), rows * 2)),
        np.array([n % 5 for n in range(rows - 1)] + [rows * 2 - sum(n % 5 for n in range(rows - 1))]),
    )
    several = [ragged.to_sparse(), words, numbers]
    crosses = [Cross(columns, 1000, 77, OUTPUTS) for columns in ([words, numbers], [words, words, numbers], several)]
    for cross, results in zip(crosses, packed_crosses(crosses), strict=True):
        for result, expected in zip(results, stock(cross.columns, 1000, 77), strict=True):
            assert_same(result, expected.numpy())


def test_indices_out_of_order_are_in_no_row_as_in_stock():
    for rows in ([0, 2, 1], [1, 0, 0], [-1, 0, 1], [0, 3, 3], [0, 0, 9]):
        indices = np.array([[row, n] for n, row in enumerate(rows)], np.int64)
        column = tf.SparseTensor(indices, ["a", "b", "cat"], [3, 4])
        other = tf.constant([[1], [2], [3]], tf.int64)
        found = packed_crosses([Cross([column, other], 50, 77)])[0]
        for result, expected in zip(found, stock([column, other], 50, 77), strict=False):
            assert_same(result, expected.numpy())


def sparse(indices=((0, 0),), values=("a",), shape=(2, 1)):
    return tf.SparseTensor(
        np.array(indices, np.int64).reshape(len(indices), -1 if len(indices) else 2),
        tf.constant(list(values), tf.string),
        shape,
    )


BAD = {
    "rows of dense columns": [tf.constant([["a"]]), tf.constant([["a"], ["b"]])],
    "rows of a sparse and a dense column": [sparse(), tf.constant([["a"]])],
    "a vector": [tf.constant(["a"])],
    "three dimensions": [sparse([[0, 0, 0]], shape=[2, 1, 1]), tf.constant([["a"], ["b"]])],
}


@pytest.mark.parametrize("columns", BAD.values(), ids=BAD.keys())
def test_errors_are_of_the_class_of_stock(columns):
    with pytest.raises(tf.errors.InvalidArgumentError):
        stock(columns, 10, 77)
    with pytest.raises(tf.errors.InvalidArgumentError):
        packed_crosses([Cross(columns, 10, 77)])


def test_fewer_values_than_indices_are_refused():
    indices, shape = tf.constant([[0, 0], [1, 0]], tf.int64), tf.constant([2, 1], tf.int64)

    @tf.function(input_signature=[tf.TensorSpec(None, tf.string)])
    def cross(values):
        return packed_crosses([Cross([tf.SparseTensor(indices, values, shape)], 10, 77)])

    with pytest.raises(tf.errors.InvalidArgumentError, match=r"column 0 is no SparseTensor of rank 2"):
        cross(tf.constant(["a"]))


def test_a_negative_number_of_rows_is_refused():
    """It makes stock TensorFlow crash."""

    @tf.function(input_signature=[tf.TensorSpec([2], tf.int64)])
    def cross(shape):
        column = tf.SparseTensor(tf.zeros([0, 2], tf.int64), tf.zeros([0], tf.int64), shape)
        return packed_crosses([Cross([column], 10, 77)])

    with pytest.raises(tf.errors.InvalidArgumentError, match="its shape -2 1"):
        cross(tf.constant([-2, 1], tf.int64))


def test_the_wrapper_says_what_is_wrong():
    for crosses in ([], [Cross([tf.constant([["a"]])], 10, 77, ["rows"])]):
        with pytest.raises(ConfigError, match="`outputs` must be some of"):
            packed_crosses(crosses)


ATTRS = {
    "num_outputs": 1,
    "cross_names": ["a"],
    "cross_sizes": [1],
    "cross_columns": [0],
    "cross_buckets": [10],
    "cross_keys": [77],
    "output_cross": [0],
    "output_kind": ["values"],
}


@pytest.mark.parametrize(
    ("attr", "value", "message"),
    [
        ("cross_sizes", [], "`cross_sizes` must have one entry for each cross"),
        ("cross_sizes", [2], r"`cross_sizes\[0\]` must be in \[1, 2\)"),
        ("cross_columns", [1], r"`cross_columns\[0\]` must be in \[0, 1\)"),
        ("cross_columns", [0, 0], "`cross_columns` must have one entry for each column of a cross"),
        ("cross_buckets", [-1], r"`cross_buckets\[0\]` is -1"),
        ("cross_keys", [1, 2], "`cross_keys` must have one entry for each cross"),
        ("output_cross", [1], r"`output_cross\[0\]` must be in \[0, 1\)"),
        ("output_kind", ["rows"], "which is none of indices, values, shape and dense"),
    ],
)
def test_attributes_are_checked_when_a_graph_is_made(attr, value, message):
    @tf.function(input_signature=[tf.TensorSpec([None, 1], tf.string)])
    def cross(words):
        inputs = {"indices": [], "values": [], "shapes": [], "dense": [words]}
        return library.ops().picasso_packed_crosses(**inputs, **{**ATTRS, attr: value})

    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match=message):
        cross.get_concrete_function()


def test_shapes_that_are_inferred():
    @tf.function(input_signature=[tf.TensorSpec([None, 1], tf.string)])
    def cross(words):
        return packed_crosses([Cross([words], 10, 77, OUTPUTS)])[0]

    shapes = [shape.as_list() for shape in cross.get_concrete_function().output_shapes]
    assert shapes == [[None, 2], [None], [2], [None, None]]

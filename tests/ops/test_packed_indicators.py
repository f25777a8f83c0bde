"""Picasso>PackedIndicators counts what SparseToDense, OneHot and Sum count, and has their errors."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from graph_passes.errors import ConfigError
from picasso_tf.bridge import library
from picasso_tf.ops import packed_indicators
from tests.support import packed_indicators_oracle as oracle
from tests.support.packed_transforms_calls import assert_same

IDS = st.sampled_from([0, 1, 2, 6, 7, -1, -2, 2**31, 2**32, 2**63 - 1, -(2**63)])
ROWS = st.lists(st.lists(IDS, max_size=5), max_size=8)


def sparse(rows, dtype=np.int64):
    indices = [[row, position] for row, ids in enumerate(rows) for position in range(len(ids))]
    ids = np.array([id_ for ids in rows for id_ in ids], np.int64).astype(dtype)
    shape = [len(rows), max(map(len, rows), default=0)]
    return tf.SparseTensor(np.array(indices, np.int64).reshape(-1, 2), ids, shape)


def stock(indices, ids, shape, depth):
    dense = tf.raw_ops.SparseToDense(
        sparse_indices=indices, output_shape=shape, sparse_values=ids, default_value=tf.constant(-1, ids.dtype)
    )
    return tf.reduce_sum(tf.one_hot(dense, depth), axis=-2)


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.tuples(ROWS, st.sampled_from([0, 1, 7]), st.sampled_from([np.int32, np.int64])), min_size=1, max_size=5)
)
def test_random_features(drawn):
    features, depths = [sparse(rows, dtype) for rows, _, dtype in drawn], [depth for _, depth, _ in drawn]
    for feature, (rows, depth, dtype), found in zip(features, drawn, packed_indicators(features, depths), strict=True):
        assert_same(found, oracle.counts([np.array(ids, np.int64).astype(dtype) for ids in rows], depth))
        assert_same(found, stock(feature.indices, feature.values, feature.dense_shape, depth).numpy())


def test_large_features_on_several_threads():
    random = np.random.default_rng(0)
    rows = [random.integers(-1, 50, random.integers(0, 4)).tolist() for _ in range(5000)]
    for found, depth in zip(packed_indicators([sparse(rows)] * 2, [50, 3]), (50, 3), strict=True):
        assert_same(found, oracle.counts(rows, depth))


BAD = {
    "order": [[0, 1], [0, 0]],
    "twice": [[0, 0], [0, 0]],
    "a row too high": [[0, 0], [2, 0]],
    "a column too high": [[0, 0], [1, 3]],
    "a negative row": [[-1, 0], [1, 0]],
}


@pytest.mark.parametrize("indices", BAD.values(), ids=BAD.keys())
def test_errors_are_of_the_class_of_stock(indices):
    ids, shape = tf.constant([1, 2], tf.int64), tf.constant([2, 3], tf.int64)
    with pytest.raises(tf.errors.InvalidArgumentError):
        stock(tf.constant(indices, tf.int64), ids, shape, 5)
    with pytest.raises(tf.errors.InvalidArgumentError, match="is out of bounds or out of order"):
        packed_indicators([tf.SparseTensor(indices, ids, shape)], [5])


@pytest.mark.parametrize("count", [0, 1, 3])
def test_one_id_for_all_indices_and_other_numbers_of_ids(count):
    """SparseToDense takes a scalar, which a SparseTensor cannot hold."""
    indices, shape = tf.constant([[0, 0], [1, 1]], tf.int64), tf.constant([2, 3], tf.int64)

    def both(ids):
        ours = library.ops().picasso_packed_indicators(
            indices=[indices], ids=[ids], shapes=[shape], feature_names=["a"], depths=[5]
        )
        return ours[0], stock(indices, ids, shape, 5)

    ours, theirs = both(tf.constant(4, tf.int64))
    assert_same(ours, theirs.numpy())
    with pytest.raises(tf.errors.InvalidArgumentError):
        both(tf.zeros([count], tf.int64))
    with pytest.raises(tf.errors.InvalidArgumentError):
        stock(indices, tf.zeros([count], tf.int64), shape, 5)


def test_the_wrapper_and_the_shape_function_say_what_is_wrong():
    for features, depths in (([], []), ([sparse([[1]])], [1, 2])):
        with pytest.raises(ConfigError, match="must be lists of the same length, at least 1"):
            packed_indicators(features, depths)

    @tf.function(input_signature=[tf.SparseTensorSpec([None, None], tf.int64)])
    def count(feature):
        return packed_indicators([feature], [-1])

    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match=r"`depths\[0\]` is -1"):
        count.get_concrete_function()
    indices, ids, shape = [[0, 0]], [1], [1, 1]
    for names, depths in ((["a"], [1, 2]), ([], [1])):
        with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match="feature"):
            library.ops().picasso_packed_indicators(
                [indices], [tf.constant(ids)], [shape], feature_names=names, depths=depths
            )


def test_shapes_that_are_inferred():
    @tf.function(input_signature=[tf.SparseTensorSpec([None, None], tf.int64)])
    def count(feature):
        return packed_indicators([feature, feature], [3, 0])

    assert [shape.as_list() for shape in count.get_concrete_function().output_shapes] == [[None, 3], [None, 0]]

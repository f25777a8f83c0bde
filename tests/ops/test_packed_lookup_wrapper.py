"""The Python function `packed_lookup`, and lookups of variables that change meanwhile."""

import re

import numpy as np
import pytest
import tensorflow as tf

from graph_passes.errors import ConfigError
from picasso_tf.ops import packed_lookup
from tests.support.packed_lookup_calls import make_ids, make_table
from tests.support.threads import read_while_writing


def test_wrapper_takes_keras_variables():
    import keras

    layer = keras.layers.Embedding(7, 3)
    layer.build(None)
    found = packed_lookup([layer.embeddings], [[6, 0]])[0]
    np.testing.assert_array_equal(found, layer.embeddings.numpy()[[6, 0]])


@pytest.mark.parametrize(
    ("tables", "ids", "concat", "sentence"),
    [
        (
            [],
            [],
            False,
            "`tables` and `ids` must be lists of the same length, at least 1. Received: 0 tables and 0 ids.",
        ),
        ([(4, 2)], [[1], [2]], False, "Received: 1 tables and 2 ids."),
        ([(4, 2)], [[1.0]], False, "`ids[0]` must be int32 or int64. Received: float32."),
        ([()], [[1]], False, "`tables[0]` must have rows, so a rank of 1 or more. Received: shape ()."),
        ([(4, 2)], [3], True, "`ids[0]` must have the shape [batch] or [batch, k]. Received: ()."),
        ([(4, 0)], [[3]], True, "the rows of `tables[0]` must have a known, positive size. Received: shape (4, 0)."),
    ],
    ids=["empty", "lengths", "float_ids", "scalar_table", "scalar_ids", "empty_rows"],
)
def test_wrapper_says_what_is_wrong(tables, ids, concat, sentence):
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        packed_lookup([tf.Variable(tf.zeros(shape)) for shape in tables], ids, concat=concat)


def test_wrapper_refuses_what_is_no_variable_and_mixed_dtypes():
    with pytest.raises(
        ConfigError, match=re.escape("`tables[0]` must be a tf.Variable or a Keras variable. Received: ")
    ):
        packed_lookup([tf.zeros([4, 2])], [[1]])
    with pytest.raises(
        ConfigError, match=re.escape("must have the same floating-point dtype. Received: float32, float64.")
    ):
        packed_lookup([make_table(4, 2), make_table(4, 2, dtype=tf.float64)], [[1], [1]])
    with pytest.raises(ConfigError, match=re.escape("must have the same floating-point dtype. Received: int32.")):
        packed_lookup([tf.Variable([[1]])], [[0]])


def test_lookups_while_other_threads_write():
    tables = [tf.Variable(tf.ones([200, 32])) for _ in range(4)]
    ids = [make_ids(2000, 200, seed=i) for i in range(4)]

    def write(number):
        for table in tables:
            table.scatter_update(tf.IndexedSlices(tf.fill([100, 32], 1.0 + number), tf.range(100)))
        tables[0].assign(tables[0] * 1.0)

    def read():
        rows = packed_lookup(tables, ids, concat=True).numpy()
        assert rows.shape == (2000, 128)
        assert (rows >= 1.0).all()
        assert (rows == np.round(rows)).all()

    read_while_writing(read, write, readers=16, times=30)


def test_reads_and_writes_of_one_function_keep_their_order():
    table = tf.Variable(tf.zeros([4, 2]))

    @tf.function
    def function():
        before = packed_lookup([table], [[1, 1]])[0]
        table.scatter_add(tf.IndexedSlices([[5.0, 5.0]], [1]))
        after = packed_lookup([table], [[1, 1]])[0]
        return before, after

    before, after = function()
    assert before.numpy().tolist() == [[0.0, 0.0]] * 2
    assert after.numpy().tolist() == [[5.0, 5.0]] * 2

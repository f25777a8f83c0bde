"""The Python wrapper of the packed pooled lookup."""

import re

import numpy as np
import pytest
import tensorflow as tf

from graph_passes.errors import ConfigError
from picasso_tf.ops import packed_pooled_lookup
from tests.support.packed_lookup_calls import make_table
from tests.support.packed_pooled_lookup_calls import splits_of

RAGGED = tf.RaggedTensor.from_row_splits(*(np.zeros(3, np.int32), splits_of([1, 2])))


@pytest.mark.parametrize(
    ("tables", "ids", "arguments", "sentence"),
    [
        ([], [], {}, "lists of the same length, at least 1. Received: 0 tables and 0 ids."),
        ([(4, 2)], [RAGGED, RAGGED], {}, "Received: 1 tables and 2 ids."),
        ([()], [RAGGED], {}, "`tables[0]` must have rows, so a rank of 1 or more. Received: shape ()."),
        (
            [(4, 2)],
            [[1, 2]],
            {},
            "`ids[0]` must be a tf.SparseTensor of rank 2 or more or a tf.RaggedTensor of rank 2.",
        ),
        ([(4, 2)], [tf.ragged.constant([[[1]], []])], {}, "`ids[0]` must be a tf.SparseTensor of rank 2 or more"),
        ([(4, 2)], [tf.sparse.from_dense([1, 2])], {}, "`ids[0]` must be a tf.SparseTensor of rank 2 or more"),
        ([(4, 2)], [tf.cast(RAGGED, tf.float32)], {}, "`ids[0]` must be int32 or int64. Received: float32."),
        ([(4, 2)], [RAGGED], {"combiner": "max"}, '`combiner` must be "sum", "mean" or "sqrtn". Received: \'max\'.'),
        ([(4, 2)], [RAGGED], {"combiner": ["sum"] * 2}, "`combiner` must have one entry for each table."),
        ([(4, 2)], [RAGGED], {"default_id": [1, 2]}, "`default_id` must have one entry for each table."),
        ([(4, 2)], [RAGGED], {"default_id": -1}, "`default_id` must be None or at least 0. Received: -1."),
        ([(4, 0)], [RAGGED], {"concat": True}, "the rows of `tables[0]` must have a known, positive size."),
    ],
)
def test_wrapper_says_what_is_wrong(tables, ids, arguments, sentence):
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        packed_pooled_lookup([tf.Variable(tf.zeros(shape)) for shape in tables], ids, **arguments)


def test_wrapper_with_a_choice_for_each_table_side_by_side():
    tables = [make_table(9, 4), make_table(9, 3, seed=1)]
    other = tf.sparse.from_dense([[1, 2, 0], [0, 0, 0]])
    found = packed_pooled_lookup(
        [*tables, tables[0]],
        [RAGGED, other, other],
        combiner=["sum", "mean", "sqrtn"],
        default_id=[None, 5, None],
        concat=True,
    )
    first, second = tables[0].numpy(), tables[1].numpy()
    wanted = np.zeros((2, 11), np.float32)
    wanted[0, :4], wanted[1, :4] = first[0], first[0] + first[0]
    wanted[0, 4:7], wanted[1, 4:7] = (second[1] + second[2]) * np.float32(0.5), second[5]
    wanted[0, 7:] = (first[1] + first[2]) * (np.float32(1) / np.float32(np.sqrt(2.0)))
    assert found.numpy().tolist() == wanted.tolist()

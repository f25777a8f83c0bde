"""The gradient of the packed lookup is that of `tf.gather`."""

import numpy as np
import pytest
import tensorflow as tf

from picasso_tf.bridge import library
from picasso_tf.ops import packed_lookup
from tests.support import packed_lookup_oracle as oracle
from tests.support.packed_lookup_calls import make_ids, make_table
from tests.support.packed_lookup_oracle import Lookup, Output, Spec


def gradients(forward, tables, *, function):
    """d sum(weights * outputs) / d tables, dense."""

    def step():
        with tf.GradientTape() as tape:
            outputs = forward()
            weights = [tf.reshape(tf.range(1.0, 1.0 + tf.cast(tf.size(x), tf.float32)), tf.shape(x)) for x in outputs]
            loss = tf.add_n([tf.reduce_sum(weight * x) for weight, x in zip(weights, outputs, strict=True)])
        return [tf.convert_to_tensor(gradient) for gradient in tape.gradient(loss, tables)]

    return [x.numpy() for x in (tf.function(step) if function else step)()]


@pytest.mark.parametrize("function", [False, True], ids=["eager", "function"])
@pytest.mark.parametrize("concat", [False, True])
def test_gradient_is_that_of_gather(concat, function):
    tables = [make_table(9, 4), make_table(6, 2, 3), make_table(5)]
    order = [0, 1, 2, 0]
    ids = [make_ids((6, 2), 9), make_ids(6, 6, np.int64), make_ids((6, 1), 5), make_ids(6, 9, np.int64, seed=1)]

    def stock():
        rows = [tf.gather(tables[t], i) for t, i in zip(order, ids, strict=True)]
        return [tf.concat([tf.reshape(x, [6, -1]) for x in rows], 1)] if concat else rows

    def ours():
        result = packed_lookup([tables[t] for t in order], ids, concat=concat)
        return [result] if concat else result

    wanted = gradients(stock, tables, function=function)
    found = gradients(ours, tables, function=function)
    for one, other in zip(wanted, found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_gradient_through_columns_narrow_wrap_dense_and_an_unused_output():
    table = make_table(9, 4)
    dense = tf.constant(np.random.default_rng(1).random((6, 3)), tf.float32)
    ids = make_ids((6, 5), 9, np.int64) - np.array([0, 9, 0, 9, 0]) + np.array([2**32, 0, 0, 0, 2**32])
    lookups = (Lookup(0, 0, 0, 2, 9, True), Lookup(0, 0, 3, 1, 9, False))
    pieces = ((1, 4), (-1, 3), (0, 8), (-1, 3))
    spec = Spec(lookups, (Output(pieces, (-1, 18)), Output(((1, 0),))))
    weights = tf.reshape(tf.range(6.0 * 18), [6, 18])
    with tf.GradientTape() as tape:
        tape.watch([dense, table.handle])
        result = library.ops().picasso_packed_lookup(
            tables=[table.handle], ids=[ids], dense=[dense], **spec.attributes()
        )
        loss = tf.reduce_sum(weights * result.outputs[0])
    found = tape.gradient(loss, [table.handle, dense])
    wanted = np.zeros((9, 4), np.float32)
    np.add.at(wanted, ids[:, 3] + 9, weights[:, :4].numpy())
    np.add.at(wanted, oracle.effective_ids(lookups[0], [ids]).reshape(-1), weights[:, 7:15].numpy().reshape(-1, 4))
    np.testing.assert_array_equal(tf.convert_to_tensor(found[0]), wanted)
    np.testing.assert_array_equal(found[1], weights[:, 4:7] + weights[:, 15:])


def test_gradient_where_nothing_was_looked_up():
    table = make_table(9, 4)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(packed_lookup([table], [np.zeros([0], np.int32)], concat=True))
    gradient = tape.gradient(loss, table)
    assert gradient.values.shape == (0, 4)
    assert gradient.indices.shape == (0,)

"""Dimensions that shape arithmetic states, against TensorFlow's own values."""

import numpy as np
import pytest
import tensorflow as tf

from graph_passes.analysis.stated_dims import stated_dims
from graph_passes.ir import Graph, TensorRef

SHAPE = (5, 3, 8)


def dims_of(arithmetic) -> tuple[int | None, ...] | None:
    """What is stated of `arithmetic(x, v)`, x of shape [?, 3, 8] and v a vector of two numbers; it must be true."""
    inputs = [tf.TensorSpec([None, 3, 8], tf.float32), tf.TensorSpec([2], tf.int32)]
    concrete = tf.function(lambda x, v: tf.identity(arithmetic(x, v))).get_concrete_function(*inputs)
    found = Graph.from_graph_def(concrete.graph.as_graph_def(add_shapes=True))
    op = concrete.outputs[0].op.inputs[0]
    dims = stated_dims(found, TensorRef(op.op.name, op.value_index))
    values = concrete(tf.zeros(SHAPE), tf.constant([5, 7]))
    if dims is not None:
        assert len(dims) == len(values)
        assert all(stated in (None, value) for stated, value in zip(dims, values.numpy(), strict=True))
    return dims


@pytest.mark.parametrize(
    ("arithmetic", "wanted"),
    [
        (lambda x, v: tf.shape(x), (None, 3, 8)),
        (lambda x, v: tf.shape_n([x, tf.transpose(x)])[1], (8, 3, None)),
        (lambda x, v: tf.slice(tf.shape(x), [1], [-1]), (3, 8)),
        (lambda x, v: tf.slice(tf.shape(x), [0], [2]), (None, 3)),
        (lambda x, v: tf.shape(x)[1:], (3, 8)),
        (lambda x, v: tf.shape(x)[:-1], (None, 3)),
        (lambda x, v: tf.shape(x)[::-2], (8, None)),
        (lambda x, v: tf.concat([tf.slice(v, [0], [1]), tf.slice(tf.shape(x), [2], [1])], 0), (None, 8)),
        (lambda x, v: tf.concat([[4], tf.shape(x)], 0), (4, None, 3, 8)),
        (lambda x, v: tf.cast(tf.shape(x), tf.int64), (None, 3, 8)),
        (lambda x, v: tf.stack([tf.shape(x)[0], 8]), (None, 8)),
        (lambda x, v: tf.stack([[1, 2], tf.shape(x)[1:]])[0], (None, None)),
        (lambda x, v: v, (None, None)),
        (lambda x, v: v + 1, (None, None)),
        (lambda x, v: tf.constant([2, 3]), (2, 3)),
        (lambda x, v: tf.boolean_mask(tf.shape(x), tf.shape(x) > 4), None),
    ],
)
def test_what_is_stated_is_true(arithmetic, wanted) -> None:
    assert dims_of(arithmetic) == wanted


def test_a_length_that_only_a_part_lacks_makes_all_unknown() -> None:
    assert dims_of(lambda x, v: tf.concat([tf.boolean_mask(v, v > 6), [8]], 0)) is None


def test_minus_one_of_a_constant_is_unknown() -> None:
    concrete = tf.function(lambda: tf.constant(np.array([-1, 4]), name="shape")).get_concrete_function()
    found = Graph.from_graph_def(concrete.graph.as_graph_def(add_shapes=True))
    assert stated_dims(found, TensorRef("shape")) == (None, 4)

"""Every front end's graphs reach Python, and what Python returns is what runs."""

import numpy as np
import pytest
import tensorflow as tf

from tests.bridge.conftest import Plugin, replace_constant
from tests.bridge.models import IDS, lookup_times

EMBEDDING_OPS = {"ResourceGather", "GatherV2"}


def test_function_runs_what_python_returns(plugin: Plugin):
    plugin.answer = lambda request: replace_constant(request, 2.0, 10.0)
    compute, sums = lookup_times(2.0)
    np.testing.assert_array_equal(compute(), sums * 10)
    request = plugin.requests[0]
    assert request.device_type == "CPU"
    assert request.id.startswith("__inference_")
    assert request.feeds == ()
    assert request.fetches
    assert set(request.fetches) <= set(request.preserve)
    assert list(request.preserve) == sorted(request.preserve)
    assert request.allow_pruning
    assert request.allow_non_differentiable


def test_none_leaves_the_graph_as_it_is(plugin: Plugin):
    compute, sums = lookup_times(2.0)
    np.testing.assert_array_equal(compute(), sums * 2)
    assert len(plugin.requests) == 1  # TensorFlow makes two rounds over a graph, of which the first is left out


def test_keras_fit(plugin: Plugin):
    model = tf.keras.Sequential([tf.keras.layers.Embedding(10, 4), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse", jit_compile=False)
    model.fit(np.arange(10).reshape(10, 1), np.ones((10, 1)), batch_size=5, verbose=0)
    assert plugin.ops() & EMBEDDING_OPS
    assert any("Update" in op or "Scatter" in op or "Assign" in op for op in plugin.ops()), "the train step itself"


def test_v1_session(plugin: Plugin):
    plugin.answer = lambda request: replace_constant(request, 2.0, 10.0)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        table = tf.compat.v1.get_variable("table", [5, 4], initializer=tf.compat.v1.ones_initializer())
        ids = tf.compat.v1.placeholder(tf.int64, [None], name="ids")
        total = tf.reduce_sum(tf.nn.embedding_lookup(table, ids), axis=1) * 2.0
        session.run(tf.compat.v1.global_variables_initializer())
        np.testing.assert_array_equal(session.run(total, {ids: IDS}), np.full(3, 40.0))
    assert any(request.feeds for request in plugin.requests)


def test_option_switches_a_traced_function(plugin: Plugin):
    plugin.answer = lambda request: replace_constant(request, 2.0, 10.0)
    compute, sums = lookup_times(2.0)
    for on, factor in ((True, 10), (False, 2), (True, 10)):
        plugin.switch(on)
        np.testing.assert_array_equal(compute(), sums * factor)


def test_loaded_saved_model(plugin: Plugin, tmp_path):
    module = tf.Module()
    module.table = tf.Variable(np.ones((5, 4), np.float32))
    module.compute = tf.function(
        lambda ids: tf.gather(module.table, ids) * 2.0, input_signature=[tf.TensorSpec([None], tf.int64)]
    )
    tf.saved_model.save(module, str(tmp_path))
    plugin.answer = lambda request: replace_constant(request, 2.0, 10.0)
    loaded = tf.saved_model.load(str(tmp_path))
    np.testing.assert_array_equal(loaded.compute(tf.constant(IDS)), np.full((3, 4), 10.0))


def test_a_later_install_replaces_the_function(plugin: Plugin):
    from picasso_tf.bridge import callback

    callback.install(lambda request: replace_constant(request, 2.0, 5.0))
    compute, sums = lookup_times(2.0)
    np.testing.assert_array_equal(compute(), sums * 5)
    assert plugin.requests == []


@pytest.mark.parametrize("read", ["Identity", "Cast", "ReadVariableOp"])
def test_gate_lets_a_gather_from_a_table_read_through(plugin: Plugin, read: str):
    table = tf.Variable(np.ones((5, 4), np.float32))
    source = {
        "Identity": lambda: tf.raw_ops.Identity(input=tf.raw_ops.Cast(x=table.read_value(), DstT=tf.float64)),
        "Cast": lambda: tf.raw_ops.Cast(x=table.read_value(), DstT=tf.float64),
        "ReadVariableOp": table.read_value,
    }[read]
    tf.function(lambda ids: tf.raw_ops.GatherV2(params=source(), indices=ids, axis=0) * 3)(tf.constant(IDS))
    assert plugin.requests


def test_gate_keeps_other_graphs_out(plugin: Plugin):
    weights = tf.Variable(np.ones((4, 4), np.float32))
    inputs = tf.ones((3, 4))

    @tf.function
    def compute(x):
        hidden = tf.nn.relu(x @ weights)
        return tf.gather(hidden * 2, [0, 1]) + tf.reduce_sum(weights)  # a gather, but from a computed tensor

    np.testing.assert_array_equal(compute(inputs), np.full((2, 4), 24.0))
    assert plugin.requests == []

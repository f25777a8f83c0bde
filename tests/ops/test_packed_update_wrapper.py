"""The Python functions `packed_sparse_update` and `packed_dense_update`, and updates while others read or write."""

import hashlib
import os
import re
import subprocess
import sys
import threading

import numpy as np
import pytest
import tensorflow as tf

from graph_passes.errors import ConfigError
from picasso_tf.ops import UpdateTable, packed_dense_update, packed_sparse_update

SGD = ["mul g0 p0", "scatter_sub s0 v0"]
ADAGRAD = [
    *["square g0", "scatter_add s1 v0", "mul g0 p0"],
    *["add v1 p1", "sqrt v3", "div v2 v4", "scatter_sub s0 v5"],
]


def test_sparse_update_of_keras_variables_with_shared_ids():
    import keras

    layer = keras.layers.Embedding(5, 2, embeddings_initializer="ones")
    layer.build(None)
    other = tf.Variable(tf.zeros([5, 1]))
    ids = tf.constant([[0, 4], [4, 4]])
    tables = [
        UpdateTable([layer.embeddings], [ids], [[tf.ones([2, 2, 2])]], parameters=[0.5]),
        UpdateTable([other], [ids, [1]], [[tf.ones([2, 2, 1])], [tf.ones([1, 1])]], parameters=[2]),
    ]
    assert packed_sparse_update(tables, SGD, ["v1"]) is None
    assert layer.embeddings.numpy().tolist() == [[0.5, 0.5], [1, 1], [1, 1], [1, 1], [-0.5, -0.5]]
    assert other.numpy().ravel().tolist() == [-2, -2, 0, 0, -6]


def test_dense_update_in_a_function_with_table_gradients():
    weights, momentum = tf.Variable([1.0, 2.0]), tf.Variable([0.5, 0.5])
    table = UpdateTable([weights, momentum], table_gradients=[tf.constant([1.0, -1.0])], parameters=[0.5])

    @tf.function
    def step():
        packed_dense_update([table], ["mul s1 p0", "add v0 t0", "sub s0 v1"], ["v2", "v1"], rule="momentum")

    step()
    assert weights.numpy().tolist() == [-0.25, 2.75]
    assert momentum.numpy().tolist() == [1.25, -0.75]


def table(**changes):
    fields = {"states": [tf.Variable(tf.ones([3, 2]))], "ids": [[1]], "gradients": [[[[1.0, 1.0]]]], "parameters": [1]}
    return UpdateTable(**fields | changes)


@pytest.mark.parametrize(
    ("tables", "sentence"),
    [
        (list, "`tables` must hold at least one table. Received: none."),
        (lambda: [table(states=[])], "`tables[0].states` must hold at least one variable. Received: none."),
        (lambda: [table(states=[3])], "`tables[0].states[0]` must be a tf.Variable or a Keras variable. Received: 3."),
        (
            lambda: [table(), table(parameters=[])],
            "All tables must have as many parameters. Received: 1 and, in `tables[1]`, 0.",
        ),
        (lambda: [table(ids=[])], "must have a list of gradients for each of its ids. Received: 0 ids and 1 lists."),
        (
            lambda: [table(), table(gradients=[[]])],
            "All segments must have as many gradients. Received: 1 and, in `tables[1].gradients[0]`, 0.",
        ),
        (lambda: [table(ids=[[1.0]])], "`tables[0].ids[0]` must be int32 or int64. Received: float32."),
        (
            lambda: [table(), table(states=[tf.Variable(tf.ones([3, 2], tf.float64))])],
            "All states must have the same floating-point dtype. Received: float32, float64.",
        ),
        (
            lambda: [table(states=[tf.Variable([1])])],
            "All states must have the same floating-point dtype. Received: int32.",
        ),
    ],
)
def test_wrapper_says_what_is_wrong(tables, sentence):
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        packed_sparse_update(tables(), SGD, ["v1"])


@pytest.mark.parametrize("function", [packed_sparse_update, packed_dense_update])
def test_examples_in_the_docstrings(function):
    import doctest

    names = {"tf": tf, "UpdateTable": UpdateTable, function.__name__: function}
    test = doctest.DocTestFinder().find(function, globs=names)[0]
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0


def address(variable):
    """Of the buffer that a variable has now."""
    read = tf.raw_ops.ReadVariableOp(resource=variable.handle, dtype=variable.dtype)
    return np.asarray(memoryview(read)).ctypes.data


@pytest.mark.parametrize("function", [packed_sparse_update, packed_dense_update])
def test_an_update_in_place_keeps_the_buffer_and_a_snapshot_keeps_its_values(function):
    variable = tf.Variable(tf.ones([64, 8]))
    one = table(states=[variable], gradients=[[tf.ones([1, 8])]])
    function([one], SGD, ["v1"])
    where = address(variable)
    function([one], SGD, ["v1"])
    assert address(variable) == where
    snapshot = variable.read_value()
    view = variable.value()
    function([one], SGD, ["v1"])
    assert snapshot[1].numpy().tolist() == view[1].numpy().tolist() == [-1.0] * 8
    assert variable[1].numpy().tolist() == [-2.0] * 8


def test_updates_and_lookups_on_many_threads_lose_nothing():
    variables = [tf.Variable(tf.zeros([200, 16])) for _ in range(4)]
    ids = np.arange(200, dtype=np.int32)
    steps, failures = 30, []

    def work(order):
        try:
            tables = [UpdateTable([variables[i]], [ids], [[tf.ones([200, 16])]], parameters=[-1.0]) for i in order]
            for _ in range(steps):
                packed_sparse_update(tables, SGD, ["v1"])
                for variable in variables:
                    rows = tf.gather(variable, ids).numpy()
                    assert (rows == rows[0, 0]).all()
        except Exception as error:  # told to the main thread
            failures.append(error)

    threads = [threading.Thread(target=work, args=(order,)) for order in ([0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    for variable in variables:
        assert (variable.numpy() == 3 * steps).all()


def digest():
    """Of tables after some updates with denormal, hot and lonely rows."""
    random = np.random.default_rng(0)
    total = hashlib.sha256()
    for function in (packed_sparse_update, packed_dense_update):
        tables = []
        for rows, width in ((5000, 8), (300, 33), (70000, 1), (40, 64)):
            ids = np.minimum(random.zipf(1.3, 20000), rows) - 1
            values = random.standard_normal((2, rows, width)).astype(np.float32)
            values[:, ::7] *= 1e-39
            states = [tf.Variable(values[0]), tf.Variable(np.abs(values[1]))]
            gradient = random.standard_normal((20000, width)).astype(np.float32)
            tables.append(UpdateTable(states, [ids], [[gradient]], parameters=[0.1, 1e-7]))
        for _ in range(3):
            function(tables, ADAGRAD, ["v6", "v1"])
        for one in tables:
            for state in one.states:
                total.update(state.numpy().tobytes())
    return total.hexdigest()


def test_the_result_does_not_depend_on_the_number_of_threads():
    command = [sys.executable, "-c", "from tests.ops.test_packed_update_wrapper import digest; print(digest())"]
    found = {digest()}
    for threads in ("1", "2", "7"):
        environment = os.environ | {"TF_NUM_INTRAOP_THREADS": threads, "TF_CPP_MIN_LOG_LEVEL": "3"}
        result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        found.add(result.stdout.split()[-1])
    assert len(found) == 1

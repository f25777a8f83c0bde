"""Cases that once came out different from stock TensorFlow, or did not come out at all."""

import subprocess
import sys
import textwrap

import keras
import numpy as np
import pytest
import tensorflow as tf

import picasso_tf
from tests.equivalence.training import compare

ROWS, FIELDS = 20, 12


def _tables(width=4):
    generator = np.random.default_rng(3)
    return [tf.Variable(generator.normal(size=(ROWS, width)).astype("f")) for _ in range(FIELDS)]


def _ids():
    return tf.constant(np.random.default_rng(4).integers(0, ROWS, 32).astype("int32"))


SUMS = {
    "twelve": lambda vectors: sum(vectors[1:], vectors[0]),
    "add_n": tf.add_n,
    "with a sigmoid": lambda vectors: vectors[0] + vectors[1] + tf.sigmoid(vectors[2]) + vectors[2],
    "scaled squares": lambda vectors: tf.reduce_sum((vectors[0] * vectors[1]) ** 2) * 0.01 + tf.add_n(vectors[2:]),
}


@pytest.mark.parametrize("name", SUMS)
def test_sums_of_many_lookups_add_in_stock_s_order(name):
    """TensorFlow sorts the inputs of sums by name, so names must not change before it does."""

    def run():
        tables = _tables()

        @tf.function
        def total(ids):
            return SUMS[name]([tf.gather(table, ids) for table in tables])

        return {"total": total(_ids()).numpy()}

    report = compare(run)
    assert sum(graph.lookups_packed for graph in report.graphs) >= 3


def test_a_keras_model_that_adds_embeddings_predicts_the_same():
    def run():
        keras.backend.clear_session()
        keras.utils.set_random_seed(2)
        inputs = [keras.Input((1,), dtype="int32") for _ in range(FIELDS)]
        added = keras.layers.Add()([keras.layers.Embedding(ROWS, 8)(ids) for ids in inputs])
        model = keras.Model(inputs, keras.layers.Dense(1)(keras.layers.Flatten()(added)))
        model.compile("adagrad", "mse")
        x = [np.random.default_rng(i).integers(0, ROWS, (64, 1)).astype("int32") for i in range(FIELDS)]
        losses = model.fit(x, np.ones((64, 1), "f"), epochs=3, shuffle=False, verbose=0).history["loss"]
        return {"loss": np.array(losses), "predictions": model.predict(x, verbose=0)}

    compare(run)


def test_equal_lookups_keep_a_buffer_each():
    """AddN works in place on an input that nobody else holds, so it must find as many of them as in stock."""

    def run():
        first, second = _tables()[:2]

        @tf.function
        def total(ids, dense):
            return tf.add_n([first.sparse_read(ids), first.sparse_read(ids), tf.sqrt(dense), second.sparse_read(ids)])

        return {"total": total(_ids(), tf.random.stateless_uniform((32, 4), (1, 2))).numpy()}

    compare(run)


def test_a_read_stays_before_python_code_that_writes():
    def run():
        table = _tables()[0]

        def write(ids):
            table.assign_add(tf.ones((ROWS, 4)))
            return ids

        @tf.function
        def step(ids):
            before = table.read_value()
            with tf.control_dependencies([before]):
                ids = tf.py_function(write, [ids], tf.int32)
            return tf.gather(before, ids)

        return {"rows": step(_ids()).numpy()}

    report = compare(run)
    assert [declined.code for graph in report.graphs for declined in graph.declined] == ["ids_depend_on_write"]


def test_ids_of_int16_are_left_alone():
    def run():
        table = _tables()[0]
        gather = tf.function(lambda ids: tf.raw_ops.GatherV2(params=table.read_value(), indices=ids, axis=0))
        return {"rows": gather(tf.constant([3, 1], tf.int16)).numpy()}

    report = compare(run)
    assert [declined.code for graph in report.graphs for declined in graph.declined] == ["ids_dtype"]


@pytest.mark.timeout(60)
def test_a_lookup_behind_a_queue_does_not_wait_for_itself():
    def run():
        with tf.Graph().as_default():
            v1 = tf.compat.v1
            tables = [v1.get_variable(f"t{i}", initializer=np.eye(4, dtype="f"), use_resource=True) for i in range(2)]
            ids = v1.placeholder(tf.int32, [2])
            queue = tf.queue.FIFOQueue(1, [tf.int32], [[2]])
            put = queue.enqueue([tf.cast(tf.argmax(tf.nn.embedding_lookup(tables[0], ids), 1), tf.int32)])
            rows = tf.nn.embedding_lookup(tables[1], queue.dequeue())
            options = v1.ConfigProto()
            options.graph_options.rewrite_options.use_plugin_optimizers = 1 if picasso_tf.is_enabled() else 2
            with v1.Session(config=options) as session:
                session.run(v1.global_variables_initializer())
                return {"rows": session.run([rows, put], {ids: [2, 3]})[0]}

    compare(run)


SIGNAL_SCRIPT = """
import os, signal, sys
import tensorflow as tf
import picasso_tf
from picasso_tf import rewriter

def stopped(*_):
    sys.exit(7)

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
if sys.argv[1] == "TERM":
    signal.signal(signal.SIGTERM, stopped)
original = rewriter.Rewriter._rewritten

def interrupted(self, request):
    os.kill(os.getpid(), getattr(signal, "SIG" + sys.argv[1]))
    return original(self, request)

rewriter.Rewriter._rewritten = interrupted
picasso_tf.enable()
table = tf.Variable(tf.ones((4, 2)))
try:
    tf.function(lambda ids: tf.gather(table, ids))(tf.constant([1]))
    sum(range(100))
except KeyboardInterrupt:
    sys.exit(9)
sys.exit(1)
"""


@pytest.mark.parametrize(("name", "code"), [("INT", 9), ("TERM", 7)])
def test_a_signal_during_a_rewrite_still_ends_the_program(tmp_path, name, code):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SIGNAL_SCRIPT))
    done = subprocess.run([sys.executable, str(script), name], capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stderr

"""Keras 3 and raw TensorFlow with XLA on: the lookups leave the compiled call, the numbers stay.

XLA fuses what TensorFlow computes op by op, so that last bits differ between the two already; each test states how far
it may be from either. Sums over a batch of 64 and the 20 steps of a run leave a relative error of some 1e-6.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf

import picasso_tf
from tests.equivalence.training import ROWS, train_keras

TOLERANCE = {"rtol": 2e-5, "atol": 2e-6}
LOOKUPS = len(ROWS) + 1  # one field more, which shares a table


@pytest.fixture(autouse=True)
def off_afterwards():
    yield
    if picasso_tf.is_enabled():
        picasso_tf.disable()


def with_plugin(run):
    """What `run` returns with the plugin on, and the report."""
    picasso_tf.enable(verify=True)
    try:
        result = run()
        report = picasso_tf.report()
    finally:
        picasso_tf.disable()
    assert all(not graph.failures for graph in report.graphs)
    return result, report


def close(found, expected, **tolerance) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, err_msg=name, **{**TOLERANCE, **tolerance})


def opened(report) -> list:
    return [graph for graph in report.graphs if graph.rewritten.get("xla_open")]


def compiled(report) -> list:
    return [graph for graph in report.graphs if graph.rewritten.get("xla_close")]


@pytest.mark.parametrize("optimizer", ["SGD", "Adagrad", "Adam"])
def test_keras_trains_and_predicts_as_with_xla_and_as_without(optimizer):
    ours, report = with_plugin(lambda: train_keras(keras, optimizer, jit_compile=True))
    assert (len(opened(report)), len(compiled(report))) == (2, 2)  # fit and predict
    for graph in compiled(report):
        assert graph.lookups_packed >= LOOKUPS
        assert not graph.declined
    tolerance = {"rtol": 1e-3, "atol": 1e-4} if optimizer == "Adam" else {}  # it divides by roots of tiny gradients
    close(ours, train_keras(keras, optimizer, jit_compile=True), **tolerance)
    close(ours, train_keras(keras, optimizer, jit_compile=False), **tolerance)


def test_several_steps_per_execution_are_opened_too():
    run = lambda: train_keras(keras, "SGD", jit_compile=True, steps_per_execution=4)  # noqa: E731
    ours, report = with_plugin(run)
    assert len(compiled(report)) == 2
    close(ours, run())


def _tables():
    generator = np.random.default_rng(3)
    return [tf.Variable(generator.normal(size=(40, width)).astype("f")) for width in (4, 8, 4)]


def _step(compiled_step, batches=(16, 16, 7)):
    """Outputs of a few calls of a function that calls a compiled one, and the tables after them."""
    tables = _tables()
    kernel = tf.Variable(np.random.default_rng(4).normal(size=(16, 16)).astype("f"))
    inner = tf.function(lambda ids: compiled_step(tables, kernel, ids), jit_compile=True)
    outer = tf.function(lambda ids: inner(ids))
    found = {}
    for number, batch in enumerate(batches):
        ids = tf.constant(np.random.default_rng(number).integers(0, 40, (3, batch)).astype("int32"))
        found[f"output {number}"] = outer(ids).numpy()
    return found | {f"variable {number}": v.numpy() for number, v in enumerate([*tables, kernel])}


def _forward(tables, kernel, ids):
    rows = tf.concat([tf.gather(table, ids[number]) for number, table in enumerate(tables)], axis=1)
    return tf.nn.relu(rows @ kernel) @ kernel


def _train(tables, kernel, ids):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(_forward(tables, kernel, ids) ** 2)
    gradients = tape.gradient(loss, [*tables, kernel])
    for table, gradient in zip(tables, gradients, strict=False):
        table.scatter_sub(tf.IndexedSlices(gradient.values * 0.1, gradient.indices))
    kernel.assign_sub(gradients[-1] * 0.1)
    return loss


def _in_a_branch(tables, kernel, ids):
    loss = tf.cond(ids[0, 0] > 5, lambda: _train(tables, kernel, ids), lambda: tf.reduce_sum(kernel))
    return loss + tf.reduce_sum(_forward(tables, kernel, ids))


def _reads_after_the_write(tables, kernel, ids):
    loss = _train(tables, kernel, ids)
    return loss + tf.reduce_sum(_forward(tables, kernel, ids)) + tf.reduce_sum(kernel)


def _calls_a_compiled_function(tables, kernel, ids):
    inner = tf.function(lambda: _forward(tables, kernel, ids), jit_compile=True)
    return tf.reduce_sum(inner() @ kernel) + _train(tables, kernel, ids)


def _loops(tables, kernel, ids):
    rows = _forward(tables, kernel, ids)
    _, state = tf.while_loop(lambda i, _: i < 4, lambda i, state: (i + 1, tf.tanh(state @ kernel)), [0, rows])
    return state


def _looks_up_in_a_loop(tables, kernel, ids):
    def body(i, total):
        return i + 1, total + tf.reduce_sum(tf.gather(tables[0], (ids[0] + i) % 40))

    return tf.while_loop(lambda i, _: i < 3, body, [0, 0.0])[1] + tf.reduce_sum(_forward(tables, kernel, ids))


STEPS = [_forward, _train, _in_a_branch, _reads_after_the_write, _calls_a_compiled_function, _loops]


@pytest.mark.parametrize("step", [*STEPS, _looks_up_in_a_loop], ids=lambda step: step.__name__)
def test_functions_of_all_kinds_give_what_xla_gives_also_for_a_new_batch(step):
    ours, report = with_plugin(lambda: _step(step))
    assert opened(report)
    assert compiled(report)
    close(ours, _step(step), rtol=1e-4, atol=1e-5)


def test_a_function_that_xla_cannot_compile_runs():
    def build():
        keys, values = tf.constant(["a", "b", "c"]), tf.constant([2, 5, 7])
        names = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values), 0)
        tables, kernel = _tables(), tf.ones((16, 16)) / 16

        @tf.function(jit_compile=True)
        def compiled_step(words):
            ids = names.lookup(words)
            return _forward(tables, kernel, tf.stack([ids, ids, ids]))

        return tf.function(lambda words: compiled_step(words)), tables, kernel

    words = tf.constant(["b", "z", "c"])
    with pytest.raises(tf.errors.InvalidArgumentError, match="unsupported operations"):
        build()[0](words)

    def run():
        step, tables, kernel = build()
        ids = tf.constant([[5, 0, 7]] * 3)
        return {"found": step(words).numpy(), "expected": _forward(tables, kernel, ids).numpy()}

    ours, report = with_plugin(run)
    assert opened(report)
    np.testing.assert_allclose(ours["found"], ours["expected"], **TOLERANCE)


def test_a_function_without_embeddings_stays_compiled():
    def run():
        kernel = tf.Variable(tf.ones((4, 4)))
        inner = tf.function(lambda x: tf.nn.relu(x @ kernel) @ kernel, jit_compile=True)
        return {"out": tf.function(lambda x: inner(x))(tf.ones((2, 4))).numpy()}

    ours, report = with_plugin(run)
    assert not opened(report)
    assert ours["out"].tobytes() == run()["out"].tobytes()


def test_the_option_turns_it_off_at_once():
    tables, kernel = _tables(), tf.ones((16, 16)) / 16
    inner = tf.function(lambda ids: _forward(tables, kernel, ids), jit_compile=True)
    outer = tf.function(lambda ids: inner(ids))
    ids = tf.constant([[1, 2], [3, 4], [5, 6]])
    stock = outer(ids).numpy()
    picasso_tf.enable(verify=True)
    np.testing.assert_allclose(outer(ids).numpy(), stock, **TOLERANCE)
    assert opened(picasso_tf.report())
    tf.config.optimizer.set_experimental_options({"use_plugin_optimizers": False})
    assert outer(ids).numpy().tobytes() == stock.tobytes()


def test_without_the_pass_the_call_stays_and_the_report_says_so():
    def run():
        return _step(_train)

    stock = run()
    picasso_tf.enable(passes="canonicalize, embedding_packing, dead_nodes")
    ours = run()
    codes = {declined.code for graph in picasso_tf.report().graphs for declined in graph.declined}
    assert codes == {"compiled_by_xla"}
    for name, value in stock.items():
        assert ours[name].tobytes() == value.tobytes(), name


def test_a_saved_model_holds_the_compiled_function_as_it_was(tmp_path):
    tables, kernel = _tables(), tf.Variable(tf.ones((16, 16)) / 16)
    module = tf.Module()
    module.variables_of = [*tables, kernel]
    inner = tf.function(lambda ids: _forward(tables, kernel, ids), jit_compile=True)
    module.serve = tf.function(lambda ids: inner(ids), input_signature=[tf.TensorSpec((3, None), tf.int32)])
    ids = tf.constant([[1, 2], [3, 4], [5, 6]])
    picasso_tf.enable(verify=True)
    expected = module.serve(ids).numpy()
    tf.saved_model.save(module, str(tmp_path))
    assert b"icasso" not in (tmp_path / "saved_model.pb").read_bytes()
    loaded = tf.saved_model.load(str(tmp_path))
    np.testing.assert_allclose(loaded.serve(ids).numpy(), expected, **TOLERANCE)

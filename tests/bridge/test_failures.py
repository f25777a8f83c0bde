"""Whatever goes wrong in Python, the original graph runs, and one warning says so."""

import logging

import numpy as np
import pytest
import tensorflow as tf

from graph_passes.errors import ConfigError
from picasso_tf.bridge import callback, library
from tests.bridge.conftest import Plugin
from tests.bridge.models import lookup_times


@pytest.mark.parametrize("error", [ValueError("no such luck"), SystemExit("no such luck")])
def test_an_exception_gives_the_original_graph_and_one_warning(plugin: Plugin, caplog, error: BaseException):
    def fail(request: callback.GraphRequest) -> bytes:
        raise error

    plugin.answer = fail
    compute, sums = lookup_times(2.0)
    np.testing.assert_array_equal(compute(), sums * 2)
    assert len(plugin.requests) == 1
    (record,) = [record for record in caplog.records if record.name == "picasso_tf"]
    assert record.levelno == logging.WARNING
    assert f"'{plugin.requests[0].id}' runs as it was ({type(error).__name__}: no such luck)" in record.getMessage()


def test_another_graph_gives_another_warning(plugin: Plugin, caplog):
    plugin.answer = lambda request: 1 / 0
    for _ in range(2):
        lookup_times(2.0)[0]()
    assert len({record.getMessage() for record in caplog.records if record.name == "picasso_tf"}) == 2


@pytest.mark.parametrize("answer", [b"garbage", b"", b"\x00" * 1000, b"\x0a\x05ab"], ids=repr)
def test_bytes_that_are_no_graph_give_the_original_graph(plugin: Plugin, answer: bytes):
    plugin.answer = lambda request: answer[:20]
    compute, sums = lookup_times(2.0)
    np.testing.assert_array_equal(compute(), sums * 2)
    assert len(plugin.requests) == 1


def test_an_answer_of_a_wrong_type_gives_one_warning(plugin: Plugin, caplog):
    plugin.answer = lambda request: "text"
    compute, sums = lookup_times(2.0)
    np.testing.assert_array_equal(compute(), sums * 2)
    assert [record.name for record in caplog.records].count("picasso_tf") == 1


def test_a_pass_may_run_tensorflow_itself(plugin: Plugin):
    inner, inner_sums = lookup_times(3.0)
    results = []
    plugin.answer = lambda request: results.append(inner().numpy())
    compute, sums = lookup_times(2.0)
    np.testing.assert_array_equal(compute(), sums * 2)
    assert len(plugin.requests) == 1, "the inner function must not come back"
    np.testing.assert_array_equal(results[0], inner_sums * 3)


def test_a_graph_above_the_limit_is_left_alone(plugin: Plugin, caplog):
    lib = library.lib()
    lib.picasso_set_max_graph_bytes(100)
    try:
        compute, sums = lookup_times(2.0)
        np.testing.assert_array_equal(compute(), sums * 2)
    finally:
        lib.picasso_set_max_graph_bytes(2**31 - 1)
    assert plugin.requests == []
    (warning,) = [record.getMessage() for record in caplog.records if record.name == "picasso_tf"]
    assert "bytes are more than a protobuf message holds" in warning


def test_an_error_of_the_graph_itself_is_the_users(plugin: Plugin):
    table = tf.Variable(np.ones((5, 4), np.float32))
    compute = tf.function(lambda ids: tf.gather(table, ids) * 2)
    with pytest.raises(tf.errors.InvalidArgumentError, match="9"):
        compute(tf.constant([9]))


def test_another_plugin_is_named_in_the_error(monkeypatch):
    class Taken:
        def picasso_register(self) -> int:
            return 1

    monkeypatch.setattr(library, "lib", Taken)
    with pytest.raises(ConfigError, match="Another TensorFlow plugin optimizes graphs"):
        callback._bridge_once.__wrapped__()

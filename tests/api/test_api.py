"""enable, disable, report, explain, optimize_graph: what they do and how they refuse."""

import json
import logging
from dataclasses import dataclass
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import text_format
from tensorflow.core.framework import graph_pb2

import picasso_tf
from graph_passes.ir.op_defs import PACKED_LOOKUP
from graph_passes.pipeline.base import Pass, PassReport, PassResult
from graph_passes.pipeline.reproducer import replay
from graph_passes.registry import BY_NAME, PASSES


@pytest.fixture(autouse=True)
def _switched_off():
    yield
    picasso_tf.enable(picasso_tf.Config())
    picasso_tf.disable()


def _model():
    """Two tables, and the function that looks both up."""
    tables = [
        tf.Variable(np.arange(40, dtype="f").reshape(10, 4)),
        tf.Variable(np.arange(20, dtype="f").reshape(10, 2)),
    ]

    @tf.function
    def lookups(ids):
        return tf.concat([tf.gather(tf.convert_to_tensor(table), ids) for table in tables], axis=1)

    return tables, lookups


IDS = tf.constant([1, 3, 3])
EXPECTED = [[4, 5, 6, 7, 2, 3], [12, 13, 14, 15, 6, 7], [12, 13, 14, 15, 6, 7]]


def test_a_function_traced_before_is_rewritten_and_the_option_turns_it_off_and_on():
    tables, lookups = _model()
    assert lookups(IDS).numpy().tolist() == EXPECTED
    picasso_tf.enable()
    assert picasso_tf.is_enabled()
    assert lookups(IDS).numpy().tolist() == EXPECTED
    assert [graph.lookups_packed for graph in picasso_tf.report().graphs] == [2]

    tf.config.optimizer.set_experimental_options({"use_plugin_optimizers": False})
    assert not picasso_tf.is_enabled()
    with pytest.raises(tf.errors.InvalidArgumentError) as stock:
        lookups(tf.constant([10]))
    assert "picasso/embedding_packing" not in str(stock.value)
    tf.config.optimizer.set_experimental_options({"use_plugin_optimizers": True})
    with pytest.raises(tf.errors.InvalidArgumentError) as ours:
        lookups(tf.constant([10]))
    assert "node picasso/embedding_packing" in str(ours.value)
    assert tables[0].shape == (10, 4)


def test_disable_before_enable_is_one_sentence_and_a_second_disable_is_nothing(monkeypatch):
    picasso_tf.enable()
    picasso_tf.disable()
    picasso_tf.disable()
    monkeypatch.setattr(picasso_tf.api._State, "rewriter", None)
    with pytest.raises(picasso_tf.ConfigError, match=r"^picasso_tf.disable\(\) was called, but"):
        picasso_tf.disable()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dump_dri": "x"}, "There is no option `dump_dri`. Did you mean `dump_dir`?"),
        ({"max_group_size": 1}, "`max_group_size` must be an int >= 2. Received: `max_group_size=1`."),
        ({"max_rewrites": -1}, "`max_rewrites` must be an int >= 0."),
        ({"verify": "yes"}, "`verify` must be True or False."),
        ({"passes": "nonsense"}, "There is no pass 'nonsense'. Known passes: xla_open, canonicalize,"),
        ({"passes": "embedding_packing{max_size=3}"}, "Pass 'embedding_packing' cannot be made with"),
        ({"dump_dir": 3}, "`dump_dir` must be a string."),
    ],
)
def test_wrong_options_are_refused_and_nothing_is_switched_on(options, message):
    with pytest.raises(picasso_tf.ConfigError) as error:
        picasso_tf.enable(**options)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert not picasso_tf.is_enabled()


def test_a_dump_folder_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(picasso_tf.ConfigError, match=r"^`dump_dir` cannot be written: .*file/dumps"):
        picasso_tf.enable(dump_dir=tmp_path / "file" / "dumps")


def test_the_environment_gives_options_and_arguments_win(monkeypatch):
    monkeypatch.setenv("PICASSO_MAX_GROUP_SIZE", "7")
    monkeypatch.setenv("PICASSO_VERIFY", "true")
    config = picasso_tf.config.make_config(None, {"max_group_size": 3})
    assert (config.max_group_size, config.verify) == (3, True)
    monkeypatch.setenv("PICASSO_MAX_GROUP_SIZE", "many")
    with pytest.raises(picasso_tf.ConfigError, match="PICASSO_MAX_GROUP_SIZE must be a whole number"):
        picasso_tf.enable()
    monkeypatch.setenv("PICASSO_MAX_GROUP_SIZE", "²")
    with pytest.raises(picasso_tf.ConfigError, match="PICASSO_MAX_GROUP_SIZE must be a whole number"):
        picasso_tf.enable()


def test_dumps_hold_every_step_and_are_stable_from_run_to_run(tmp_path):
    for _ in range(2):
        picasso_tf.enable(dump_dir=tmp_path)
        _model()[1](IDS)
        report = picasso_tf.report()
        picasso_tf.disable()
        (folder,) = (path for path in (tmp_path / "process_0").iterdir() if path.is_dir())
    names = sorted(path.name for path in folder.iterdir())
    steps = [f"{number:03d}_{kind.name}" for number, kind in enumerate(PASSES, 1)]
    working = ("canonicalize", "embedding_packing", "dead_nodes", "control_outputs")
    changed = [step for step in steps if step.endswith(working)]
    written = [f"{name}.{ending}" for name in changed for ending in ("diff", "txt")]
    assert names == ["000_before.txt", *written, "after.pbtxt", "before.pbtxt", "report.json", "report.txt"]
    assert folder.name == report.graphs[0].name
    after = text_format.Parse((folder / "after.pbtxt").read_text(), graph_pb2.GraphDef())
    assert [node.op for node in after.node].count(PACKED_LOOKUP) == 1
    assert json.loads((folder / "report.json").read_text())["nodes_before"] == report.graphs[0].nodes_before
    (packing,) = (step for step in changed if step.endswith("embedding_packing"))
    assert "+ " in (folder / f"{packing}.diff").read_text()


def test_the_report_counts_prints_and_becomes_json():
    assert str(picasso_tf.Report([])) == "No graph has been optimised yet."
    picasso_tf.enable()
    _model()[1](IDS)
    report = picasso_tf.report()
    (graph,) = report.graphs
    assert (graph.lookups_packed, len(graph.declined), graph.failures) == (2, 0, ())
    assert graph.nodes_after < graph.nodes_before
    assert graph.seconds > 0
    assert graph.name in str(report)
    assert json.loads(report.to_json())["graphs"][0]["packed"][0]["members"] == list(graph.packed[0].members)


def test_explain_says_what_would_happen_without_running_anything():
    tables, lookups = _model()
    report = picasso_tf.explain(lookups, tf.TensorSpec([None], tf.int32))
    assert [(graph.lookups_packed, len(graph.packed[0].absorbed)) for graph in report.graphs] == [(2, 1)]
    assert not picasso_tf.is_enabled()

    def one(ids):
        return tf.gather(tables[0], ids)

    (graph,) = picasso_tf.explain(one, tf.TensorSpec([None], tf.int32)).graphs
    assert [declined.code for declined in graph.declined] == ["single_lookup"]
    with pytest.raises(picasso_tf.ConfigError, match=r"takes a function or a Keras model. Received: int"):
        picasso_tf.explain(3)


def test_explain_takes_a_keras_model_and_leaves_it_as_it_was():
    inputs = [keras.Input((1,), dtype="int32") for _ in range(3)]
    vectors = [keras.layers.Flatten()(keras.layers.Embedding(9, 4)(tensor)) for tensor in inputs]
    model = keras.Model(inputs, keras.layers.Dense(1)(keras.layers.Concatenate()(vectors)))
    x = [np.ones((8, 1), "int32")] * 3
    weights = model.get_weights()
    assert picasso_tf.explain(model, x).graphs[0].lookups_packed == 3
    with pytest.raises(picasso_tf.ConfigError, match="compile the model first"):
        picasso_tf.explain(model, x, np.ones((8, 1)))
    model.compile("sgd", "mse")
    report = picasso_tf.explain(model, x, np.ones((8, 1), "float32"))
    assert report.graphs[0].lookups_packed == 3
    assert report.graphs[0].name.startswith("update")
    for before, after in zip(weights, model.get_weights(), strict=True):
        np.testing.assert_array_equal(before, after)


def test_a_step_that_xla_compiles_is_opened_and_explained_as_what_is_in_it():
    inputs = keras.Input((2,), dtype="int32")
    vectors = [keras.layers.Embedding(9, 4)(inputs[:, i]) for i in range(2)]
    model = keras.Model(inputs, keras.layers.Dense(1)(keras.layers.Concatenate()(vectors)))
    model.compile("sgd", "mse", jit_compile=True)
    x, y = np.ones((8, 2), "int32"), np.ones((8, 1), "float32")
    picasso_tf.enable()
    model.fit(x, y, verbose=0)
    around, step = picasso_tf.report().graphs
    assert list(around.rewritten) == ["xla_open"]
    assert step.lookups_packed == 2
    assert len(step.rewritten["xla_close"]) == 1
    (explained,) = picasso_tf.explain(model, x, y).graphs
    assert (explained.lookups_packed, explained.updates_packed) == (step.lookups_packed, step.updates_packed)
    assert len(explained.rewritten["xla_close"]) == 1
    closed = picasso_tf.Config(passes="canonicalize, embedding_packing")
    (left,) = picasso_tf.explain(model, x, y, config=closed).graphs
    assert [declined.code for declined in left.declined] == ["compiled_by_xla"]
    with pytest.raises(picasso_tf.ConfigError, match=r"no keyword arguments for a model. Received: max_group_sise"):
        picasso_tf.explain(model, x, max_group_sise=2)


def test_optimize_graph_rewrites_a_graph_def():
    with tf.Graph().as_default() as graph:
        ids = tf.compat.v1.placeholder(tf.int32, [None], name="ids")
        tables = [tf.Variable(tf.ones((10, width))) for width in (4, 2)]
        tf.concat([tf.gather(table, ids) for table in tables], axis=1, name="joined")
    before = graph.as_graph_def()
    after = picasso_tf.optimize_graph(before, fetches=["joined"], feeds=["ids"])
    ops = [node.op for node in after.node]
    assert ops.count(PACKED_LOOKUP) == 1
    assert "GatherV2" not in ops
    assert not any("_output_shapes" in node.attr for node in after.node if node.op != PACKED_LOOKUP)
    assert [node.name for node in after.node if node.name in ("ids", "joined")] == ["ids", "joined"]
    assert before == graph.as_graph_def()
    again = picasso_tf.optimize_graph(after, fetches=["joined"], feeds=["ids"])
    assert again == after
    with pytest.raises(picasso_tf.GraphError, match="fetch 'nowhere' names no node"):
        picasso_tf.optimize_graph(before, fetches=["nowhere"])


@dataclass(frozen=True)
class Raising(Pass):
    """A pass that always fails."""

    name = "raising"

    def run(self, graph, context):
        if graph.of(PACKED_LOOKUP):
            raise RuntimeError("made to fail")
        return PassResult(graph, PassReport(self.name))


@pytest.mark.fail_open
def test_a_failing_pass_leaves_the_graph_one_warning_and_a_reproducer(tmp_path, caplog):
    tables, lookups = _model()
    passes = f"canonicalize, embedding_packing, {__name__}:Raising"
    with caplog.at_level(logging.WARNING, "picasso_tf"):
        picasso_tf.enable(passes=passes, reproducer_dir=tmp_path)
        assert lookups(IDS).numpy().tolist() == EXPECTED
    (warning,) = [record for record in caplog.records if record.name == "picasso_tf"]
    (folder,) = tmp_path.iterdir()
    assert f"picasso-tf replay {folder}" in warning.getMessage()
    (graph,) = picasso_tf.report().graphs
    assert "made to fail" in graph.failures[0]
    assert (graph.nodes_before, graph.packed) == (graph.nodes_after, ())
    with pytest.raises(picasso_tf.PassError, match="made to fail"):
        replay(Path(folder), BY_NAME)
    assert tables[0].numpy()[1].tolist() == [4, 5, 6, 7]

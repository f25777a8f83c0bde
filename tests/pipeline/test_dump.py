"""Dumps: which files a run leaves, what they hold, and what a full disk costs. Names of graphs."""

import json
import logging
from pathlib import Path

import pytest
from google.protobuf import text_format
from tensorflow.core.framework import graph_pb2

from graph_passes.ir import Graph, print_graph
from graph_passes.pipeline.instruments import Dump
from graph_passes.pipeline.manager import PassManager, PipelineRun
from graph_passes.pipeline.naming import graph_name
from graph_passes.pipeline.report import GraphReport
from tests.support.lines import arg, assign, graph, lookup, read, variable
from tests.support.passes import AddNodes, Explode
from tests.support.rewrite import graph_of, shuffled

GRAPH = graph_of("a = Const() {dtype = int32, value = int32[](1)}")


def dump(folder: Path, *pipeline) -> PipelineRun:
    return PassManager(pipeline, [Dump(folder, lambda run: GraphReport.of("g", run))]).run(GRAPH)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


ALWAYS = ["000_before.txt", "after.pbtxt", "before.pbtxt", "report.json", "report.txt"]


def test_a_dump_holds_each_pass_that_changed_something(tmp_path: Path) -> None:
    run = dump(tmp_path / "new" / "g", AddNodes(), AddNodes(0), AddNodes(2))
    folder = tmp_path / "new" / "g"
    steps = ["001_add_nodes.diff", "001_add_nodes.txt", "003_add_nodes.diff", "003_add_nodes.txt"]
    assert names(folder) == sorted(ALWAYS + steps)
    assert (folder / "000_before.txt").read_text() == print_graph(GRAPH)
    assert (folder / "001_add_nodes.diff").read_text() == "+ added_0 = NoOp()\n"
    assert (folder / "003_add_nodes.diff").read_text() == "+ added_1 = NoOp()\n"
    assert (folder / "003_add_nodes.txt").read_text() == print_graph(run.after)
    after = text_format.Parse((folder / "after.pbtxt").read_text(), graph_pb2.GraphDef())
    assert print_graph(Graph.from_graph_def(after)) == print_graph(run.after)
    before = text_format.Parse((folder / "before.pbtxt").read_text(), graph_pb2.GraphDef())
    assert [node.name for node in before.node] == ["a"]
    assert json.loads((folder / "report.json").read_text())["nodes_after"] == 3
    assert (folder / "report.txt").read_text().startswith("graph g: 1 -> 3 nodes in ")


def test_a_second_run_leaves_nothing_of_the_first(tmp_path: Path) -> None:
    dump(tmp_path, AddNodes(), AddNodes(2))
    dump(tmp_path, AddNodes(0))
    assert names(tmp_path) == ALWAYS


@pytest.mark.fail_open
def test_a_failed_run_dumps_the_graph_as_it_came_and_the_failure(tmp_path: Path) -> None:
    dump(tmp_path, AddNodes(), Explode())
    assert names(tmp_path) == sorted([*ALWAYS, "001_add_nodes.diff", "001_add_nodes.txt"])
    assert (tmp_path / "after.pbtxt").read_text() == (tmp_path / "before.pbtxt").read_text()
    assert "failure Pass 'explode' failed (ValueError: boom).\n" in (tmp_path / "report.txt").read_text()


@pytest.mark.parametrize("obstacle", ["file", "folder inside"])
def test_a_folder_that_cannot_be_written_costs_the_dump_only(tmp_path: Path, obstacle: str, caplog) -> None:
    folder = tmp_path / "g"
    if obstacle == "file":
        folder.write_text("")
    else:
        (folder / "inner").mkdir(parents=True)
    with caplog.at_level(logging.WARNING, "picasso_tf"):
        run = dump(folder, AddNodes())
    assert sorted(run.after.nodes) == ["a", "added_0"]
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        message for message in caplog.messages if message.startswith(f"The dump in '{folder}' is incomplete: ")
    ]
    assert f"The dump in '{folder}' is incomplete: " in caplog.text


BASE = [variable("t"), arg("ids"), lookup("rows", "t, ids")]


def test_the_name_of_a_graph_does_not_depend_on_order_or_on_counters() -> None:
    text = graph(*BASE, "x_1 = NoOp()", "y = NoOp(^x_1)")
    name = graph_name(graph_of(text))
    assert name.startswith("forward-")
    assert len(name) == len("forward-") + 8
    assert {graph_name(shuffled(graph_of(text), seed)) for seed in range(4)} == {name}
    assert graph_name(graph_of(text.replace("x_1", "x_27"))) == name


def test_graphs_with_other_ops_shapes_or_gathers_have_other_names() -> None:
    texts = [
        graph(*BASE),
        graph(*BASE, "x = NoOp()"),
        graph(*BASE).replace("<10,4>", "<11,4>"),
        graph(*BASE).replace("rows", "other"),
        graph(*BASE, read("r", "t")),
    ]
    assert len({graph_name(graph_of(text)) for text in texts}) == len(texts)


def test_a_graph_that_writes_what_it_reads_is_an_update() -> None:
    value = arg("x", "float32")
    assert graph_name(graph_of(graph(*BASE, value, assign("w", "t, x")))).startswith("update-")
    other = variable("u", index=3)
    assert graph_name(graph_of(graph(*BASE, value, other, assign("w", "u, x")))).startswith("forward-")

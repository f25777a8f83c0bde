"""The manager: order of passes and hooks, what a run tells, and what a failing pass costs."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pytest

from graph_passes.errors import PassError, VerifyError
from graph_passes.ir import Graph, Mutation, TensorRef, print_graph
from graph_passes.pipeline.base import Declined, Packed, Pass, PassContext, PassReport, PassResult
from graph_passes.pipeline.instruments import Verify
from graph_passes.pipeline.manager import Instrument, PassManager, PipelineRun
from graph_passes.pipeline.report import GraphReport
from tests.support.lines import arg, assign, graph, variable
from tests.support.passes import AddNodes, DropWrites, Explode, breaking_pass
from tests.support.rewrite import graph_of

GRAPH = graph_of("a = Const() {dtype = int32, value = int32[](1), T = int32}")
TWO = [AddNodes(), AddNodes(2, "more")]


class Recorder(Instrument):
    """Writes down each call."""

    def __init__(self, log: list[str], name: str = "", reproducer: str | None = None):
        self._log = log
        self._name = name
        self._reproducer = reproducer

    def begin(self, graph: Graph, pipeline: Sequence[Pass]) -> None:
        self._log.append(f"{self._name}begin {len(graph)} nodes, {len(pipeline)} passes")

    def before(self, step: int, item: Pass, graph: Graph) -> None:
        self._log.append(f"{self._name}before {step} {item.name}, {len(graph)} nodes")

    def after(self, step: int, item: Pass, before: Graph, after: Graph, report: PassReport) -> None:
        self._log.append(f"{self._name}after {step} {item.name}, {len(before)} -> {len(after)} nodes")

    def failed(self, item: Pass, graph: Graph, error: Exception) -> str | None:
        self._log.append(f"{self._name}failed {item.name}, {len(graph)} nodes: {error}")
        return self._reproducer

    def end(self, run: PipelineRun) -> None:
        self._log.append(f"{self._name}end, changed {run.changed}")


def test_hooks_are_called_in_order_around_each_pass() -> None:
    log: list[str] = []
    PassManager(TWO, [Recorder(log, "1 "), Recorder(log, "2 ")]).run(GRAPH)
    steps = [
        "begin 1 nodes, 2 passes",
        "before 1 add_nodes, 1 nodes",
        "after 1 add_nodes, 1 -> 2 nodes",
        "before 2 add_nodes, 2 nodes",
        "after 2 add_nodes, 2 -> 4 nodes",
        "end, changed True",
    ]
    assert log == [f"{number} {step}" for step in steps for number in (1, 2)]


def test_a_run_tells_what_each_pass_did() -> None:
    run = PassManager(TWO).run(GRAPH)
    assert [(r.rewritten, r.nodes_before, r.nodes_after) for r in run.reports] == [
        *[(["added_0"], 1, 2), (["more_0", "more_1"], 2, 4)]
    ]
    assert run.changed
    assert run.before is GRAPH
    assert sorted(run.after.nodes) == ["a", "added_0", "more_0", "more_1"]
    assert 0 < sum(report.seconds for report in run.reports) <= run.seconds


def test_a_run_without_work_gives_the_graph_that_came_in() -> None:
    run = PassManager([AddNodes(0)]).run(GRAPH)
    assert run.after is GRAPH
    assert not run.changed


def test_one_line_is_logged_for_each_pass(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "picasso_tf"):
        PassManager([AddNodes(2)]).run(GRAPH)
    (line,) = (record.getMessage() for record in caplog.records)
    assert line.startswith("add_nodes: 1 -> 3 nodes, 0 packed, 2 rewritten, 0 declined, ")


def test_the_passes_of_a_run_share_its_fuel() -> None:
    context = PassContext(fuel=2)
    run = PassManager(TWO).run(GRAPH, context)
    assert [report.rewritten for report in run.reports] == [["added_0"], ["more_0"]]
    assert not context.take_fuel()
    assert PassContext().take_fuel()


def test_a_pass_that_raises_raises_a_pass_error_when_the_manager_fails_closed() -> None:
    log: list[str] = []
    manager = PassManager([AddNodes(), Explode()], [Recorder(log, reproducer="/tmp/r-0")], fail_open=False)
    with pytest.raises(PassError) as error:
        manager.run(GRAPH)
    assert str(error.value) == "Pass 'explode' failed (ValueError: boom). Replay it with: picasso-tf replay /tmp/r-0"
    assert (error.value.pass_name, error.value.reproducer) == ("explode", "/tmp/r-0")
    assert isinstance(error.value.__cause__, ValueError)
    assert log[-2:] == ["failed explode, 2 nodes: boom", "end, changed False"]


@pytest.mark.fail_open
def test_a_pass_that_raises_leaves_the_graph_as_it_came_when_the_manager_fails_open() -> None:
    log: list[str] = []
    run = PassManager([AddNodes(), Explode("bang"), AddNodes(3)], [Recorder(log)]).run(GRAPH)
    assert run.after is GRAPH
    assert not run.changed
    assert str(run.failure) == "Pass 'explode' failed (ValueError: bang)."
    assert [report.name for report in run.reports] == ["add_nodes"]
    assert "before 3 add_nodes, 2 nodes" not in log
    report = GraphReport.of("g", run)
    assert (report.failures, report.rewritten, report.nodes_after) == ((str(run.failure),), {}, 1)


@dataclass(frozen=True)
class BypassFeeds(Pass):
    """Reads what a fed node reads."""

    name: ClassVar[str] = "bypass_feeds"

    def run(self, graph: Graph, context: PassContext) -> PassResult:
        mutation = Mutation(graph)
        for name in graph.fed:
            mutation.redirect(TensorRef(name), graph.nodes[name].inputs[0])
        return PassResult(mutation.apply(), PassReport(self.name))


@pytest.mark.fail_open
def test_a_bypassed_feed_fails_the_pass_also_without_the_verifier() -> None:
    lines = ["x = Placeholder() {dtype = int32}", "y = Neg(x) {T = int32}", "z = Neg(y) {T = int32}"]
    before = graph_of(graph(*lines, feeds=["y"], fetches=["z"]))
    run = PassManager([BypassFeeds()]).run(before)
    assert run.after is before
    assert "I12" in str(run.failure)
    assert not PassManager([BypassFeeds()]).run(graph_of(graph(*lines, fetches=["z"]))).failure


def test_the_tests_themselves_verify_what_a_pass_returns() -> None:
    with pytest.raises(VerifyError, match="I7 broken at 'w': a stateful AssignVariableOp was dropped"):
        DropWrites().run(graph_of(graph(variable("t"), arg("x", "float32"), assign("w", "t, x"))), PassContext())


def test_verify_names_the_pass_that_breaks_the_graph() -> None:
    with pytest.raises(PassError) as error:
        PassManager([AddNodes(), breaking_pass()], [Verify()], fail_open=False).run(GRAPH)
    assert error.value.pass_name == "make_cycle"
    assert isinstance(error.value.cause, VerifyError)
    assert error.value.cause.invariant == "I3"


def test_verify_looks_at_the_graph_that_comes_in() -> None:
    broken = graph_of("a = Neg(gone) {T = int32}")
    with pytest.raises(VerifyError, match="I2 broken at 'a'"):
        PassManager([AddNodes()], [Verify()], fail_open=False).run(broken)


def test_a_report_of_a_graph_is_text_and_plain_values() -> None:
    report = PassReport("p", nodes_before=9, nodes_after=5)
    report.packed.append(Packed("pack", ("x", "y"), ("join",)))
    report.packed.append(Packed("step", ("u",), kind="update", rule="SGD"))
    report.declined.append(Declined("single_lookup", "z"))
    report.rewritten.append("w")
    report.notes.append(("n", "It is so."))
    run = PipelineRun(GRAPH, GRAPH, [report], seconds=0.0125)
    graph_report = GraphReport.of("forward-1", run)
    assert (graph_report.lookups_packed, graph_report.updates_packed) == (2, 1)
    assert graph_report.to_text().splitlines() == [
        "graph forward-1: 1 -> 1 nodes in 12.5 ms",
        "  p: 9 -> 5 nodes, 3 packed, 1 rewritten, 1 declined, 0 ms",
        "packed 2 lookups into pack",
        "  lookup x",
        "  lookup y",
        "  writes straight into join",
        "packed 1 updates into step",
        "  rule SGD",
        "  update u",
        f"declined [single_lookup] z: {report.declined[0].detail}",
        "note n: It is so.",
    ]
    values = graph_report.to_dict()
    assert values["packed"] == (
        {"node": "pack", "members": ("x", "y"), "absorbed": ("join",), "kind": "lookup", "rule": ""},
        {"node": "step", "members": ("u",), "absorbed": (), "kind": "update", "rule": "SGD"},
    )
    assert (values["rewritten"], values["notes"]) == ({"p": ("w",)}, (("n", "It is so."),))
    assert print_graph(run.after).endswith("T = int32, dtype = int32, value = int32[](1)}\n")

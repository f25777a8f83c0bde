"""The benchmarks run, on tiny shapes, and compare arms that compute the same. No timing is asserted."""

import json

import pytest

from benchmarks import compiled, criteo_step, forward, gate, generated_graph, one_table, pass_time, train_race
from benchmarks.harness import BenchmarkError, Entry, Pace, Timing, race
from benchmarks.shapes import SHAPES, Shape
from benchmarks.table import print_race
from benchmarks.worker import MIN_STEPS, Arm, measure
from graph_passes.ir import verify
from graph_passes.registry import PASSES

TINY = Shape(fields=3, rows=50, width=8, batch=16)
PACE = Pace(rounds=2, chunk=0.001, settle=1, warm_up=1)


def failing_arm(message: str) -> Arm:
    """Built in a worker by a test below."""
    raise ValueError(message)


def test_forward_arms_compute_the_same(capsys):
    timings = race("tiny", forward.entries(TINY, peers_python=None), PACE)
    forward.check(timings)
    assert len({timing.check["digest"] for timing in timings.values() if timing.check}) == 1
    assert [len(timing.rounds) for timing in timings.values()] == [2] * 9
    assert all(len(steps) >= MIN_STEPS for timing in timings.values() for steps in timing.rounds)
    print_race("tiny", timings.values(), timings[forward.OURS], ["A note."])
    printed = capsys.readouterr().out
    for text in (*timings, "A note.", "command: ", "machine: "):
        assert text in printed


def test_a_different_output_is_found():
    timings = {name: Timing(name, [[1.0]], {"digest": name}) for name in ("one", "other")}
    with pytest.raises(BenchmarkError, match="different outputs"):
        forward.check(timings)


@pytest.mark.parametrize(
    ("entries", "ours"),
    [
        (one_table.entries("sgd", rows=100, width=4, batch=32), one_table.OURS),
        (criteo_step.entries("sgd", width=2, batch=32), criteo_step.OURS),
    ],
    ids=["one_table", "criteo_step"],
)
def test_train_steps_learn_the_same(capsys, entries, ours):
    train_race.run("tiny", entries, ours, PACE, ["A note."])  # raises where losses differ or nothing was rewritten
    assert "agree to 1e-05 in the first 5 steps" in capsys.readouterr().out


def test_the_message_of_a_failing_arm_arrives():
    entry = Entry("broken", "tests.benchmarks.test_benchmarks:failing_arm", {"message": "out of order"})
    with pytest.raises(BenchmarkError, match="'broken' failed: ValueError: out of order"):
        race("tiny", [entry], PACE)


def test_ratios_are_taken_within_rounds():
    # The machine is three times slower in the second round: the ratio does not see it.
    ours = Timing("ours", [[1.0, 1.0, 9.0], [3.0, 3.0, 3.0]], {})
    other = Timing("other", [[2.0, 2.0, 2.0], [6.0, 6.0, 7.0]], {})
    assert other.ratio_to(ours) == 2.0
    assert (ours.min, ours.median) == (1.0, 3.0)


def test_steps_are_scaled_and_settling_ones_are_not_timed():
    steps = iter(range(100))
    taken = measure(Arm(lambda: next(steps), dict, scale=0.0), seconds=0.0, settle=2)
    assert taken == [0.0] * MIN_STEPS
    assert next(steps) == MIN_STEPS + 2


def test_forward_bytes_are_those_of_the_roofline():
    assert SHAPES["fields"].forward_bytes == 26 * 4096 * (4 + 128 + 128)
    assert json.loads(json.dumps(SHAPES["wide"].settings())) == SHAPES["wide"].settings()


@pytest.mark.parametrize("nodes", [200, 1000])
def test_generated_graphs_are_valid_and_are_rewritten(nodes):
    graph = generated_graph.train_step(nodes)
    verify(graph)
    assert len(graph) == pytest.approx(nodes, rel=0.15)
    phases = pass_time.measure(graph, repeats=1)
    assert phases.nodes_after < phases.nodes == len(graph)
    passes = [f"{step} {item.name}" for step, item in enumerate(PASSES, 1)]
    assert list(phases.seconds) == ["shapes (C++)", "parse", *passes, "serialise"]
    assert 0 < phases.total < float("inf")


def test_exponent_of_growth():
    assert pass_time.exponent([10, 100, 1000], [0.1, 1.0, 10.0]) == pytest.approx(1.0)
    assert pass_time.exponent([10, 100, 1000], [0.1, 10.0, 1000.0]) == pytest.approx(2.0)


@pytest.mark.skipif(not compiled.has_compiler(), reason="g++ compiles the gate")
def test_gate_knows_which_graphs_are_of_interest():
    idle, busy = generated_graph.without_lookups(100), generated_graph.train_step(200)
    verify(idle)
    for graph, expected in ((idle, False), (busy, True)):
        seconds, interesting = gate.seconds(graph.to_graph_def().SerializeToString())
        assert interesting is expected
        assert seconds >= 0

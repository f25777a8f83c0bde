"""Random models give the same bits with and without the plugin.

The seed is the parameter of the test and is printed with the model when it fails. More models than in CI:

    PICASSO_FUZZ_MODELS=2000 PICASSO_FUZZ_SEED=100 python -m pytest tests/fuzz
"""

from __future__ import annotations

import os

import pytest

import picasso_tf
from graph_passes.ir import diff_graphs
from graph_passes.pipeline.manager import PassManager
from graph_passes.registry import PASSES
from picasso_tf.tracing import function_graph
from tests.support.random_models import Model
from tests.support.rewrite import shuffled

COUNT = int(os.environ.get("PICASSO_FUZZ_MODELS", "25"))
FIRST = int(os.environ.get("PICASSO_FUZZ_SEED", "0"))


def updates(graph):
    return sum(len(item.members) for item in graph.packed if "update_packing" in item.node)


@pytest.fixture(scope="module")
def totals():
    """What was packed over all models; a generator whose models hold nothing to pack tests nothing."""
    found = {"packed": 0, "joins": 0, "rewritten": 0, "updates": 0}
    yield found
    if COUNT >= 25:
        assert found["packed"] > 2 * COUNT, found
        assert found["joins"] > COUNT // 4, found
        assert found["rewritten"] > COUNT // 2, found
        assert found["updates"] > COUNT // 2, found


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_a_random_model_runs_as_without_the_plugin(seed, totals):
    stock = Model(seed).train()
    model = Model(seed)
    picasso_tf.enable(verify=True)
    try:
        ours = model.train()
        graphs = picasso_tf.report().graphs
    finally:
        picasso_tf.disable()
    story = f"seed {seed}\n  " + "\n  ".join(model.story)
    assert stock.keys() == ours.keys(), story
    for name, expected in stock.items():
        assert expected.dtype == ours[name].dtype, f"{name} has another dtype; {story}"
        assert expected.shape == ours[name].shape, f"{name} has another shape; {story}"
        assert expected.tobytes() == ours[name].tobytes(), f"{name} has other values; {story}"
    assert [graph.failures for graph in graphs] == [()] * len(graphs), story
    totals["packed"] += sum(graph.lookups_packed for graph in graphs)
    totals["updates"] += sum(updates(graph) for graph in graphs)
    totals["joins"] += sum(len(item.absorbed) for graph in graphs for item in graph.packed)
    totals["rewritten"] += sum(len(names) for graph in graphs for names in graph.rewritten.values())


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT // 4))
def test_all_passes_are_deterministic_and_change_nothing_the_second_time(seed):
    before = function_graph(*Model(seed).function_and_arguments(), {})
    manager = PassManager([kind() for kind in PASSES], fail_open=False)
    run = manager.run(before)
    again = manager.run(run.after)
    assert diff_graphs(run.after, again.after) == ""
    assert not again.changed
    assert [report.packed for report in again.reports] == [[]] * len(PASSES)
    other = manager.run(shuffled(before, seed))
    assert diff_graphs(run.after, other.after) == ""
    assert [report.declined for report in other.reports] == [report.declined for report in run.reports]

"""The benchmarks of inference run, on tiny shapes, and compare arms that compute the same. No timing is asserted."""

import argparse
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import forward, latency, pooled
from benchmarks.harness import BenchmarkError, Pace, Timing, race
from benchmarks.latency import Cell
from benchmarks.shapes import Shape, decoded, encoded

TINY = Shape(fields=3, rows=50, width=4, batch=8, pooling=20)
PACE = Pace(rounds=2, chunk=0.001, settle=0, warm_up=0)

pytestmark = pytest.mark.usefixtures("in_process")


@pytest.mark.parametrize("model", latency.MODELS)
def test_latency(capsys, model):
    cell = Cell(model, fields=4, batch=1)
    timings = latency.measure(cell, PACE, rows=50, width=4)  # raises where losses differ or nothing was packed
    latency.print_table(*latency.table([(cell, timings)]))
    printed = capsys.readouterr().out
    for text in (model, "stock p50", "ours p50", "x p99", f"{min(t.steps for t in timings.values())}", "command: "):
        assert text in printed


def test_all_cells_of_latency_are_measured():
    def found(**options):
        chosen = {"models": list(latency.MODELS), "fields": None, "batches": None, "quick": False, **options}
        return list(latency.cells(argparse.Namespace(**chosen)))

    assert len(set(found())) == len(found()) == 4 * 2 * 3
    assert [str(cell) for cell in found(models=["wide_deep"], quick=True)] == [
        "wide_deep in Keras 3, 4 fields, batch 16"
    ]


def test_calls_up_to_five_milliseconds_are_timed_a_thousand_times():
    assert latency.PACE.rounds * latency.PACE.chunk >= 1000 * 0.005


def test_percentiles_are_those_of_all_rounds():
    timing = Timing("arm", [[float(n) for n in range(51)], [float(n) for n in range(51, 101)]], {})
    assert (timing.percentile(50), timing.percentile(99), timing.steps) == (50.0, 99.0, 101)


def test_pooled_arms_compute_the_same():
    timings = race("tiny", pooled.entries(TINY, peers_python=None), PACE)
    pooled.check(timings)
    outputs = [decoded(timing.check["output"]) for timing in timings.values() if timing.check]
    ids = TINY.ids(0)[0].reshape(TINY.batch, TINY.pooling)
    expected = TINY.table(0)[ids].sum(axis=1)
    for output in outputs:
        np.testing.assert_allclose(output.reshape(TINY.batch, -1)[:, : TINY.width], expected, rtol=1e-5, atol=1e-5)
    assert len(outputs) == 3


def test_a_different_pooled_output_is_found():
    values = {pooled.STOCK: 1.0, pooled.OURS: 1.0, forward.FBGEMM: 1.000001}
    timings = {name: Timing(name, [[1.0]], {"output": encoded(np.array([v]))}) for name, v in values.items()}
    pooled.check(timings)
    timings[pooled.OURS].check["output"] = encoded(np.array([1.000001]))
    with pytest.raises(BenchmarkError, match="'ours' and of 'embedding_lookup_sparse' differ by up to"):
        pooled.check(timings)


def test_fbgemm_takes_part_in_pooled_where_its_environment_is():
    arms = pooled.entries(TINY, Path(sys.executable))
    assert [arm.build for arm in arms if arm.name == forward.FBGEMM] == ["benchmarks.tbe_arm:pooled"]


def test_bytes_of_pooled_lookups_are_those_of_the_roofline():
    assert TINY.forward_bytes == 3 * 8 * (20 * (4 + 16) + 16)

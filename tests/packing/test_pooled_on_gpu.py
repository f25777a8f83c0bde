"""Pooled lookups and their gradients where some or all of a graph is on a GPU."""

import pytest

from graph_passes.cleanup.dead_nodes import DeadNodes
from graph_passes.ir import Graph
from graph_passes.ir.op_defs import PACKED_POOLED_LOOKUP
from graph_passes.packing import placement, update_packing
from graph_passes.packing.pooling_packing import PoolingPacking
from graph_passes.packing.update_packing import UpdatePacking
from tests.packing.test_pooled_updates import gradient, step
from tests.support.lines import concat, graph
from tests.support.pooled_lines import BASE, filled_with_weights, pooled, safe, weighted
from tests.support.rewrite import check_rewrite, graph_of, run

CPU, GPU = "/device:CPU:0", "/device:GPU:0"
OUT = "out = Neg(a) {T = float32} -> <?,?>"


@pytest.fixture(autouse=True)
def kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """A build may be without GPU kernels."""
    monkeypatch.setattr(placement, "has_kernel", lambda op, device: True)
    monkeypatch.setattr(update_packing, "has_kernel", lambda op, device: True)


def on(device: str, *blocks: str) -> str:
    """The lines of all blocks, on a device unless they are on one."""
    lines = []
    for line in "\n".join(blocks).splitlines():
        node, arrow, shape = line.partition(" -> ")
        lines.append(line if " @ " in node else f"{node} @ {device}{arrow}{shape}")
    return "\n".join(lines)


def on_gpu(*lines: str) -> str:
    """Ids come from the host, as those of an input pipeline do; all else is on the GPU."""
    inputs = [line for line in BASE.splitlines() if "_Arg" in line and "resource" not in line]
    others = [line for line in BASE.splitlines() if line not in inputs]
    return on(CPU, *inputs) + "\n" + on(GPU, *others, *lines)


def packed(text: str, **keep) -> tuple[list, Graph]:
    result = run(PoolingPacking(), graph_of(graph(text, **keep)))
    assert not result.report.declined
    after = run(DeadNodes(), result.graph).graph
    return after.of(PACKED_POOLED_LOOKUP), after


def test_a_safe_lookup_and_its_concatenation_become_one_op_on_the_gpu() -> None:
    lines = [safe("a", "t", 0), safe("b", "t2", 1, 8), concat("joined", "a, b, one", 2, "<?,12>")]
    (node,), after = packed(on_gpu(*lines), fetches=["joined"])
    assert node.device == GPU
    assert [str(ref) for ref in node.inputs] == ["t", "t2", "v0", "v1", "i0", "i1", "s0", "s1"]
    assert {other.op for other in after.nodes.values()} == {"_Arg", "Identity", PACKED_POOLED_LOOKUP}


def test_weights_are_read_on_the_gpu() -> None:
    weights = "w = _Arg() {T = float32, index = 9} -> <?>"
    lines = [
        weights,
        filled_with_weights("a/safe", 0, "w", prune_weights=True),
        weighted("a", "t", "a/safe/fill:1", "a/safe/fill", "a/safe/fill_weights:1", "mean"),
    ]
    (node,), _ = packed(on_gpu(*lines), fetches=["a"])
    assert [str(ref) for ref in node.inputs] == ["t", "v0", "i0", "s0", "w"]


def test_a_number_of_rows_that_only_the_segments_tell_stays_on_the_gpu() -> None:
    text = graph(on_gpu(pooled("a", "t", "v0", "i0")), fetches=["a"])
    check_rewrite(PoolingPacking(), text, None, declined={"a": "rows_on_device"})


def test_a_number_of_rows_in_device_memory_would_be_waited_for() -> None:
    on_device = on_gpu(safe("a", "t", 0), OUT).replace(
        f"s0 = _Arg() {{T = int64, index = 4}} @ {CPU}", f"s0 = _Arg() {{T = int64, index = 4}} @ {GPU}"
    )
    text = graph(on_device, fetches=["out"])
    check_rewrite(PoolingPacking(), text, None, declined={"a/zeroed": "rows_on_device"})


def test_what_is_looked_through_may_be_on_the_cpu() -> None:
    """TensorFlow has no GPU kernel for some of it, so it may put all of it elsewhere."""
    lines = []
    for line in safe("a", "t", 0).splitlines():
        lines.append(on(CPU, line) if line.startswith("a/safe/") else line)
    (node,), after = packed(on_gpu(*lines, OUT), fetches=["out"])
    assert node.device == GPU
    assert {other.op for other in after.nodes.values()} == {"_Arg", "Neg", PACKED_POOLED_LOOKUP}


@pytest.mark.parametrize("part", ["a/sum/gather", "a/zeroed"])
def test_a_chain_that_changes_devices_stays(part: str) -> None:
    lines = []
    for line in safe("a", "t", 0).splitlines():
        lines.append(on(CPU, line) if line.startswith(f"{part} =") else line)
    text = graph(on_gpu(*lines, OUT), fetches=["out"])
    check_rewrite(PoolingPacking(), text, None, declined={"a/zeroed": "other_device"})


@pytest.mark.parametrize("of_gradient", [CPU, GPU])
def test_an_update_on_the_gpu_reads_the_gradient_of_distinct_rows(of_gradient: str) -> None:
    """Packed updates on a GPU know no pools, wherever the gradient is computed."""
    lines = [*gradient("t2", 8), *step("t2", 8, "Sqrt")]
    lines = [on(of_gradient, line) if line.startswith("a/grad =") else line for line in lines]
    result = run(UpdatePacking(), graph_of(graph(on_gpu(*lines))))
    assert [(item.node, item.code) for item in result.report.declined] == [("w", "update_arithmetic")]
    assert not result.report.packed


def test_an_update_on_the_cpu_may_read_a_gradient_on_the_gpu() -> None:
    lines = [on(CPU, line) if line.startswith("w =") else line for line in [*gradient("t2", 8), *step("t2", 8, "Sqrt")]]
    result = run(UpdatePacking(), graph_of(graph(on_gpu(*lines))))
    (node,) = [result.graph.nodes[item.node] for item in result.report.packed]
    assert (node.device, node.attr("gradient_combiner")) == (CPU, [b"mean"])

"""update_packing and shared_scalars: how much work a graph takes grows as the graph does, not with its square."""

import sys

import pytest

from graph_passes.cleanup.shared_scalars import SharedScalars
from graph_passes.ir import Graph
from graph_passes.packing.update_packing import UpdatePacking
from graph_passes.pipeline.base import Pass, PassContext
from tests.support.lines import arg, graph, read, scalar, variable
from tests.support.rewrite import graph_of
from tests.support.update_lines import number, op, scatter, segment_sum, write

SMALL, LARGE = 50, 200


def adagrad(tables: int) -> Graph:
    """Adagrad as Keras 3 writes it: two scatters for each table, a read of the learning rate for each."""
    lines = [variable("rate", "<>"), number("epsilon", 1e-7)]
    for i in range(tables):
        lines += [
            variable(f"t{i}", index=i),
            variable(f"m{i}", index=i),
            arg(f"ids{i}"),
            arg(f"g{i}", "float32", "<?,4>"),
        ]
        lines += [read(f"rate{i}", "rate", shape="<>"), op(f"q{i}", "Square", f"g{i}")]
        lines += [scatter(f"a{i}", "Add", f"m{i}, ids{i}, q{i}"), op(f"x{i}", "Mul", f"g{i}, rate{i}")]
        lines += [f"r{i} = ResourceGather(m{i}, ids{i}, ^a{i}) {{Tindices = int32, dtype = float32}} -> <?,4>"]
        lines += [op(f"s{i}", "AddV2", f"r{i}, epsilon"), op(f"y{i}", "Mul", f"x{i}, s{i}")]
        lines += [scatter(f"b{i}", "Sub", f"t{i}, ids{i}, y{i}")]
    return graph_of(graph(*lines))


def momentum(tables: int) -> Graph:
    """Momentum that decays all rows, one step after another: each table waits for the one before."""
    lines = [arg("rate", "float32", "<>"), scalar("ten", 10)]
    for i in range(tables):
        wait = f", ^b{i - 1}" if i % 10 else ""
        lines += [
            variable(f"t{i}", index=i),
            variable(f"m{i}", index=i),
            arg(f"ids{i}"),
            arg(f"g{i}", "float32", "<?,4>"),
        ]
        lines += [segment_sum(f"d{i}", f"g{i}, ids{i}, ten", "<10,4>"), read(f"r{i}", f"m{i}")]
        lines += [op(f"k{i}", "Mul", f"r{i}, rate", "<10,4>"), op(f"n{i}", "AddV2", f"k{i}, d{i}", "<10,4>")]
        lines += [write(f"a{i}", "", f"m{i}, n{i}{wait}"), write(f"b{i}", "Sub", f"t{i}, n{i}, ^a{i}")]
    return graph_of(graph(*lines))


def calls(pass_: Pass, before: Graph) -> int:
    """How many functions the pass calls, those of the interpreter included."""
    count = 0

    def profile(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    plain = getattr(type(pass_).run, "__wrapped__", type(pass_).run)  # without the verifier of conftest.py
    sys.setprofile(profile)
    try:
        plain(pass_, before, PassContext())
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("make", [adagrad, momentum])
@pytest.mark.parametrize("pass_", [UpdatePacking(), SharedScalars()], ids=lambda pass_: pass_.name)
def test_four_times_the_tables_take_four_times_the_calls(pass_: Pass, make) -> None:
    calls(pass_, make(2))  # fills the caches
    small, large = calls(pass_, make(SMALL)), calls(pass_, make(LARGE))
    assert large < 1.25 * LARGE / SMALL * small

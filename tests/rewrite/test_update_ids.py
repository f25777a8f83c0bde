"""Which rows an update touches: ids behind Unique, casts, concatenations and guards."""

import pytest

from graph_passes.analysis.control_flow import contexts
from graph_passes.ir import TensorRef
from graph_passes.rewrite.ids import IdsSource
from graph_passes.rewrite.update_ids import Guards, UpdateIds, trace_update_ids
from tests.support.lines import arg, concat, graph, identity, scalar, vector
from tests.support.rewrite import graph_of
from tests.support.update_lines import number, unique

BASE = "\n".join([arg("ids"), arg("wide", "int64", index=1), arg("more", index=2), scalar("zero", 0)])
IDS, MORE, WIDE = IdsSource(TensorRef("ids"), "int32"), IdsSource(TensorRef("more"), "int32"), TensorRef("wide")
CAST = "{} = Cast({}) {{DstT = {}, SrcT = {}, Truncate = false}} -> <?>"


def trace(*lines: str, of: str = "out", port: int = 0, **keep) -> tuple[UpdateIds, str | None] | None:
    """The ids behind a tensor, and the name of the Unique in between."""
    found = graph_of(graph(BASE, *lines, **keep))
    result = trace_update_ids(found, TensorRef(of, port), Guards(found, contexts(found)))
    return None if result is None else (result[0], result[1] and result[1].name)


def test_ids_as_they_are() -> None:
    assert trace(of="ids") == (UpdateIds((IDS,), False, TensorRef("ids")), None)


def test_the_distinct_values_of_ids() -> None:
    expected = (UpdateIds((IDS,), False, TensorRef("ids")), "out")
    assert trace(unique("out", "ids")) == expected
    v2 = "out = UniqueV2(ids, zero) {T = int32, Taxis = int32, out_idx = int32} -> <?>, <?>"
    assert trace(v2) == expected
    fed = trace(unique("out", "ids"), feeds=["out"])
    assert fed == (UpdateIds((IdsSource(TensorRef("out"), "int32"),), False, TensorRef("out")), None)


def test_the_places_among_distinct_values_are_no_ids_of_the_table() -> None:
    ids, name = trace(unique("u", "ids"), of="u", port=1)
    assert (ids.segments, name) == ((IdsSource(TensorRef("u", 1), "int32"),), None)


def test_casts_that_lose_nothing_are_looked_through_on_both_sides_of_unique() -> None:
    lines = [CAST.format("w", "ids", "int64", "int32"), unique("u", "w", "int64"), identity("out", "u", "int64")]
    ids, name = trace(*lines)
    assert (ids.segments, ids.ref, name) == ((IDS,), TensorRef("ids"), "u")


def test_a_cast_that_may_merge_values_stays_between_unique_and_the_table() -> None:
    """Distinct int64 ids may be equal as int32."""
    ids, name = trace(unique("u", "wide", "int64"), CAST.format("out", "u", "int32", "int64"))
    assert name is None
    assert ids.segments == (IdsSource(TensorRef("u"), "int64", narrow=True),)


def test_a_cast_below_unique_narrows() -> None:
    ids, name = trace(CAST.format("n", "wide", "int32", "int64"), unique("out", "n"))
    assert (ids.segments, name) == ((IdsSource(WIDE, "int64", narrow=True),), "out")


@pytest.mark.parametrize("axis", [0, -1])
def test_concatenated_ids_come_in_parts(axis: int) -> None:
    ids, name = trace(scalar("axis", axis), concat("out", "ids, more, axis", 2, "<?>", "int32"))
    assert ids == UpdateIds((IDS, MORE), True, TensorRef("out"))
    assert name is None


def test_the_distinct_values_of_concatenated_ids() -> None:
    ids, name = trace(concat("both", "ids, more, zero", 2, "<?>", "int32"), unique("out", "both"))
    assert ids == UpdateIds((IDS, MORE), True, TensorRef("both"))
    assert name == "out"


def test_parts_can_be_read_as_a_whole() -> None:
    found = graph_of(graph(BASE, concat("out", "ids, more, zero", 2, "<?>", "int32")))
    ids, _ = trace_update_ids(found, TensorRef("out"), Guards(found, {}))
    whole = UpdateIds((IdsSource(TensorRef("out"), "int32"),), False, TensorRef("out"))
    assert ids.whole(found) == whole


@pytest.mark.parametrize("axis", [1, -1, 0])
def test_a_concatenated_matrix_is_one_tensor(axis: int) -> None:
    ids, _ = trace(scalar("axis", axis), concat("out", "ids, more, axis", 2, "<?,2>", "int32"))
    assert ids == UpdateIds((IdsSource(TensorRef("out"), "int32"),), False, TensorRef("out"))


def test_ids_of_other_dtypes_have_no_source() -> None:
    assert trace(CAST.format("out", "ids", "int16", "int32")) is None


SWITCH = ["p = _Arg() {T = bool, index = 5} -> <>", "s = Switch(v, p) {T = int32} -> <2>, <2>"]


def number_of(*lines: str, **keep) -> float | None:
    found = graph_of(graph(BASE, *lines, **keep))
    return Guards(found, contexts(found)).number(TensorRef("out"))


def cut(of: str, begin: str = "first", mask: int = 1) -> str:
    masks = f"begin_mask = 0, ellipsis_mask = 0, end_mask = 0, new_axis_mask = 0, shrink_axis_mask = {mask}"
    return f"out = StridedSlice({of}, {begin}, one, one) {{Index = int32, T = int32, {masks}}} -> <>"


def test_a_number_is_a_constant_or_cut_out_of_one() -> None:
    lines = [vector("v", 7, 8), vector("one", 1), vector("first", 0), vector("last", -1), identity("i", "v", "int32")]
    assert number_of(scalar("out", 3)) == 3
    assert number_of(number("out", 0.5)) == 0.5
    assert number_of(*lines, cut("v")) == 7
    assert number_of(*lines, cut("i", "last")) == 8
    assert number_of(*lines, cut("i", "one")) == 8
    assert number_of(*lines, cut("v", mask=0)) is None
    assert number_of(*lines, cut("ids")) is None
    assert number_of(*lines, vector("far", 2), cut("v", "far")) is None
    assert number_of(*lines, cut("v"), feeds=["out"]) is None
    assert number_of(*lines, *SWITCH, cut("s")) is None

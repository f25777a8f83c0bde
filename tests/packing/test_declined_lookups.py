"""Where a lookup lives and what it reads decide whether it can be packed at all."""

import pytest

from graph_passes.cleanup.canonicalize import Canonicalize
from graph_passes.packing import placement
from graph_passes.packing.embedding_packing import EmbeddingPacking
from tests.support.lines import Rows, arg, gather, graph, identity, lookup, packed, read, scalar, variable
from tests.support.rewrite import check_rewrite

HOME, SERVER = "/job:worker/replica:0/task:0/device:CPU:0", "/job:ps/replica:0/task:0/device:CPU:0"


def test_lookups_in_another_process_stay_there() -> None:
    text = graph(
        f"{variable('t1')[:-1]}}} @ {SERVER}",
        f"{variable('t2', index=1)[:-1]}}} @ {SERVER}",
        f"ids = _Arg() {{T = int32, index = 2}} @ {HOME} -> <?>",
        f"seed = _Arg() {{T = int32, index = 3}} @ {HOME} -> <>",
        f"more = _Arg() {{T = int32, index = 4}} @ {HOME} -> <>",
        lookup("a", "t1, ids", device=SERVER),
        lookup("b", "t2, ids", device=SERVER),
        fetches=["a", "b"],
    )
    check_rewrite(EmbeddingPacking(), text, None, declined={"a": "remote_device", "b": "remote_device"})


def test_lookups_stay_where_the_build_has_no_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement, "has_kernel", lambda op, device: device != "GPU")
    gpu = "/device:GPU:0"
    text = graph(
        variable("t1"),
        variable("t2", index=1),
        arg("ids", index=2),
        lookup("a", "t1, ids", device=gpu),
        lookup("b", "t2, ids", device=gpu),
        fetches=["a", "b"],
    )
    check_rewrite(EmbeddingPacking(), text, None, declined={"a": "no_kernel", "b": "no_kernel"})


def test_lookups_of_no_ids_stay_where_the_number_of_elements_does_not_tell_their_shape() -> None:
    tables = [variable("t1"), variable("t2", index=1)]
    lookups = [lookup("a", "t1, ids", "<?,0,4>"), lookup("b", "t2, ids", "<?,0,4>")]
    text = graph(*tables, arg("ids", "int32", "<?,0>", 2), *lookups, fetches=["a", "b"])
    check_rewrite(EmbeddingPacking(), text, None, declined={"a": "no_ids", "b": "no_ids"})


def test_a_lone_lookup_in_a_table_beyond_the_cache_is_packed() -> None:
    table, ids = variable("t", "<1000000,32>"), arg("ids", index=1)
    check_rewrite(
        EmbeddingPacking(),
        graph(table, ids, lookup("a", "t, ids", "<?,32>"), fetches=["a"]),
        graph(
            *[table, ids, packed("t, ids", [Rows("a")], [("<?,32>", [(0, 32)])])],
            identity("a", "picasso/embedding_packing/a", shape="<?,32>"),
            fetches=["a"],
        ),
    )


def test_gathers_from_constants_and_from_cast_tables_are_named() -> None:
    text = graph(
        "table = Const() {dtype = float32, value = float32[2,2](1.0, 2.0, 3.0, 4.0)} -> <2,2>",
        *[variable("t"), arg("ids", index=1), scalar("axis", 0), read("whole", "t")],
        "half = Cast(whole) {DstT = bfloat16, SrcT = float32, Truncate = false} -> <10,4>",
        gather("a", "table, ids, axis", shape="<?,2>"),
        gather("b", "half, ids, axis", dtype="bfloat16"),
        fetches=["a", "b"],
    )
    check_rewrite(Canonicalize(), text, None, declined={"a": "not_a_variable", "b": "table_is_cast"})

"""sharded_gathers: partition, gather and stitch become one gather; what is not quite that stays."""

import pytest

from graph_passes.cleanup.sharded_gathers import ShardedGathers
from tests.support.lines import arg, assign, graph, identity, lookup, scalar, variable
from tests.support.rewrite import check_rewrite

INT = "{T = int32}"
BASE = (
    variable("t1"),
    variable("t2", index=1),
    arg("ids", index=2),
    *(scalar(name, value) for value, name in enumerate(("zero", "one", "two", "three", "four"))),
    "size = Size(ids) {T = int32, out_type = int32} -> <>",
    "range = Range(zero, size, one) {Tidx = int32} -> <?>",
)
MOD = (f"shard = FloorMod(ids, two) {INT} -> <?>", f"row = FloorDiv(ids, two) {INT} -> <?>")


def div(extras: str = "one") -> tuple[str, ...]:
    """Shards of three rows, the first `extras` of them of four."""
    return (
        f"longer = FloorDiv(ids, four) {INT} -> <?>",
        f"rest = Sub(ids, {extras}) {INT} -> <?>",
        f"shorter = FloorDiv(rest, three) {INT} -> <?>",
        f"shard = Maximum(longer, shorter) {INT} -> <?>",
        f"is_long = Less(shard, {extras}) {INT} -> <?>",
        f"of_long = FloorMod(ids, four) {INT} -> <?>",
        f"of_short = FloorMod(rest, three) {INT} -> <?>",
        f"row = Select(is_long, of_long, of_short) {INT} -> <?>",
    )


def parts(shard: str = "shard", places: str = "range") -> tuple[str, ...]:
    return (
        f"part = DynamicPartition(row, {shard}) {{T = int32, num_partitions = 2}} -> <?>, <?>",
        f"place = DynamicPartition({places}, {shard}) {{T = int32, num_partitions = 2}} -> <?>, <?>",
    )


def stitched(a: str = "t1, part", b: str = "t2, part:1", op: str = "ParallelDynamicStitch") -> tuple[str, ...]:
    inputs = "place, place:1, a, b"
    return (lookup("a", a), lookup("b", b), f"rows = {op}({inputs}) {{N = 2, T = float32}} -> <?,4>")


def gathered(inputs: str = "t1, t2, ids", shard_rows: int = 0, extras: int = 0) -> str:
    attrs = f"num_tables = 2, shard_extras = {extras}, shard_rows = {shard_rows}"
    return f"rows = Picasso>TableGather({inputs}) {{Tindices = int32, dtype = float32, {attrs}}} -> <?,4>"


@pytest.mark.parametrize("op", ["ParallelDynamicStitch", "DynamicStitch"])
def test_rows_by_remainders(op: str) -> None:
    head = (*BASE, *MOD, *parts())
    before = graph(*head, *stitched(op=op), fetches=["rows"])
    check_rewrite(ShardedGathers(), before, graph(*head, gathered(), fetches=["rows"]))


def test_consecutive_rows() -> None:
    head = (*BASE, *div(), *parts())
    before = graph(*head, *stitched(), fetches=["rows"])
    check_rewrite(ShardedGathers(), before, graph(*head, gathered(shard_rows=3, extras=1), fetches=["rows"]))


def test_int64_shards_are_narrowed_and_places_may_be_constant() -> None:
    head = [line.replace("int32", "int64") for line in (BASE[2], *BASE[3:8], *MOD)]
    head = [
        *BASE[:2],
        *head,
        "counted = Const() {dtype = int32, value = int32[3](0, 1, 2)} -> <3>",
        "narrow = Cast(shard) {DstT = int32, SrcT = int64, Truncate = false} -> <?>",
        *parts("narrow", "counted"),
    ]
    head[-2] = head[-2].replace("T = int32", "T = int64")
    gathers = [lookup("a", "t1, part", ids="int64"), lookup("b", "t2, part:1", ids="int64")]
    before = graph(*head, *gathers, stitched()[2], fetches=["rows"])
    after = graph(*head, gathered().replace("Tindices = int32", "Tindices = int64"), fetches=["rows"])
    check_rewrite(ShardedGathers(), before, after)


def test_what_waits_for_a_shard_waits_for_all_of_them() -> None:
    head = (*BASE, *MOD, *parts(), arg("value", "float32", "<10,4>", 3), assign("first", "t1, value"))
    before = graph(*head, *stitched(a="t1, part, ^first"), assign("then", "t2, value, ^b"), fetches=["rows", "then"])
    after = graph(*head, gathered("t1, t2, ids, ^first"), assign("then", "t2, value, ^rows"), fetches=["rows", "then"])
    check_rewrite(ShardedGathers(), before, after)


def test_a_shard_that_is_written_before_another_is_read() -> None:
    between = (arg("value", "float32", "<10,4>", 3), assign("write", "t2, value, ^a"))
    text = graph(*BASE, *MOD, *parts(), *between, *stitched(b="t2, part:1, ^write"), fetches=["rows"])
    check_rewrite(ShardedGathers(), text, None, declined={"rows": "would_form_cycle"})


ODD = {
    "other divisors": (f"shard = FloorMod(ids, two) {INT} -> <?>", f"row = FloorDiv(ids, three) {INT} -> <?>"),
    "shards of other lengths": (*(line.replace("of_long, of_short", "of_short, of_long") for line in div()),),
    "extras that differ": (*(line.replace("Less(shard, one)", "Less(shard, two)") for line in div()),),
}


@pytest.mark.parametrize("arithmetic", ODD.values(), ids=ODD)
def test_other_arithmetic(arithmetic: tuple[str, ...]) -> None:
    text = graph(*BASE, *arithmetic, *parts(), *stitched(), fetches=["rows"])
    check_rewrite(ShardedGathers(), text, None, declined={"rows": "sharded_table"})


@pytest.mark.parametrize(
    "lines",
    [
        (*parts(), *stitched(a="t1, part:1", b="t2, part")),
        (*parts(places="ids"), *stitched()),
        (*parts(), *stitched(), identity("more", "a")),
        (*parts(), *(line.replace("place, place:1", "place:1, place") for line in stitched())),
    ],
    ids=["shards in another order", "places that do not count up", "another reader", "other places"],
)  # fmt: skip
def test_another_structure(lines: tuple[str, ...]) -> None:
    fetches = ["rows", "more"] if any(line.startswith("more") for line in lines) else ["rows"]
    text = graph(*BASE, *MOD, *lines, fetches=fetches)
    check_rewrite(ShardedGathers(), text, None, declined={"rows": "sharded_table"})


def test_shards_in_another_process_stay_there() -> None:
    home, server = "/job:worker/replica:0/task:0/device:CPU:0", "/job:ps/replica:0/task:0/device:CPU:0"
    lines = [f"{line} @ {home}" if " -> " not in line else line.replace(" -> ", f" @ {home} -> ") for line in BASE]
    lines += [line.replace(" -> ", f" @ {home} -> ") for line in (*MOD, *parts(), *stitched())]
    lines[-2] = lines[-2].replace(home, server)
    check_rewrite(ShardedGathers(), graph(*lines, fetches=["rows"]), None, declined={"rows": "remote_device"})


def test_no_more_than_the_fuel_allows() -> None:
    text = graph(*BASE, *MOD, *parts(), *stitched(), fetches=["rows"])
    check_rewrite(ShardedGathers(), text, None, declined={"rows": "out_of_fuel"}, fuel=0)


def test_a_stitch_of_rows_and_of_something_else_stays() -> None:
    other = arg("a", "float32", "<?,4>", 3)
    lines = (*BASE, *MOD, *parts(), other, *stitched()[1:])
    check_rewrite(ShardedGathers(), graph(*lines, fetches=["rows"]), None, declined={"rows": "sharded_table"})


def test_a_session_may_fetch_the_rows_of_one_shard() -> None:
    head = "\n".join((*BASE, *MOD, *parts(), *stitched()))
    text = graph(head.replace("_Arg() {T = int32, index = 2}", "Placeholder() {dtype = int32}"), fetches=["rows", "a"])
    text = text.replace("_Arg() {T = resource,", "VarHandleOp() {dtype = float32, shape = <10,4>,")
    check_rewrite(ShardedGathers(), text, None, declined={"rows": "sharded_table"})

"""Tables in shards and clipped rows: the packed lookups and the gather give the bits of rows made by NumPy."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from picasso_tf.bridge import library
from tests.support.packed_lookup_calls import natural
from tests.support.packed_pooled_lookup_calls import assert_same_bits, make_bags, one
from tests.support.packed_pooled_lookup_oracle import combine

WIDTHS = st.one_of(st.integers(1, 40), st.sampled_from([63, 64, 65, 72, 96, 100, 128, 130, 200]))


def clipped(rows: np.ndarray, max_norm: float) -> np.ndarray:
    """Rows clipped to a norm; their squares are added in the order of Eigen."""
    if not max_norm:
        return rows
    most = rows.dtype.type(max_norm)
    squares = np.array([_sum(row * row) for row in rows], rows.dtype)
    norms = np.where(squares > 0, np.sqrt(squares), squares)
    return rows * most / np.maximum(norms, most)[:, None]


def _sum(squares: np.ndarray) -> np.floating:
    packet = 32 // squares.itemsize
    chains = 4 if len(squares) >= 8 * packet else 1
    lanes = [np.zeros(packet, squares.dtype) for _ in range(chains)]
    in_chains, in_packets = (len(squares) // size * size for size in (chains * packet, packet))
    for begin in range(0, in_chains, packet):
        lanes[begin // packet % chains] += squares[begin : begin + packet]
    total = lanes[0]
    for lane in lanes[1:]:
        total = total + lane
    for begin in range(in_chains, in_packets, packet):
        total = total + squares[begin : begin + packet]
    while len(total) > 1:
        total = total[: len(total) // 2] + total[len(total) // 2 :]
    rest = squares.dtype.type(0)
    for square in squares[in_packets:]:
        rest = rest + square
    return total[0] + rest


def split(whole: np.ndarray, count: int, consecutive: bool) -> tuple[list[tf.Variable], int, int]:
    """The shards of a table, and the attributes that say how they are made."""
    if not consecutive:
        return [tf.Variable(whole[shard::count]) for shard in range(count)], 0, 0
    rows, extras = divmod(len(whole), count)
    ends = np.cumsum([rows + (shard < extras) for shard in range(count)])
    return [tf.Variable(part) for part in np.split(whole, ends[:-1])], rows, extras


def random_table(seed: int, rows: int, width: int, dtype: type) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, width)).astype(dtype)


def gather(shards: list, ids: np.ndarray, rows: int = 0, extras: int = 0, max_norm: float = 0.0) -> np.ndarray:
    handles = [shard.handle for shard in shards]
    attrs = {"dtype": shards[0].dtype, "shard_rows": rows, "shard_extras": extras, "max_norm": max_norm}
    return library.ops().picasso_table_gather(handles, ids, **attrs).numpy()


def packed(shards: list, ids: np.ndarray, **attrs: list) -> np.ndarray:
    spec = {**natural(1).attributes(), **attrs}
    return (
        library.ops()
        .picasso_packed_lookup(
            tables=[shard.handle for shard in shards],
            ids=[ids],
            dense=[np.zeros([0], shards[0].dtype.as_numpy_dtype)],
            **spec,
        )
        .outputs[0]
        .numpy()
    )


def pooled(shards: list, ids: np.ndarray, segments: np.ndarray, combiner: str, **attrs: list) -> np.ndarray:
    spec = {**one(combiner=combiner).attributes(), **attrs}
    dense = [np.zeros([0], shards[0].dtype.as_numpy_dtype)]
    inputs = {"ids": [ids], "segments": [segments], "rows": [], "dense": dense, "weights": []}
    return library.ops().picasso_packed_pooled_lookup([s.handle for s in shards], **inputs, **spec)[0].numpy()


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 1000),
    count=st.integers(1, 5),
    rows=st.integers(5, 60),
    width=WIDTHS,
    consecutive=st.booleans(),
    max_norm=st.sampled_from([0.0, 0.5, 3.0]),
    dtype=st.sampled_from([np.float32, np.float64]),
    id_dtype=st.sampled_from([np.int32, np.int64]),
    combiner=st.sampled_from(["sum", "mean", "sqrtn"]),
)
def test_rows_of_any_source(seed, count, rows, width, consecutive, max_norm, dtype, id_dtype, combiner):
    whole = random_table(seed, rows, width, dtype)
    shards, shard_rows, extras = split(whole, count, consecutive)
    counts = np.random.default_rng(seed).integers(1, 12, 7)
    ids, segments = make_bags(counts, rows, id_dtype=id_dtype, seed=seed)
    wanted = clipped(whole[ids], max_norm)
    attrs = {"lookup_shards": [count], "lookup_shard_rows": [shard_rows], "lookup_shard_extras": [extras]}
    attrs["lookup_max_norm"] = [max_norm]
    assert_same_bits(gather(shards, ids, shard_rows, extras, max_norm), wanted)
    assert_same_bits(packed(shards, ids, **attrs), wanted)
    bags = [combine(bag, combiner) for bag in np.split(wanted, np.cumsum(counts)[:-1])]
    assert_same_bits(pooled(shards, ids, segments, combiner, **attrs), np.stack(bags))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_clipping_is_that_of_tensorflow(dtype):
    clip = tf.function(lambda rows: tf.clip_by_norm(rows, dtype(1.5), axes=[1]))
    for width in [*range(1, 140), 200, 256, 1000, 1024, 4096]:
        whole = random_table(width, 9, width, dtype)
        whole[3], whole[4, 0], whole[5, 0], whole[6] = 0, np.inf, -np.inf, 1e-30
        found = gather([tf.Variable(whole)], np.arange(9), max_norm=1.5)
        assert_same_bits(np.nan_to_num(found), np.nan_to_num(clip(whole).numpy()))
        assert np.array_equal(np.isnan(found), np.isnan(clip(whole).numpy()))
    nan = np.full((3, 5), np.nan, dtype)
    assert np.isnan(gather([tf.Variable(nan)], np.arange(3), max_norm=1.5)).all()


def test_rows_without_elements_and_ids_of_any_shape():
    shards = [tf.Variable(tf.zeros([4, 0])), tf.Variable(tf.zeros([3, 0]))]
    assert gather(shards, np.zeros((2, 3), np.int32)).shape == (2, 3, 0)
    shards = [tf.Variable([[1.0], [3.0]]), tf.Variable([[2.0]])]
    assert gather(shards, np.array([[0, 1], [2, 0]])).tolist() == [[[1.0], [2.0]], [[3.0], [1.0]]]
    assert gather(shards, np.array(2)).tolist() == [3.0]


@pytest.mark.parametrize("bad", [-1, 3, 7])
def test_an_id_without_a_row(bad):
    shards = [tf.Variable(tf.ones([2, 2])), tf.Variable(tf.ones([1, 2]))]
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=rf"indices\[1\] = {bad} has no row in any of the 2 shards"
    ):
        gather(shards, np.array([0, bad]))
    attrs = {"lookup_shards": [2], "lookup_shard_rows": [0], "lookup_shard_extras": [0]}
    with pytest.raises(tf.errors.InvalidArgumentError, match="has no row in any of the 2 shards"):
        pooled(shards, np.array([0, bad]), np.array([0, 0]), "sum", **attrs)


def test_what_is_no_table():
    shards = [tf.Variable(tf.ones([2, 2])), tf.Variable(tf.ones([1, 3]))]
    with pytest.raises(tf.errors.InvalidArgumentError, match="must have rows of one shape"):
        gather(shards, np.array([0]))
    sharded = {"lookup_shards": [3], "lookup_shard_rows": [0], "lookup_shard_extras": [0]}
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"`lookup_shards\[0\]` must be in \[1, 3\)"):
        packed(shards, np.array([0]), **sharded)
    with pytest.raises(tf.errors.InvalidArgumentError, match="`lookup_shard_rows` must have one entry"):
        packed(shards, np.array([0]), lookup_shards=[2])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"`lookup_max_norm\[0\]` must be 0, or above 0"):
        packed(shards, np.array([0]), lookup_max_norm=[-1.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"`lookup_max_norm\[0\]` must be 0, or above 0"):
        packed([tf.Variable(tf.ones([2, 2], tf.float16))], np.array([0]), lookup_max_norm=[1.0])

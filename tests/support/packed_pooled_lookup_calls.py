"""Small calls of `Picasso>PackedPooledLookup`: ids with their rows, and the raw op as the graph pass emits it."""

import numpy as np

from picasso_tf.bridge import library
from tests.support import packed_pooled_lookup_oracle as oracle
from tests.support.packed_lookup_oracle import Output
from tests.support.packed_pooled_lookup_oracle import Lookup, Spec


def make_bags(counts, rows, *, id_dtype=np.int32, segment_dtype=np.int64, seed=0):
    """Ids of `counts[r]` random table rows for each output row r, and their segments."""
    ids = np.random.default_rng(seed).integers(0, rows, sum(counts)).astype(id_dtype)
    return ids, np.repeat(np.arange(len(counts)), counts).astype(segment_dtype)


def splits_of(counts, dtype=np.int64):
    return np.concatenate([[0], np.cumsum(counts)]).astype(dtype)


def run(spec, tables, ids, segments, rows=(), dense=(), weights=()):
    """Calls the raw op as the graph pass emits it. Returns the outputs as arrays."""
    if not dense:
        dense = [np.zeros([0], tables[0].dtype.as_numpy_dtype)]  # names the dtype; no piece reads it
    outputs = library.ops().picasso_packed_pooled_lookup(
        tables=[table.handle for table in tables],
        ids=ids,
        segments=segments,
        rows=list(rows),
        dense=dense,
        weights=list(weights),
        **spec.attributes(),
    )
    return [output.numpy() for output in outputs]


def check(spec, tables, ids, segments, rows=(), dense=(), weights=()):
    """Asserts that op and oracle give the same bits."""
    arrays = [table.numpy() for table in tables]
    wanted = oracle.packed_pooled_lookup(spec, arrays, ids, segments, rows, list(dense), weights)
    for found, one in zip(run(spec, tables, ids, segments, rows, dense, weights), wanted, strict=True):
        assert_same_bits(found, one)


def assert_same_bits(found, wanted):
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    np.testing.assert_array_equal(found.astype(np.float64), wanted.astype(np.float64))  # tells where they differ
    assert found.tobytes() == wanted.tobytes()


def one(**lookup):
    """A spec of one lookup with an output of its own; its rows, if any, are input 0."""
    return Spec((Lookup(0, 0, 0, name="one", **lookup),), (Output(((0, 0),)),), (False,))

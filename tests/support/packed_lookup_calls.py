"""Small calls of `Picasso>PackedLookup`: tables, ids, and the raw op as the graph pass emits it."""

import numpy as np
import tensorflow as tf

from picasso_tf.bridge import library
from tests.support import packed_lookup_oracle as oracle
from tests.support.packed_lookup_oracle import Lookup, Output, Spec


def make_table(rows, *row_shape, dtype=tf.float32, seed=0):
    values = np.random.default_rng(seed).standard_normal((rows, *row_shape))
    return tf.Variable(tf.cast(values, dtype))


def make_ids(shape, rows, dtype=np.int32, seed=0):
    return np.random.default_rng(seed).integers(0, rows, shape).astype(dtype)


def run(spec, tables, ids, dense=()):
    """Calls the raw op as the graph pass emits it. Returns (outputs, shapes) as arrays."""
    if not dense:
        dense = [np.zeros([0], tables[0].dtype.as_numpy_dtype)]  # names the dtype; no piece reads it
    result = library.ops().picasso_packed_lookup(
        tables=[table.handle for table in tables], ids=ids, dense=dense, **spec.attributes()
    )
    return [x.numpy() for x in result.outputs], [x.numpy() for x in result.shapes]


def check(spec, tables, ids, dense=()):
    """Asserts that op and oracle give the same bits."""
    wanted = oracle.packed_lookup(spec, [table.numpy() for table in tables], ids, list(dense))
    found = run(spec, tables, ids, dense)
    for found_list, wanted_list in zip(found, wanted, strict=True):
        for one_found, one_wanted in zip(found_list, wanted_list, strict=True):
            assert one_found.dtype == one_wanted.dtype
            assert one_found.shape == one_wanted.shape
            assert one_found.tobytes() == one_wanted.tobytes()


def natural(count, **lookup):
    """Each of `count` lookups to an output of its own."""
    lookups = tuple(Lookup(i, i, name=f"lookup_{i}", **lookup) for i in range(count))
    return Spec(lookups, tuple(Output(((i, 0),)) for i in range(count)))

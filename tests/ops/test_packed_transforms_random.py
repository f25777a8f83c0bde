"""Random programs give what their oracle gives, on any number of threads and while tables are written."""

import hashlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from picasso_tf.ops import Program, packed_transforms
from tests.support import packed_transforms_oracle as oracle
from tests.support.packed_transforms_calls import (
    BOUNDARIES,
    OTHERS,
    SCALARS,
    TABLES,
    TEXTS,
    HashTable,
    check,
    random_programs,
    random_values,
)
from tests.support.threads import read_while_writing

SIZES = st.sampled_from([0, 1, 2, 3, 30, 511, 512, 513, 1024, 2047, 2048, 2049, 3000])
SHAPES = SIZES.map(lambda size: (size,)) | st.lists(st.integers(0, 12), max_size=3).map(tuple)


@pytest.fixture(scope="module")
def tables():
    return [HashTable.of(contents, *dtypes) for dtypes, contents in TABLES.items()]


def check_unless_refused(features, programs, tables, others=()):
    """As `check`; where the oracle divides by zero, the op must refuse."""
    given = {"scalars": SCALARS, "boundaries": BOUNDARIES, "others": others, "texts": TEXTS}
    try:
        with np.errstate(all="ignore"):
            oracle.packed_transforms(features, programs, tables=[table.contents for table in tables], **given)
    except ZeroDivisionError:
        with pytest.raises(tf.errors.InvalidArgumentError, match="Integer division by zero"):
            packed_transforms(features, programs, tables=[table.table.resource_handle for table in tables], **given)
        return
    check(features, programs, tables=tables, **given)


def feature_of(drawn, shape, seed=0):
    """A random feature for a random program. What a mask takes a part of is no scalar."""
    dtype, program = drawn
    takes = any(value == "indices" for value, _ in program.outputs)
    return random_values(dtype, shape or (1,) if takes else shape, seed)


@settings(deadline=None, max_examples=200)
@given(random_programs(others=OTHERS), SHAPES, st.integers(0, 2**32 - 1))
def test_random_programs(tables, drawn, shape, seed):
    if drawn[1].outputs:
        feature = feature_of(drawn, shape, seed)
        others = [random_values(dtype, feature.shape, seed // 2) for dtype in OTHERS]
        check_unless_refused([feature], [drawn[1]], tables, others)


@settings(deadline=None, max_examples=20)
@given(st.lists(st.tuples(random_programs(max_instructions=5), SHAPES), min_size=2, max_size=12))
def test_random_programs_of_many_features(tables, drawn):
    features = [feature_of(*pair, seed) for seed, pair in enumerate(drawn)]
    programs = [program for (_, program), _ in drawn]
    programs[0] = Program(["equal x x"], [("v0", "bool")])  # one output at least
    check_unless_refused(features, programs, tables)


def digest():
    """A hash of what many features give, large ones and small ones, with masks and tables."""
    table = HashTable.of({b"a": 0, b"cat": 5})
    lines = ["not_equal x c0", "take x v0", "find v1 c1 0 int64", "hash_fast x 1000", "as_string v3", "hash_fast v4 9"]
    outputs = [("v0", "bool"), ("v2", "int64"), ("v5", "int64"), ("indices", "int64")]
    features = [random_values("string", [size], size) for size in (0, 5, 9000, 512, 20000, 1, 4096, 3)]
    results = packed_transforms(
        features,
        [Program(lines, outputs)] * len(features),
        scalars=[tf.constant(""), np.int64(-1)],
        tables=[table.table.resource_handle],
    )
    return hashlib.sha256(b"".join(result.numpy().tobytes() for found in results for result in found)).hexdigest()


def test_the_number_of_threads_changes_nothing():
    here = {digest() for _ in range(10)}
    assert len(here) == 1
    script = (
        "import sys, tensorflow as tf; tf.config.threading.set_intra_op_parallelism_threads(int(sys.argv[1]));"
        "from tests.ops.test_packed_transforms_random import digest; print(digest())"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", script, threads], stdout=subprocess.PIPE, text=True)
        for threads in ("1", "7")
    ]
    assert {process.communicate()[0].strip() for process in started} == here


def test_many_calls_at_once_while_a_table_is_written():
    """Each lookup gives what was there before or after a write, and what no write touches always the same."""
    table = tf.lookup.experimental.MutableHashTable("string", "int64", -1)
    table.insert(["a", "cat"], tf.constant([3, 0], tf.int64))
    words = random_values("string", [5000])
    program = Program(["find x c0 0 int64", "hash_fast x 50"], [("v0", "int64"), ("v1", "int64")])
    hashes = tf.strings.to_hash_bucket_fast(words, 50).numpy()

    def write(number):
        value = number % 1000
        table.insert(["cat", f"key {value}"], tf.constant([value, value], tf.int64))

    def read():
        found, hashed = packed_transforms(
            [words, words], [program] * 2, scalars=[np.int64(-1)], tables=[table.resource_handle]
        )[1]
        found = found.numpy()
        assert hashed.numpy().tolist() == hashes.tolist()
        assert set(found[words == b"a"]) == {3}
        assert set(found[(words != b"a") & (words != b"cat")]) == {-1}
        assert 0 <= found[words == b"cat"].min() <= found[words == b"cat"].max() < 1000

    read_while_writing(read, write, readers=8, times=60)

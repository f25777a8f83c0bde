"""The packed updates on gradients whose rows are of equally many ids each, as sums along an axis have them."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.test_packed_update import BOTH, numbers
from tests.ops.test_packed_update_pools import DTYPES, RULES, WHOLE, check, one_segment
from tests.ops.test_packed_update_pools_errors import SPEC, check_refused
from tests.support import packed_update_oracle as oracle
from tests.support.packed_update_oracle import Segment, Spec, Table

EVEN = ((-2, "sum"),)


def test_the_ids_of_an_example_share_its_row():
    """By hand: three examples of two ids, of which a mask hides one."""
    segment = Segment(0, 0, ((0, *WHOLE),), pools=EVEN, weights=(0,))
    spec = Spec(("scatter_add s0 g0",), ("v0",), (Table((0,)),), (segment,))
    variable, mask = tf.Variable(tf.zeros([4, 1])), np.array([[True, True], [False, True], [True, True]])
    gradients = [np.float32([[1.0], [10.0], [100.0]])]
    oracle.run(spec, False, [variable], [np.array([[0, 1], [2, 1], [3, 3]])], gradients, [], [], [mask])
    assert variable.numpy().ravel().tolist() == [1, 11, 0, 200]


@BOTH
@pytest.mark.parametrize("kind", ["plain", "weights", "mask"])
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("rule", RULES)
def test_rules(rule, dtype, kind, all_rows):
    random = np.random.default_rng(0)
    for rows, width, examples, length in (
        (9, 8, 7, 3),
        (40, 5, 20, 1),
        (3000, 16, 9, 50),
        (7, 1030, 4, 2),
        (5, 3, 0, 4),
    ):
        ids = random.integers(0, rows, (examples, length))
        segment = Segment(0, 0, ((0, *WHOLE),), pools=EVEN, weights=() if kind == "plain" else (0,))
        spec, variables, scalars = one_segment(rule, (rows, width), dtype, segment)
        weights = {"plain": [], "weights": [numbers(ids.shape, dtype)], "mask": [random.random(ids.shape) < 0.5]}[kind]
        check(spec, all_rows, variables, [ids], [numbers((examples, width), dtype)], scalars, [], weights)


@BOTH
def test_a_mask_hides_infinities_and_nans(all_rows):
    segment = Segment(0, 0, ((0, *WHOLE),), pools=EVEN, weights=(0,))
    spec, variables, scalars = one_segment("sgd", (4, 3), tf.float32, segment)
    gradients = [np.float32([[np.inf, np.nan, -0.0], [1, 2, 3]])]
    ids, mask = np.array([[0, 1], [2, 2]]), np.array([[False, False], [True, False]])
    check(spec, all_rows, variables, [ids], gradients, scalars, [], [mask])


@settings(max_examples=60, deadline=None)
@given(
    rule=st.sampled_from(sorted(RULES)),
    rows=st.integers(1, 300),
    width=st.integers(1, 20),
    examples=st.lists(st.integers(0, 9), min_size=1, max_size=3),
    length=st.integers(1, 20),
    pitch=st.integers(0, 9),
    kind=st.sampled_from(["plain", "weights", "mask"]),
    all_rows=st.booleans(),
    seed=st.integers(0, 99),
)
def test_random_segments_beside_others(rule, rows, width, examples, length, pitch, kind, all_rows, seed):
    """Segments of one table: evenly pooled ones, in columns of a wider matrix, and one with a row for each id."""
    random = np.random.default_rng(seed)
    ids = [random.integers(0, rows, (count, length)) for count in examples] + [random.integers(0, rows, 5)]
    gradients = [numbers((count, width + pitch), tf.float32, seed=n) for n, count in enumerate(examples)]
    gradients.append(numbers((5, width), tf.float32))
    weights = [] if kind == "plain" else [numbers(one.shape, tf.float32, seed=n) for n, one in enumerate(ids[:-1])]
    weights = [one > 0 for one in weights] if kind == "mask" else weights
    segments = [
        Segment(0, n, ((n, pitch, width, width + pitch),), pools=EVEN, weights=(n if weights else -1,))
        for n in range(len(examples))
    ]
    segments.append(Segment(0, len(examples), ((len(examples), *WHOLE),)))
    spec, variables, scalars = one_segment(rule, (rows, width), tf.float32, segments[0])
    spec = Spec(spec.program, spec.results, spec.tables, tuple(segments))
    check(spec, all_rows, variables, ids, gradients, scalars, [], weights)


@BOTH
def test_ids_that_cannot_share_are_refused(all_rows):
    segment = Segment(0, 0, ((0, *WHOLE),), pools=EVEN)
    spec = Spec(SPEC.program, SPEC.results, SPEC.tables, (segment,))
    check_refused("has 3 rows, which 4 ids cannot share evenly.", all_rows, spec, pools=())

"""The packed updates on gradients of pooled ids with weights give the bits of their oracle."""

import numpy as np
import pytest
import tensorflow as tf

from tests.ops.test_packed_update import BOTH, numbers
from tests.ops.test_packed_update_pools import COUNTS, DTYPES, RULES, WHOLE, check, one_segment, owners_of, pool_of
from tests.support import packed_update_oracle as oracle
from tests.support.packed_update_oracle import Segment, Spec, Table


def test_an_id_multiplies_the_gradient_by_its_weight():
    """By hand: rows 0 and 1 of the gradient have two ids and one, of weights 2, -1 and 0.5."""
    segment = Segment(0, 0, ((0, *WHOLE),), pools=((0, "sum"),), weights=(0,))
    spec = Spec(("scatter_add s0 g0",), ("v0",), (Table((0,)),), (segment,))
    variable, weights = tf.Variable(tf.zeros([4, 1])), np.float32([[2], [-1], [0.5]])
    gradients = [np.float32([[3.0], [100.0]])]
    oracle.run(spec, False, [variable], [np.array([1, 2, 2])], gradients, [], [np.array([0, 0, 1])], [weights])
    assert variable.numpy().ravel().tolist() == [0, 6, 47, 0]


@BOTH
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("fill", [-1, 5])
@pytest.mark.parametrize("rule", RULES)
def test_rules_on_gradients_of_weighted_ids(rule, fill, dtype, all_rows):
    """In any order of rows, so that with a fill they are put in order."""
    owners = np.random.default_rng(1).permutation(owners_of(COUNTS))
    for rows, width in ((9, 8), (40, 5), (3000, 16), (7, 1030)):
        ids = np.random.default_rng(0).integers(-9 if fill >= 0 else 0, rows, len(owners))
        segment = Segment(0, 0, ((0, *WHOLE),), pools=((0, "sum"),), fill=fill, weights=(0,))
        spec, variables, scalars = one_segment(rule, (rows, width), dtype, segment)
        gradients, weights = [numbers((len(COUNTS), width), dtype, seed=7)], [numbers(len(owners), dtype, seed=8)]
        check(spec, all_rows, variables, [ids], gradients, scalars, [pool_of(owners)], weights)

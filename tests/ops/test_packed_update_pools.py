"""The packed updates on gradients of pooled lookups give the bits of their oracle."""

import re

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.test_packed_update import ADAGRAD, ADAM, BOTH, SGD, bits, numbers, programs
from tests.support import packed_update_oracle as oracle
from tests.support.packed_pooled_lookup_oracle import COMBINERS
from tests.support.packed_update_oracle import Segment, Spec, Table

DTYPES = (tf.float32, tf.float64)
WHOLE = (0, 0, 0)  # first, span and pitch of a gradient that is read as it is
UNIQUE_ADAGRAD = (  # as on the distinct rows
    (
        *("segment_sum g0", "square v0", "touched_add s1 v1", "add v2 p1", "unique_rsqrt v3", "mul v0 p0"),
        *("mul v5 v4", "touched_sub s0 v6"),
    ),
    ("v7", "v2"),
)
LAZY_MOMENTUM = (("segment_sum g0", "mul s1 p1", "add v1 v0", "mul v2 p0", "sub s0 v3"), ("v4", "v2"))
RULES = {  # with the numbers of states and parameters
    "sgd": (SGD, 1, 1),
    "adagrad": (ADAGRAD, 2, 2),
    "adam": (ADAM, 3, 4),
    "unique_adagrad": (UNIQUE_ADAGRAD, 2, 2),
    "lazy_momentum": (LAZY_MOMENTUM, 2, 2),
}
COUNTS = [3, 0, 1, 12, 2, 0, 0, 7, 1, 100, 5, 0]  # ids of each pooled row


def check(spec, all_rows, variables, ids, gradients, scalars, pools, weights=()):
    """Asserts that op and oracle give the same bits."""
    held = [tf.Variable(variable) for variable in variables]
    wanted = oracle.packed_update(spec, all_rows, variables, ids, gradients, scalars, pools, weights)
    oracle.run(spec, all_rows, held, ids, gradients, scalars, pools, weights)
    for found, value in zip(held, wanted, strict=True):
        assert found.numpy().dtype == value.dtype
        assert bits(found.numpy()) == bits(value)


def pool_of(owners, dtype=np.int64, *, matrix=False):
    """The rows that ids belong to, as a vector or as the indices of a SparseTensor."""
    return (np.stack([owners, np.arange(len(owners)) + 5000], 1) if matrix else owners).astype(dtype)


def owners_of(counts):
    return np.repeat(np.arange(len(counts)), counts)


def one_segment(rule, shape, dtype, segment, *, drop_negative=False):
    """A table of a shape under a rule, with one segment: spec, variables and scalars."""
    (program, results), num_states, num_parameters = RULES[rule]
    variables = [numbers(shape, dtype, seed=i, least=-2.0 if i == 0 else 0.0) for i in range(num_states)]
    scalars = [np.array(value, dtype.as_numpy_dtype) for value in (0.1, 0.3, 0.7, 1e-2)[:num_parameters]]
    table = Table(tuple(range(num_states)), tuple(range(num_parameters)))
    return Spec(program, results, (table,), (segment,), drop_negative), variables, scalars


def check_rule(rule, all_rows, *, shape=(40, 5), dtype=tf.float32, combiner="mean", owners=None, ids=None, fill=-1):
    owners = owners_of(COUNTS) if owners is None else owners
    ids = np.random.default_rng(len(owners)).integers(0, shape[0], len(owners)) if ids is None else ids
    num_rows = max(len(COUNTS), owners.max(initial=0) + 1)
    segment = Segment(0, 0, ((0, *WHOLE),), pools=((0, combiner),), fill=fill)
    spec, variables, scalars = one_segment(rule, shape, dtype, segment)
    gradients = [numbers((num_rows, *shape[1:]), dtype, seed=7)]
    check(spec, all_rows, variables, [ids], gradients, scalars, [pool_of(owners)])


@BOTH
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("combiner", COMBINERS)
@pytest.mark.parametrize("rule", RULES)
def test_rules_on_sparse_and_crowded_tables(rule, combiner, dtype, all_rows):
    for rows, width in ((9, 8), (40, 5), (262, 1), (263, 1), (264, 1), (3000, 16), (7, 1030), (300, 33)):
        check_rule(rule, all_rows, shape=(rows, width), dtype=dtype, combiner=combiner)


@BOTH
@pytest.mark.parametrize("combiner", COMBINERS)
@pytest.mark.parametrize("rule", RULES)
def test_a_fill_stands_for_each_row_that_no_id_is_left_for(rule, combiner, all_rows):
    owners = owners_of(COUNTS)
    for rows, width in ((9, 8), (40, 5), (3000, 1), (7, 1030)):
        ids = np.random.default_rng(0).integers(0, rows, len(owners))
        ids[::3] = -1 - ids[::3]
        ids[owners == 2] = -7
        for fill in (0, rows - 1):
            check_rule(rule, all_rows, shape=(rows, width), combiner=combiner, ids=ids, owners=owners, fill=fill)


def test_a_fill_is_updated_with_a_gradient_of_zero_and_counts_in_no_row():
    """By hand: row 0 of the gradient has ids 1 and 1, row 1 only a negative one, row 2 none."""
    segment = Segment(0, 0, ((0, *WHOLE),), pools=((0, "mean"),), fill=2)
    program = ("segment_sum g0", "scatter_add s1 p0", "scatter_add s0 g0")
    spec = Spec(program, ("v2", "v1"), (Table((0, 1), (0,)),), (segment,))
    variables = [tf.Variable(tf.zeros([4, 1])) for _ in range(2)]
    gradients = [np.float32([[3.0], [100.0], [1000.0]])]
    oracle.run(spec, False, variables, [np.array([1, -1, 1, -1])], gradients, [np.float32(1)], [np.array([0, 0, 0, 1])])
    assert variables[0].numpy().ravel().tolist() == [0, 3, 0, 0]
    assert variables[1].numpy().ravel().tolist() == [0, 2, 2, 0]


@BOTH
@pytest.mark.parametrize("fill", [-1, 3])
@pytest.mark.parametrize("matrix", [False, True], ids=["vector", "matrix"])
@pytest.mark.parametrize("pool_dtype", [np.int32, np.int64])
@pytest.mark.parametrize("id_dtype", [np.int32, np.int64])
def test_all_forms_of_pools(id_dtype, pool_dtype, matrix, fill, all_rows):
    owners = np.random.default_rng(1).permutation(owners_of(COUNTS))  # in any order
    ids = np.random.default_rng(2).integers(0 if fill < 0 else -9, 40, len(owners)).astype(id_dtype)
    segment = Segment(0, 0, ((0, *WHOLE),), pools=((0, "mean"),), fill=fill)
    spec, variables, scalars = one_segment("adagrad", (40, 3), tf.float32, segment)
    gradients = [numbers((len(COUNTS), 3), tf.float32)]
    check(spec, all_rows, variables, [ids], gradients, scalars, [pool_of(owners, pool_dtype, matrix=matrix)])


@BOTH
@pytest.mark.parametrize("rule", ["adagrad", "adam", "unique_adagrad"])
def test_gradients_in_columns_of_a_wider_matrix(rule, all_rows):
    owners = owners_of(COUNTS)
    ids = [np.random.default_rng(0).integers(-5, 40, len(owners))]
    for first, width, pitch in ((0, 4, 4), (0, 4, 20), (7, 4, 20), (16, 4, 20), (3, 8, 12), (30, 1100, 1131)):
        for fill in (-1, 5):
            segment = Segment(0, 0, ((0, first, width, pitch),), wrap=5 * (fill < 0), pools=((0, "sqrtn"),), fill=fill)
            spec, variables, scalars = one_segment(rule, (40, width), tf.float32, segment)
            gradients = [numbers((len(COUNTS), pitch), tf.float32)]
            check(spec, all_rows, variables, ids, gradients, scalars, [pool_of(owners)])


@BOTH
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("rows", [30, 5000])
def test_segments_with_and_without_pools_of_one_table(rule, rows, all_rows):
    owners, random = owners_of(COUNTS), np.random.default_rng(0)
    ids = [random.integers(0, 30, 40), random.integers(-9, 30, len(owners)), random.integers(0, 30, len(owners))]
    segments = (
        Segment(0, 0, ((0, *WHOLE),)),
        Segment(0, 1, ((1, 4, 4, 9),), pools=((0, "mean"),), fill=1),
        Segment(0, 0, ((0, *WHOLE),)),
        Segment(0, 2, ((1, 5, 4, 9),), pools=((0, "sum"),)),
    )
    spec, variables, scalars = one_segment(rule, (rows, 4), tf.float32, segments[0])
    spec = Spec(spec.program, spec.results, spec.tables, segments)
    gradients = [numbers((40, 4), tf.float32), numbers((len(COUNTS), 9), tf.float32, seed=1)]
    check(spec, all_rows, variables, ids, gradients, scalars, [pool_of(owners, np.int32)])


@BOTH
@pytest.mark.parametrize("fill", [-1, 0])
def test_two_row_gradients_with_pools_of_their_own(fill, all_rows):
    owners = owners_of(COUNTS)
    program = ("mul g0 g1", "scatter_add s0 v0", "square g1", "scatter_sub v1 v2", "segment_sum g0", "add v4 s1")
    ids = [np.random.default_rng(0).integers(0 if fill < 0 else -9, 20, len(owners))]
    gradients = [numbers((n, 6), tf.float32, seed=n) for n in (len(COUNTS), 4, len(owners))]
    pools = [pool_of(owners), pool_of(owners % 4, np.int32, matrix=True)]
    for given_pools in (((0, "mean"), (1, "sqrtn")), ((0, "mean"), (0, "sum")), ((1, "sum"), (-1, "sum"))):
        if fill >= 0 and given_pools[1][0] != given_pools[0][0]:
            continue  # which is refused
        read = tuple((2 if pool < 0 else pool, *WHOLE) for pool, _ in given_pools)
        segments = (Segment(0, 0, read, pools=given_pools, fill=fill),)
        spec = Spec(program, ("v3", "v5"), (Table((0, 1)),), segments, num_row_gradients=2)
        check(spec, all_rows, [numbers((20, 6), tf.float32)] * 2, ids, gradients, [], pools)


@BOTH
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("fill", [-1, 0, 8])
def test_nothing_is_pooled(rule, fill, all_rows):
    for num_rows in (0, 1, 6):  # rows of the gradient, with no id but negative ones
        for ids in (np.zeros(0, np.int64), np.full(num_rows if fill >= 0 else 0, -3)):
            segment = Segment(0, 0, ((0, *WHOLE),), pools=((0, "mean"),), fill=fill)
            spec, variables, scalars = one_segment(rule, (9, 4), tf.float32, segment)
            for matrix in (False, True):
                pool = pool_of(np.arange(len(ids)), matrix=matrix)
                gradients = [numbers((num_rows, 4), tf.float32)]
                check(spec, all_rows, variables, [ids], gradients, scalars, [pool])


@BOTH
@pytest.mark.parametrize("rule", RULES)
def test_one_row_with_more_ids_than_a_buffer(rule, all_rows):
    ids = np.repeat([7, 3, 7, 9, 7], [900, 2, 700, 1, 800])
    check_rule(rule, all_rows, shape=(40, 16), ids=ids, owners=np.sort(np.arange(2403) % 11))
    check_rule(rule, all_rows, shape=(40, 16), ids=ids, owners=np.zeros(2403, np.int64), fill=7)
    check_rule(rule, all_rows, shape=(40, 16), ids=np.zeros(0, np.int64), owners=np.zeros(0, np.int64), fill=7)


@BOTH
def test_without_a_fill_a_dropped_id_still_counts_in_its_row(all_rows):
    owners = owners_of(COUNTS)
    ids = np.random.default_rng(0).integers(-20, 40, len(owners))
    segment = Segment(0, 0, ((0, *WHOLE),), pools=((0, "mean"),))
    spec, variables, scalars = one_segment("sgd", (40, 3), tf.float32, segment, drop_negative=True)
    gradients = [numbers((len(COUNTS), 3), tf.float32)]
    check(spec, all_rows, variables, [ids], gradients, scalars, [pool_of(owners)])


@BOTH
def test_many_ids_of_many_tables_are_split_over_threads(all_rows):
    """More ids than one thread takes; rows with very many ids and with none; the same bits each time."""
    random, shapes = np.random.default_rng(0), [(20, 8), (9000, 16), (70000, 3), (500, 33), (30000, 8)]
    (program, results), num_states, _ = RULES["adagrad"]
    variables, ids, gradients, pools, tables, segments = [], [], [], [], [], []
    for i, (rows, row) in enumerate(shapes):
        counts = np.where(random.random(2000) < 0.01, 200, random.integers(0, 6, 2000))
        owners = owners_of(counts)
        variables += [numbers((rows, row), tf.float32, seed=k, least=0.0) for k in range(num_states)]
        ids.append(np.minimum(random.zipf(1.3, len(owners)), rows) - random.integers(1, 3, len(owners)))
        gradients.append(numbers((2000, row + 4), tf.float32, seed=i))
        pools.append(pool_of(owners, matrix=i % 2))
        tables.append(Table((2 * i, 2 * i + 1), (0, 1)))
        where = (i, i, row, row + 4)
        segments.append(Segment(i, i, (where,), pools=((i, COMBINERS[i % 3]),), fill=rows // 2))
    spec, scalars = Spec(program, results, tuple(tables), tuple(segments)), [np.float32(0.1), np.float32(0.3)]
    for _ in range(3):
        check(spec, all_rows, variables, ids, gradients, scalars, pools)
    pools[2] = np.where(np.arange(len(pools[2])) >= 4000, -1, pools[2])
    held = [tf.Variable(variable) for variable in variables]
    first = next(j for j in range(4000, len(ids[2])) if ids[2][j] >= 0)
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=f"entry {first} of pool 2 is row -1 of a gradient that has"
    ):
        oracle.run(spec, all_rows, held, ids, gradients, scalars, pools)
    for found, value in zip(held, variables, strict=True):
        assert found.numpy().tobytes() == value.tobytes()


@st.composite
def calls(draw):
    """A random call: tables with segments that are pooled or not, filled or not, crowded or not."""
    dtype, num_states = draw(st.sampled_from(DTYPES)), draw(st.integers(1, 3))
    program, results = draw(programs(num_states))
    if draw(st.booleans()):
        program = tuple(re.sub(r"^rsqrt (?=[st]\d)", "unique_rsqrt ", one) for one in program)
    ids, gradients, pools, segments, tables, variables, weights = [], [], [], [], [], [], []
    for t in range(draw(st.integers(1, 3))):
        rows, row = draw(st.sampled_from([1, 2, 7, 30, 190, 700])), draw(st.sampled_from([1, 2, 3, 5, 8, 33]))
        variables += [numbers((rows, row), dtype, seed=draw(st.integers(0, 9))) for _ in range(num_states)]
        gradients.append(numbers((rows, row), dtype, seed=t))
        states = tuple(range(t * num_states, (t + 1) * num_states))
        tables.append(Table(states, (0, 1), (len(gradients) - 1,)))
        for _ in range(draw(st.integers(0, 3))):
            fill = draw(st.integers(-1, rows - 1))
            random = np.random.default_rng(len(ids))
            count, hot = draw(st.sampled_from([0, 1, 7, 40, 300])), draw(st.integers(1, rows))
            values = random.integers(0 if fill < 0 else -hot, hot, count)
            ids.append(values.astype(draw(st.sampled_from([np.int32, np.int64]))))
            read, given_pools, given_weights = [], [], []
            for g in range(2):
                pooled, again = fill >= 0 or draw(st.booleans()), fill >= 0 and g == 1  # with a fill the same pool
                if not again:
                    num_rows = draw(st.sampled_from([1, 3, 50])) if pooled else count
                first, more = draw(st.integers(0, 3)), draw(st.integers(0, 2))
                pitch = first + row + more
                as_it_is = pitch == row or not num_rows
                where = WHOLE if as_it_is else (first, row, pitch)
                gradients.append(numbers((num_rows, row if as_it_is else pitch), dtype, seed=len(gradients)))
                read.append((len(gradients) - 1, *where))
                given_pools.append((len(pools) - again if pooled else -1, draw(st.sampled_from(COMBINERS))))
                weighted = given_pools[-1][0] >= 0 and given_pools[-1][1] == "sum" and draw(st.booleans())
                given_weights.append(len(weights) if weighted else -1)
                if weighted:
                    weights.append(numbers((count, 1), dtype, seed=len(weights)))
                if pooled and not again:
                    owners = random.integers(0, num_rows, count)
                    owners = np.sort(owners) if draw(st.booleans()) else owners
                    pool_dtype = draw(st.sampled_from([np.int32, np.int64]))
                    pools.append(pool_of(owners, pool_dtype, matrix=draw(st.booleans())))
            options = {"pools": tuple(given_pools), "fill": fill, "weights": tuple(given_weights)}
            segments.append(Segment(t, len(ids) - 1, tuple(read), **options))
    scalars = [np.array(value, dtype.as_numpy_dtype) for value in (0.3, -1.7)]
    spec = Spec(program, results, tuple(tables), tuple(segments), num_row_gradients=2)
    return spec, draw(st.booleans()), variables, ids, gradients, scalars, pools, weights


@settings(max_examples=300, deadline=None)
@given(calls())
def test_random_calls(call):
    check(*call)

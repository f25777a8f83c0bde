"""The packed updates on gradients of pooled lookups give the bits of TensorFlow's own ops."""

import numpy as np
import pytest
import tensorflow as tf

from picasso_tf.ops import UpdateTable, packed_dense_update, packed_sparse_update
from picasso_tf.ops.packed_update import PooledGradient
from tests.ops.test_packed_update import ADAM, BOTH, numbers
from tests.ops.test_packed_update_pools import LAZY_MOMENTUM, UNIQUE_ADAGRAD, owners_of
from tests.support import packed_update_oracle as oracle
from tests.support.packed_pooled_lookup_oracle import COMBINERS
from tests.support.packed_update_oracle import Segment, Spec, Table

DTYPES = (tf.float32, tf.float64)
WIDTHS = (1, 3, 8, 16, 33)
COUNTS = (0, *range(12), 0, 100, 1, 30)  # ids of each pooled row
GRADIENTS = {
    "sum": tf.raw_ops.SparseSegmentSumGrad,
    "mean": tf.raw_ops.SparseSegmentMeanGrad,
    "sqrtn": tf.raw_ops.SparseSegmentSqrtNGrad,
}
SGD = (("segment_sum g0", "mul v0 p0", "touched_sub s0 v1"), ("v2",))  # of distinct rows
RATES = (0.1, 0.3, 0.7, 1e-2)
COMBINER = pytest.mark.parametrize("combiner", COMBINERS)
DTYPE = pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)


def random_values(shape, dtype, seed=0):
    """With all of their bits in use, none of them near 0."""
    random = np.random.default_rng(seed)
    return ((random.random(shape) + 0.5) * random.choice([-1, 1], shape)).astype(dtype.as_numpy_dtype)


def distinct_rows(gradient, ids, owners, combiner):
    """The gradient of the distinct rows that ids name, as the gradients of the SparseSegment ops give it."""
    distinct, where = tf.unique(ids)
    values = GRADIENTS[combiner](grad=gradient, indices=where, segment_ids=owners, output_dim0=tf.size(distinct))
    return tf.IndexedSlices(values, distinct)


def stock_sgd(states, slices, p):
    states[0].scatter_sub(tf.IndexedSlices(slices.values * p[0], slices.indices))


def stock_adagrad(states, slices, p):
    states[1].scatter_add(tf.IndexedSlices(tf.square(slices.values), slices.indices))
    steps = slices.values * p[0] * tf.math.rsqrt(tf.gather(states[1], slices.indices) + p[1])
    states[0].scatter_sub(tf.IndexedSlices(steps, slices.indices))


def stock_momentum(states, slices, p):
    momentum = tf.gather(states[1], slices.indices) * p[1] + slices.values
    states[1].scatter_update(tf.IndexedSlices(momentum, slices.indices))
    states[0].scatter_sub(tf.IndexedSlices(momentum * p[0], slices.indices))


def stock_adam(states, slices, p):
    """As Keras writes it down."""
    table, m, v = states
    m.assign_add(-m * p[0])
    m.scatter_add(tf.IndexedSlices(slices.values * p[0], slices.indices))
    v.assign_add(-v * p[1])
    v.scatter_add(tf.IndexedSlices(tf.square(slices.values) * p[1], slices.indices))
    table.assign_sub(m * p[2] / (tf.sqrt(v) + p[3]))


KERAS_ADAM = (
    (
        *("segment_sum g0", "neg s1", "mul v1 p0", "add s1 v2", "mul v0 p0", "touched_add v3 v4"),
        *("neg s2", "mul v6 p1", "add s2 v7", "square v0", "mul v9 p1", "touched_add v8 v10"),
        *("mul v5 p2", "sqrt v11", "add v13 p3", "div v12 v14", "sub s0 v15"),
    ),
    ("v16", "v5", "v11"),
)
STOCK = {  # with the numbers of states and parameters, and whether all rows change
    "sgd": (SGD, stock_sgd, 1, 1, False),
    "adagrad": (UNIQUE_ADAGRAD, stock_adagrad, 2, 2, False),
    "momentum": (LAZY_MOMENTUM, stock_momentum, 2, 2, False),
    "adam": (KERAS_ADAM, stock_adam, 3, 4, True),
}


def check_stock(rule, shape, dtype, ids, pooled, slices):
    """Updates a table by a pooled gradient of ids and its copy by the gradient of the distinct rows."""
    (program, results), stock, num_states, num_parameters, all_rows = STOCK[rule]
    arrays = [np.abs(random_values(shape, dtype, i)) for i in range(num_states)]
    ours, theirs = ([tf.Variable(array) for array in arrays] for _ in range(2))
    p = [tf.constant(rate, dtype) for rate in RATES[:num_parameters]]
    stock(theirs, slices, p)
    table = UpdateTable(ours, [ids], [[pooled]], parameters=p)
    (packed_dense_update if all_rows else packed_sparse_update)([table], program, results)
    for found, wanted, before in zip(ours, theirs, arrays, strict=True):
        assert found.numpy().tobytes() == wanted.numpy().tobytes()
        assert found.numpy().tobytes() != before.tobytes()


@DTYPE
@COMBINER
@pytest.mark.parametrize("rule", STOCK)
def test_bits_of_the_gradients_of_sparse_segment_ops(rule, combiner, dtype):
    owners = owners_of(COUNTS)
    for width in WIDTHS:
        gradient = random_values((len(COUNTS), width), dtype, 9)
        for rows, hot in ((20, 20), (350, 350), (5000, 5000), (5000, 3)):  # crowded or not, ids many times in a row
            ids = np.random.default_rng(rows).integers(0, hot, len(owners)).astype([np.int32, np.int64][width % 2])
            slices = distinct_rows(gradient, ids, owners, combiner)
            pooled = PooledGradient(gradient, owners, combiner)
            check_stock(rule, (rows, width), dtype, ids, pooled, slices)


@DTYPE
@COMBINER
@pytest.mark.parametrize("rule", STOCK)
def test_bits_of_columns_of_a_concatenation(rule, combiner, dtype):
    """Two lookups side by side, as the gradient of a Concat gives them to two tables, one op for both."""
    (program, results), stock, num_states, num_parameters, all_rows = STOCK[rule]
    owners, widths = owners_of(COUNTS), (8, 3)
    both = random_values((len(COUNTS), sum(widths)), dtype, 9)
    p = [tf.constant(rate, dtype) for rate in RATES[:num_parameters]]
    ours, theirs, ids = [], [], []
    for i, (first, width) in enumerate(zip((0, 8), widths, strict=True)):
        ids.append(np.random.default_rng(i).integers(0, 60, len(owners)))
        arrays = [np.abs(random_values((60, width), dtype, i + k)) for k in range(num_states)]
        ours += [tf.Variable(array) for array in arrays]
        theirs.append([tf.Variable(array) for array in arrays])
        stock(theirs[-1], distinct_rows(both[:, first : first + width], ids[-1], owners, combiner), p)
    tables = tuple(Table(tuple(range(t * num_states, (t + 1) * num_states)), (0, 1, 2, 3)[: len(p)]) for t in range(2))
    segments = (
        Segment(0, 0, ((0, 0, 8, 11),), pools=((0, combiner),)),
        Segment(1, 1, ((0, 8, 3, 11),), pools=((0, combiner),)),
    )
    oracle.run(Spec(program, results, tables, segments), all_rows, ours, ids, [both], p, [owners])
    for found, wanted in zip(ours, [state for states in theirs for state in states], strict=True):
        assert found.numpy().tobytes() == wanted.numpy().tobytes()


@DTYPE
@COMBINER
@pytest.mark.parametrize("width", [8, 16, 40])
@pytest.mark.parametrize("rule", STOCK)
def test_bits_of_a_step_through_a_safe_lookup(rule, width, combiner, dtype):
    """Negative ids are dropped and row 0 stands for rows without ids, with a gradient of zero."""
    (program, results), stock, num_states, num_parameters, all_rows = STOCK[rule]
    owners = owners_of(COUNTS)
    indices = np.stack([owners, np.arange(len(owners))], 1)
    gradient = random_values((len(COUNTS), width), dtype, 9)
    p = [tf.constant(rate, dtype) for rate in RATES[:num_parameters]]
    for rows in (30, 4000):
        ids = np.random.default_rng(rows).integers(1, rows, len(owners))
        ids[::4] *= -1
        ids[owners == 3] = -1
        arrays = [np.abs(random_values((rows, width), dtype, i)) for i in range(num_states)]
        ours, theirs = ([tf.Variable(array) for array in arrays] for _ in range(2))
        bags = tf.SparseTensor(indices, ids, [len(COUNTS), len(owners)])
        with tf.GradientTape() as tape:
            found = tf.nn.safe_embedding_lookup_sparse(theirs[0], bags, None, combiner=combiner)
        stock(theirs, _summed(tape.gradient(found, theirs[0], gradient)), p)
        segment = Segment(0, 0, ((0, 0, 0, 0),), pools=((0, combiner),), fill=0)
        spec = Spec(program, results, (Table(tuple(range(num_states)), tuple(range(len(p)))),), (segment,))
        oracle.run(spec, all_rows, ours, [ids], [gradient], p, [indices])
        for one, wanted in zip(ours, theirs, strict=True):
            assert one.numpy().tobytes() == wanted.numpy().tobytes()
        if rule in ("momentum", "adam"):
            assert (ours[1].numpy()[0] != arrays[1][0]).all()  # row 0 was updated, though no id names it


def _summed(slices):
    """One row for each id, as optimizers make it."""
    distinct, where = tf.unique(slices.indices)
    values = tf.math.unsorted_segment_sum(slices.values, where, tf.size(distinct))
    return tf.IndexedSlices(values, distinct)


@BOTH
@COMBINER
def test_wrapper_in_a_function_with_a_plain_segment_beside_it(combiner, all_rows):
    """A pooled and a plain gradient of one table, indices of a SparseTensor as rows; against rows made by NumPy."""
    function = packed_dense_update if all_rows else packed_sparse_update
    owners, dtype = owners_of(COUNTS), tf.float32
    indices = np.stack([owners, np.arange(len(owners))], 1)
    ids, plain = np.random.default_rng(0).integers(0, 50, len(owners)), np.array([3, 3, 4], np.int32)
    gradients = [random_values((len(COUNTS), 6), dtype), random_values((3, 6), dtype, 1)]
    counts = np.maximum(np.bincount(owners, minlength=len(COUNTS)), 1)
    scale = {"sum": counts * 0 + 1.0, "mean": 1 / counts, "sqrtn": 1 / np.sqrt(counts)}[combiner].astype(np.float32)
    rows = gradients[0][owners] * scale[owners][:, None]
    states = [[tf.Variable(numbers((50, 6), dtype, seed=i, least=0.0)) for i in range(3)] for _ in range(2)]

    pooled = PooledGradient(tf.constant(gradients[0]), tf.constant(indices), combiner)

    @tf.function
    def step():
        for held, gradient in zip(states, (pooled, rows), strict=True):
            table = UpdateTable(held, [ids, plain], [[gradient], [gradients[1]]], parameters=RATES)
            function([table], *ADAM)

    step()
    for found, wanted in zip(*states, strict=True):
        assert found.numpy().tobytes() == wanted.numpy().tobytes()


def test_wrapper_takes_the_sum_unless_told_otherwise():
    table = tf.Variable(tf.zeros([3, 1]))
    one = UpdateTable([table], [[2, 0, 2]], [[PooledGradient([[1.0], [10.0]], [0, 0, 1])]], parameters=[-1.0])
    packed_sparse_update([one], ["mul g0 p0", "scatter_sub s0 v0"], ["v1"])
    assert table.numpy().ravel().tolist() == [1.0, 0.0, 11.0]

"""The packed pooled lookup gives the bits of TensorFlow's own ops and of its oracle, and the shapes that it infers."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from picasso_tf.bridge import library
from picasso_tf.ops import packed_pooled_lookup
from tests.support.packed_lookup_calls import make_table
from tests.support.packed_lookup_oracle import Output
from tests.support.packed_pooled_lookup_calls import assert_same_bits, check, make_bags, one, run, splits_of
from tests.support.packed_pooled_lookup_oracle import COMBINERS, Lookup, Spec

DTYPES = (tf.float16, tf.bfloat16, tf.float32, tf.float64)
WIDTHS = (1, 3, 4, 8, 16, 30, 32, 64, 128, 200, 300)
COUNTS = (*range(1, 31), 100, 2500)  # every way to cut a sum into groups, and more ids than one batch holds


def sparse(counts, ids, width=3000):
    """A SparseTensor with `counts[r]` ids in row r."""
    columns = np.concatenate([np.arange(count) for count in counts] or [[]])
    rows = np.repeat(np.arange(len(counts)), counts)
    return tf.SparseTensor(np.stack([rows, columns], 1).astype(np.int64), ids, [len(counts), width])


@pytest.mark.parametrize("combiner", COMBINERS)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_bits_of_embedding_lookup_sparse(dtype, combiner):
    for i, width in enumerate(WIDTHS):
        table = make_table(40, width, dtype=dtype, seed=i)
        ids, segments = make_bags(COUNTS, 40, id_dtype=[np.int32, np.int64][i % 2], seed=i)
        wanted = tf.nn.embedding_lookup_sparse(table, sparse(COUNTS, ids), None, combiner=combiner)
        assert_same_bits(run(one(combiner=combiner), [table], [ids], [segments])[0], wanted)
        check(one(combiner=combiner), [table], [ids], [segments])


@pytest.mark.parametrize("combiner", COMBINERS)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("default_id", [None, 0, 7])
def test_bits_of_safe_embedding_lookup_sparse(dtype, combiner, default_id):
    counts = [0, 0, *COUNTS[:12], 0, *COUNTS[12:], 0]
    table = make_table(40, 24, dtype=dtype)
    ids, segments = make_bags(counts, 40, id_dtype=np.int64)
    ids = np.where(np.arange(len(ids)) % 3 == 1, -ids - 1, ids)
    ids[segments == 5] = -2  # a row of nothing but what is dropped
    bags = sparse(counts, ids)
    wanted = tf.nn.safe_embedding_lookup_sparse(table, bags, None, combiner=combiner, default_id=default_id)
    found = packed_pooled_lookup([table], [bags], combiner=combiner, default_id=default_id, drop_negative=True)
    assert_same_bits(found[0], wanted)
    spec = one(combiner=combiner, rows=0, drop=True, fill=-1 if default_id is None else default_id)
    check(spec, [table], [ids], [bags.indices.numpy()], [bags.dense_shape.numpy()])


@pytest.mark.parametrize("combiner", COMBINERS)
def test_values_that_no_arithmetic_may_touch(combiner):
    """Signed zeros, infinities, NaNs and denormals of every dtype, one to three in a row."""
    values = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-41, 6e-8, 65504.0, 3.4e38, 1e-310]
    for dtype in DTYPES:
        table = tf.Variable(tf.cast(tf.constant(values, tf.float64)[:, None] * tf.ones([1, 5], tf.float64), dtype))
        ids = np.concatenate([np.arange(11), np.repeat(np.arange(11), 2), np.arange(11), np.arange(11)[::-1]])
        counts = [1] * 11 + [2] * 11 + [2] * 4 + [3] + [2] * 4 + [3]
        wanted = tf.nn.embedding_lookup_sparse(table, sparse(counts, ids[: sum(counts)]), None, combiner=combiner)
        segments = np.repeat(np.arange(len(counts)), counts)
        assert_same_bits(run(one(combiner=combiner), [table], [ids[: sum(counts)]], [segments])[0], wanted)


@pytest.mark.parametrize("segment_dtype", [np.int32, np.int64])
@pytest.mark.parametrize("id_dtype", [np.int32, np.int64])
def test_all_forms_of_segments_give_the_same(id_dtype, segment_dtype):
    counts = [2, 0, 3, 1, 0, 12]  # rows of a [2, 3, 20] tensor
    table = make_table(40, 6)
    ids, segments = make_bags(counts, 40, id_dtype=id_dtype, segment_dtype=segment_dtype)
    last = np.concatenate([np.arange(count) for count in counts]).astype(segment_dtype)
    matrix = np.stack([segments, last], 1)
    cube = np.stack([segments // 3, segments % 3, last], 1)
    wanted = run(one(rows=0, combiner="mean"), [table], [ids], [segments], [np.int32(6)])[0]
    assert wanted.shape == (6, 6)
    for form, rows in (
        (segments, np.array(6, np.int64)),
        (segments, np.array([6, 20])),
        (segments, np.array([2, 3, 20], np.int32)),
        (matrix, np.array(6, np.int32)),
        (matrix, np.array([6, 20])),
        (cube, np.array([2, 3, 20])),
        (cube, np.array([2, 3, 20], np.int32)),
    ):
        assert_same_bits(run(one(rows=0, combiner="mean"), [table], [ids], [form], [rows])[0], wanted)
        check(one(rows=0, combiner="mean"), [table], [ids], [form], [rows])
    splits = Spec((Lookup(0, 0, 0, combiner="mean"),), (Output(((0, 0),)),), (True,))
    assert_same_bits(run(splits, [table], [ids], [splits_of(counts, segment_dtype)])[0], wanted)
    check(splits, [table], [ids], [splits_of(counts, segment_dtype)])


def test_rank_three_sparse_tensor():
    dense = np.random.default_rng(0).integers(-30, 40, (4, 5, 6))
    ids = tf.sparse.from_dense(np.where(dense < 0, 0, dense))
    table = make_table(40, 8)
    wanted = tf.nn.safe_embedding_lookup_sparse(table, ids, None, combiner="sqrtn")
    found = packed_pooled_lookup([table], [ids], combiner="sqrtn", drop_negative=True)[0]
    assert wanted.shape == (4, 5, 8)
    assert_same_bits(tf.reshape(found, [4, 5, 8]), wanted)


def test_ragged_tensor():
    table = make_table(40, 8)
    counts = [0, 3, 0, 17, 1]
    ids = tf.RaggedTensor.from_row_splits(make_bags(counts, 40)[0], splits_of(counts))
    wanted = tf.nn.safe_embedding_lookup_sparse(table, ids, None, combiner="mean", default_id=3)
    assert_same_bits(packed_pooled_lookup([table], [ids], default_id=3, drop_negative=True)[0], wanted)


def test_rows_end_with_the_last_segment_where_nothing_else_tells():
    table = make_table(9, 4)
    ids, segments = np.array([1, 2, 3, -1, -1], np.int32), np.array([0, 2, 2, 4, 6])
    assert run(one(drop=True), [table], [ids], [segments])[0].shape == (3, 4)
    check(one(drop=True), [table], [ids], [segments])
    check(one(), [table], [ids[:3]], [segments[:3]])
    assert run(one(drop=True), [table], [ids[3:]], [segments[3:]])[0].shape == (0, 4)
    assert run(one(), [table], [ids[:0]], [segments[:0]])[0].shape == (0, 4)


@pytest.mark.parametrize("fill", [-1, 5])
def test_batch_without_any_id(fill):
    table = make_table(9, 4)
    found = run(one(rows=0, fill=fill), [table], [np.zeros(0, np.int32)], [np.zeros((0, 2), np.int64)], [np.int64(3)])
    assert_same_bits(found[0], np.tile(table.numpy()[5] if fill == 5 else np.zeros(4, np.float32), (3, 1)))
    dropped = [np.full(4, -7)], [np.array([0, 0, 1, 2])], [np.array([3, 10])]
    assert_same_bits(run(one(rows=0, drop=True, fill=fill), [table], *dropped)[0], found[0])


def test_no_rows_and_rows_without_elements():
    nothing = [np.zeros(0, np.int64)], [np.zeros((0, 2), np.int64)]
    assert run(one(rows=0), [make_table(9, 4)], *nothing, [np.array([0, 5])])[0].shape == (0, 4)
    assert run(one(rows=0), [make_table(0, 4)], *nothing, [np.array([2, 5])])[0].tolist() == [[0.0] * 4] * 2
    assert run(one(), [make_table(9, 0)], [np.array([1, 2])], [np.array([0, 3])])[0].shape == (4, 0)
    check(one(combiner="mean"), [make_table(9)], [np.array([1, 2, 8])], [np.array([0, 0, 3])])
    check(one(combiner="mean"), [make_table(9, 2, 3)], [np.array([1, 2, 8])], [np.array([0, 0, 3])])


def test_duplicate_ids_count_each_time():
    table = tf.Variable([[1.0], [10.0]])
    found = run(one(combiner="mean"), [table], [np.array([1, 1, 0, 1])], [np.array([0, 0, 0, 0])])[0]
    assert found.tolist() == [[31.0 / 4]]


def test_outputs_side_by_side_with_dense_pieces():
    counts = [3, 0, 1, 12, 2, 0]
    tables = [make_table(20, 8), make_table(30, 5, seed=1)]
    bags = [make_bags(counts, 20), make_bags(counts[::-1], 30, id_dtype=np.int64, seed=1)]
    lookups = (
        Lookup(0, 0, 0, 0, "mean"),
        Lookup(1, 1, 1, -1, "sum", fill=2),
        Lookup(0, 0, 2, 0, "sqrtn"),
        Lookup(0, 0, 0, 0, "sum"),
    )
    dense = [np.random.default_rng(i).random((6, 2 + i)).astype(np.float32) for i in range(2)]
    outputs = (
        Output(((-2, 3), (0, 8), (1, 5), (-1, 2), (-2, 3)), (-1, 21)),
        Output(((2, 8), (3, 8)), (-1, 2, 8)),
        Output(((1, 0),)),
        Output(((-1, 4),), (3, 4)),
        Output(((3, 8),), (6, 8)),
    )
    spec = Spec(lookups, outputs, (False, True, False))
    segments = [bags[0][1], splits_of(counts[::-1]), np.stack([bags[0][1], bags[0][1]], 1)]
    check(spec, tables, [ids for ids, _ in bags], segments, [np.array([6, 20])], dense)


def test_large_batch_is_split_over_threads_and_gives_the_same_each_time():
    """More ids, rows and columns than one block, one batch or one thread takes; rows of very different length."""
    random = np.random.default_rng(0)
    counts = [np.where(random.random(3000) < 0.01, 300, random.integers(0, 6, 3000)) for _ in range(9)]
    counts[0] = np.sort(counts[0])
    counts[1] = np.where(np.arange(3000) == 1500, 9000, 0)
    tables = [make_table(1000, 16 + i, seed=i) for i in range(9)]
    bags = [make_bags(counts[i], 1000, seed=i) for i in range(9)]
    lookups = tuple(Lookup(i, i, i, 0, COMBINERS[i % 3]) for i in range(9))
    widths = tuple((i, 16 + i) for i in range(9))
    spec = Spec(lookups, (Output(widths, (-1, sum(width for _, width in widths))),), (False,) * 9)
    inputs = [ids for ids, _ in bags], [segments for _, segments in bags], [np.int32(3000)]
    check(spec, tables, *inputs)
    first = run(spec, tables, *inputs)[0].tobytes()
    assert all(run(spec, tables, *inputs)[0].tobytes() == first for _ in range(5))
    for i in range(9):
        wanted = tf.raw_ops.SparseSegmentSumWithNumSegments(
            data=tables[i], indices=bags[i][0], segment_ids=bags[i][1], num_segments=3000
        )
        assert_same_bits(run(one(rows=0), [tables[i]], [bags[i][0]], [bags[i][1]], [np.int32(3000)])[0], wanted)


@st.composite
def calls(draw):
    """A random call: tables, ids and dense inputs, and a spec that fits them."""
    batch = draw(st.integers(0, 30))
    dtype = draw(st.sampled_from(DTYPES))
    shapes = [
        (draw(st.integers(1, 12)), *draw(st.lists(st.integers(1, 20), min_size=0, max_size=2)))
        for _ in range(draw(st.integers(1, 3)))
    ]
    int_types = st.sampled_from([np.int32, np.int64])
    ids, segments, rows, splits, lookups = [], [], [], [], []
    for i in range(draw(st.integers(1, 5))):
        table = draw(st.integers(0, len(shapes) - 1))
        most = draw(st.sampled_from([1, 4, 30]))
        counts = draw(st.lists(st.integers(0, most), min_size=batch, max_size=batch))
        values, owners = make_bags(counts, shapes[table][0], id_dtype=draw(int_types), seed=i)
        drop = draw(st.booleans())
        if drop:
            values = np.where(np.random.default_rng(i).random(len(values)) < 0.3, -1 - values, values)
        form, of = draw(st.sampled_from(["vector", "matrix", "cube", "splits"])), draw(int_types)
        row_input = -1
        if form == "splits":
            segments.append(splits_of(counts, of))
        else:
            sizes = [batch, 7] if form != "cube" else [batch, 1, 7]
            scalar = form != "cube" and draw(st.booleans())
            rows.append(np.array(batch if scalar else sizes, draw(int_types)))
            row_input = len(rows) - 1
            columns = {"vector": [owners], "matrix": [owners] * 2, "cube": [owners, 0 * owners, owners]}[form]
            segments.append((owners if form == "vector" else np.stack(columns, 1)).astype(of))
        splits.append(form == "splits")
        ids.append(values)
        fill = draw(st.integers(-1, shapes[table][0] - 1))
        lookups.append(Lookup(table, i, i, row_input, draw(st.sampled_from(COMBINERS)), drop, fill))
    dense = [np.arange(batch * 3).reshape(batch, 3).astype(dtype.as_numpy_dtype)]
    outputs = []
    for _ in range(draw(st.integers(1, 3))):
        if draw(st.booleans()):
            outputs.append(Output(((draw(st.integers(0, len(lookups) - 1)), 0),)))
            continue
        sources = draw(st.lists(st.integers(-1, len(lookups) - 1), min_size=1, max_size=5))
        pieces = tuple((s, 3 if s < 0 else int(np.prod(shapes[lookups[s].table][1:], dtype=int))) for s in sources)
        outputs.append(Output(pieces, (-1, sum(width for _, width in pieces))))
    return Spec(tuple(lookups), tuple(outputs), tuple(splits)), shapes, dtype, (ids, segments, rows, dense)


@settings(max_examples=200, deadline=None)
@given(calls())
def test_random_calls(call):
    spec, shapes, dtype, inputs = call
    check(spec, [make_table(*shape, dtype=dtype, seed=i) for i, shape in enumerate(shapes)], *inputs)


@settings(max_examples=60, deadline=None)
@given(
    counts=st.lists(st.integers(0, 40), min_size=1, max_size=20),
    width=st.integers(1, 70),
    dtype=st.sampled_from(DTYPES),
    combiner=st.sampled_from(COMBINERS),
    default_id=st.sampled_from([None, 0, 4]),
)
def test_random_bags_give_the_bits_of_stock(counts, width, dtype, combiner, default_id):
    table = make_table(30, width, dtype=dtype)
    bags = sparse(counts, make_bags(counts, 30)[0])
    wanted = tf.nn.safe_embedding_lookup_sparse(table, bags, None, combiner=combiner, default_id=default_id)
    found = packed_pooled_lookup([table], [bags], combiner=combiner, default_id=default_id, drop_negative=True)
    assert_same_bits(found[0], wanted)


def test_inferred_shapes():
    lookups = (
        Lookup(0, 0, 0, 0),  # rows fed
        Lookup(0, 0, 1, -1),  # splits
        Lookup(0, 0, 0, 1),  # a constant dense shape
        Lookup(0, 0, 0, 2),  # a constant number
        Lookup(0, 0, 0, -1),
    )
    outputs = (
        *(Output(((i, 0),)) for i in range(5)),
        Output(((0, 8), (3, 8)), (-1, 16)),
        Output(((0, 8), (-1, 2)), (-1, 10)),
        Output(((4, 8),), (-1, 8)),
    )
    spec = Spec(lookups, outputs, (False, True))
    table = make_table(9, 4, 2)

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.int32),
            tf.TensorSpec([None, 3], tf.int64),
            tf.TensorSpec([13], tf.int64),
            tf.TensorSpec(None, tf.int64),
        ]
    )
    def function(ids, segments, splits, rows):
        return library.ops().picasso_packed_pooled_lookup(
            tables=[table.handle],
            ids=[ids],
            segments=[segments, splits],
            rows=[rows, tf.constant([3, 5, 7]), tf.constant(6)],
            dense=[tf.zeros([6, 2])],
            weights=[],
            **spec.attributes(),
        )

    found = [shape.as_list() for shape in function.get_concrete_function().output_shapes]
    wanted = [[None, 4, 2], [12, 4, 2], [15, 4, 2], [6, 4, 2], [None, 4, 2], [6, 16], [6, 10], [None, 8]]
    assert found == wanted

"""Raw tf.function, v1 Session, SavedModel: the same bits with and without the plugin."""

import numpy as np
import pytest
import tensorflow as tf

import picasso_tf
from tests.equivalence.training import STEPS, compare


def _tables(dtype="float32"):
    generator = np.random.default_rng(0)
    return [tf.Variable(tf.cast(generator.normal(size=(rows, width)), dtype)) for rows, width in ((40, 8), (9, 3))]


def _batches(steps=STEPS, batch=32):
    generator = np.random.default_rng(1)
    for _ in range(steps):
        yield tf.constant(generator.integers(0, 9, (batch, 2)).astype("int64"))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_a_tf_function_with_scatter_updates(dtype):
    def train():
        tables = _tables(dtype)

        @tf.function
        def step(ids):
            with tf.GradientTape() as tape:
                rows = [tf.gather(table, ids[:, i]) for i, table in enumerate(tables)]
                joined = tf.concat(rows, axis=1)
                loss = tf.reduce_sum(joined * joined)
            for table, gradient in zip(tables, tape.gradient(loss, tables), strict=True):
                table.scatter_sub(tf.IndexedSlices(gradient.values * tf.cast(0.01, dtype), gradient.indices))
            return loss, joined

        results = [step(ids) for ids in _batches()]
        return {
            "losses": np.array([loss.numpy() for loss, _ in results]),
            "outputs": np.stack([joined.numpy() for _, joined in results]),
            **{f"table {i}": table.numpy() for i, table in enumerate(tables)},
        }

    report = compare(train)
    assert [graph.lookups_packed for graph in report.graphs] == [2]


def test_reads_keep_their_place_among_writes():
    def train():
        first, second = _tables()

        @tf.function
        def step(ids):
            before = tf.gather(first, ids[:, 0])
            first.scatter_nd_update([[3]], tf.zeros((1, 8)))
            between = tf.gather(first, ids[:, 0])
            first.assign_add(tf.ones((40, 8)))
            after = first.sparse_read(ids[:, 0])
            ids_from_table = tf.cast(tf.abs(between[:, 0]), tf.int32) % 9
            return before, between, after, tf.gather(second, ids_from_table), second.sparse_read(ids[:, 1])

        outputs = [tensor.numpy() for ids in _batches(3) for tensor in step(ids)]
        return {str(i): output for i, output in enumerate(outputs)} | {"first": first.numpy()}

    compare(train)


def test_a_v1_session():
    def train():
        with tf.Graph().as_default():
            tf.compat.v1.set_random_seed(0)
            v1 = tf.compat.v1
            ids = v1.placeholder(tf.int64, [None, 2])
            generator = np.random.default_rng(0)
            tables = [
                v1.get_variable(
                    f"table{i}", initializer=generator.normal(size=(9 + i, 4)).astype("f"), use_resource=True
                )
                for i in range(2)
            ]
            joined = tf.concat([tf.nn.embedding_lookup(table, ids[:, i]) for i, table in enumerate(tables)], axis=1)
            loss = tf.reduce_mean(joined**2)
            update = v1.train.AdagradOptimizer(0.1).minimize(loss)
            options = v1.ConfigProto()
            if picasso_tf.is_enabled():
                options.graph_options.rewrite_options.use_plugin_optimizers = 1  # ON
            with v1.Session(config=options) as session:
                session.run(v1.global_variables_initializer())
                results = [session.run([loss, joined, update], {ids: batch.numpy()})[:2] for batch in _values()]
                return {
                    "losses": np.array([loss for loss, _ in results]),
                    "outputs": np.stack([output for _, output in results]),
                    **{v.name: value for v, value in zip(tables, session.run(tables), strict=True)},
                }

    class _Batch:
        def __init__(self, value):
            self._value = value

        def numpy(self):
            return self._value

    def _values():
        generator = np.random.default_rng(1)
        return [_Batch(generator.integers(0, 9, (32, 2)).astype("int64")) for _ in range(STEPS)]

    report = compare(train)
    assert sum(graph.lookups_packed for graph in report.graphs) == 2


@pytest.mark.parametrize("kind", ["single", "multi-hot", "hashed"])
def test_a_session_that_fetches_now_this_and_now_that(kind):
    """It keeps kernels by the names of nodes, whatever they were packed for."""
    v1 = tf.compat.v1
    values = [np.random.default_rng(n).normal(size=(20, 8)).astype("f") for n in range(3)]

    def lookup(table, ids, words):
        if kind == "multi-hot":
            return tf.nn.safe_embedding_lookup_sparse(table, tf.sparse.from_dense(tf.reshape(ids, [-1, 2])))
        return tf.nn.embedding_lookup(table, ids if kind == "single" else tf.strings.to_hash_bucket_fast(words, 20))

    def run():
        with tf.Graph().as_default(), v1.Session() as session:
            tables = [v1.get_variable(f"t{n}", initializer=value, use_resource=True) for n, value in enumerate(values)]
            ids, words = v1.placeholder(tf.int64, [None]), v1.placeholder(tf.string, [None])
            rows = [lookup(table, ids + n, words + str(n)) for n, table in enumerate(tables)]
            losses = [tf.reduce_sum(tf.square(row)) for row in rows]
            rule = v1.train.AdagradOptimizer(0.1)
            steps = [rule.minimize(losses[0] + losses[1]), rule.minimize(losses[2] * losses[0])]
            session.run(v1.global_variables_initializer())
            fetched = [
                rows[:2],
                rows,
                [rows[0], rows[2]],
                [tf.concat(rows[:2], 1)],
                [tf.concat(rows[::2], 1)],
                rows[1:],
            ]
            feeds = {ids: [1, 2, 3, 4], words: ["a", "b", "c", "d"]}
            found = {}
            for n, fetches in enumerate([*fetched, *fetched]):
                found |= {f"{n}.{m}": value for m, value in enumerate(session.run(fetches, feeds))}
                session.run(steps[n % 2], feeds)
            return found | {f"t{n}": value for n, value in enumerate(session.run(tables))}

    report = compare(run)
    assert len({item.node for graph in report.graphs for item in graph.packed}) >= 6


def test_a_session_that_feeds_the_inside_of_a_lookup():
    """What is fed counts."""
    v1 = tf.compat.v1

    def run():
        with tf.Graph().as_default() as graph, v1.Session() as session:
            table = v1.get_variable("t", initializer=np.arange(40, dtype="f").reshape(10, 4), use_resource=True)
            bag = v1.sparse_placeholder(tf.int64, [None, 3])
            row = tf.nn.embedding_lookup_sparse(table, bag, None, name="lookup")
            session.run(v1.global_variables_initializer())
            segments = next(op for op in graph.get_operations() if op.type == "StridedSlice").outputs[0]
            given = v1.SparseTensorValue([[0, 0], [0, 1], [1, 0]], [1, 2, 3], [2, 3])
            plain, fed = session.run(row, {bag: given}), session.run(row, {bag: given, segments: [0, 1, 1]})
            return {"plain": plain, "fed": fed}

    stock = run()
    picasso_tf.enable()  # without the verifier
    try:
        ours = run()
        report = picasso_tf.report()
    finally:
        picasso_tf.disable()
    assert {name: value.tobytes() for name, value in ours.items()} == {n: value.tobytes() for n, value in stock.items()}
    assert stock["plain"].tobytes() != stock["fed"].tobytes()
    assert [graph.lookups_packed for graph in report.graphs if graph.lookups_packed]


def test_lookups_inside_conditionals_and_loops():
    def train():
        first, second = _tables()

        @tf.function
        def step(ids, flag):
            def yes():
                return tf.concat([tf.gather(first, ids[:, 0]), tf.gather(second, ids[:, 1])], axis=1)

            def no():
                return tf.concat([tf.gather(first, ids[:, 1]), tf.gather(second, ids[:, 0])], axis=1) * 2.0

            branch = tf.cond(flag, yes, no)
            total = tf.zeros_like(branch)
            for i in tf.range(3):
                total += yes() * tf.cast(i, tf.float32)
                first.scatter_add(tf.IndexedSlices(tf.ones((1, 8)), [i]))
            return branch, total

        outputs = [t.numpy() for i, ids in enumerate(_batches(4)) for t in step(ids, tf.constant(i % 2 == 0))]
        return {str(i): output for i, output in enumerate(outputs)} | {"first": first.numpy()}

    compare(train)


def test_out_of_range_ids_raise_what_stock_raises():
    tables = _tables()
    ids = tf.constant([[3, 9]], tf.int64)

    def lookups(ids):
        return tf.concat([tf.gather(table, ids[:, i]) for i, table in enumerate(tables)], axis=1)

    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.function(lookups)(ids)
    picasso_tf.enable()
    try:
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"= 9 is not in \[0, 9\)"):
            tf.function(lookups)(ids)
    finally:
        picasso_tf.disable()


def test_a_saved_model_is_stock_and_gains_on_loading(tmp_path):
    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.tables = _tables()

        @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.int64)])
        def serve(self, ids):
            return tf.concat([tf.gather(table, ids[:, i]) for i, table in enumerate(self.tables)], axis=1)

    model = Model()
    tf.saved_model.save(model, str(tmp_path), signatures=model.serve)

    def run():
        loaded = tf.saved_model.load(str(tmp_path))
        return {"out": loaded.signatures["serving_default"](next(_batches()))["output_0"].numpy()}

    report = compare(run)
    assert sum(graph.lookups_packed for graph in report.graphs) == 2

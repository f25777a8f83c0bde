"""Lookups and writes around conditionals and loops that TensorFlow lowers: the same bits with and without the plugin.

Each model here is one that a rewrite once broke, or that shows a rule of `graph_passes.cleanup.read_order`.
"""

from collections.abc import Callable

import numpy as np
import pytest
import tensorflow as tf

import picasso_tf

IDS = tf.constant([3, 0, 3])
Step = Callable[[], dict[str, tf.Tensor]]


def table(seed: int = 0, rows: int = 6, width: int = 4) -> tf.Variable:
    return tf.Variable(np.random.default_rng(seed).normal(size=(rows, width)).astype("float32"))


def rows_of(variable: tf.Variable, ids: tf.Tensor) -> tf.Tensor:
    """Reads the whole table, as Keras 3 does."""
    return tf.gather(tf.convert_to_tensor(variable), ids)


def bump(variable: tf.Variable, row: int = 3) -> None:
    variable.scatter_add(tf.IndexedSlices(tf.ones((1, variable.shape[1])), [row]))


def check(make: Callable[[tf.Variable, tf.Variable], Callable[..., object]], *args) -> picasso_tf.GraphReport:
    """Runs a function three times, stock and with the plugin; gives the plugin's report of its graph."""

    def run() -> list[np.ndarray]:
        tables = table(0), table(1)
        step = tf.function(make(*tables))
        found = [np.asarray(value) for _ in range(3) for value in tf.nest.flatten(step(*args))]
        return found + [variable.numpy() for variable in tables]

    stock = run()
    picasso_tf.enable(verify=True)
    try:
        ours = run()
        (report,) = picasso_tf.report().graphs
    finally:
        picasso_tf.disable()
    assert report.failures == ()
    assert [value.tolist() for value in ours] == [value.tolist() for value in stock]
    return report


def codes(report: picasso_tf.GraphReport) -> list[str]:
    return [item.code for item in report.declined]


def test_a_write_in_a_loop_after_the_lookup() -> None:
    def make(first, second):
        def step(ids):
            rows = rows_of(first, ids)
            for _ in tf.range(2):
                bump(first)
            return rows

        return step

    report = check(make, IDS)
    assert report.rewritten["canonicalize"] == ("GatherV2",)


@pytest.mark.parametrize("flag", [True, False])
def test_a_write_behind_a_branch_with_a_lookup_runs_whichever_branch_is_taken(flag: bool) -> None:
    def make(first, second):
        def step(flag, ids):
            rows = tf.cond(flag, lambda: rows_of(first, ids), lambda: tf.zeros((3, 4)))
            bump(first)
            first.assign_add(tf.ones((6, 4)))
            return rows

        return step

    check(make, tf.constant(flag), IDS)


@pytest.mark.parametrize("flag", [True, False])
def test_a_write_in_a_branch_after_the_lookup(flag: bool) -> None:
    def make(first, second):
        def step(flag, ids):
            rows = rows_of(first, ids)
            if flag:
                bump(first)
            return rows, rows_of(first, ids)

        return step

    report = check(make, tf.constant(flag), IDS)
    assert len(report.rewritten["canonicalize"]) == 2


def test_a_loop_that_writes_before_it_looks_up() -> None:
    def make(first, second):
        def step(ids):
            total = tf.zeros((3, 4))
            whole = tf.zeros((6, 4))
            for _ in tf.range(3):
                bump(first)
                read = tf.convert_to_tensor(first)
                total += tf.gather(read, ids)
                whole += read
            return total, whole

        return step

    check(make, IDS)


def test_a_train_step_inside_a_loop_is_packed() -> None:
    def make(first, second):
        def step(ids):
            for _ in tf.range(4):
                with tf.GradientTape() as tape:
                    joined = tf.concat([rows_of(first, ids), rows_of(second, ids)], axis=1)
                    loss = tf.reduce_sum(joined * joined)
                for variable, gradient in zip((first, second), tape.gradient(loss, (first, second)), strict=True):
                    variable.scatter_sub(tf.IndexedSlices(gradient.values * 0.125, gradient.indices))

        return step

    report = check(make, IDS)
    assert [(item.kind, len(item.members)) for item in report.packed] == [("update", 2), ("lookup", 2)]
    assert codes(report) == []


def test_lookups_of_two_branches_and_of_what_follows_them_are_three_packs() -> None:
    def make(first, second):
        def both(ids):
            return tf.concat([rows_of(first, ids), rows_of(second, ids)], axis=1)

        def step(flag, ids):
            value = both(ids) if flag else both(ids + 1)
            return value, both(ids + 2)

        return step

    report = check(make, tf.constant(False), IDS)
    assert sorted(len(item.members) for item in report.packed) == [2, 2, 2]


def test_the_same_rows_in_two_shapes() -> None:
    def make(first, second):
        def step(ids):
            return rows_of(first, ids), rows_of(first, tf.expand_dims(ids, 1)), first.sparse_read(ids[None])

        return step

    report = check(make, IDS)
    assert [len(item.members) for item in report.packed] == [3]


def test_a_dense_input_of_unknown_rank_beside_rows_of_a_known_batch() -> None:
    def make(first, second):
        def step(text, ids):
            dense = tf.io.parse_tensor(text, tf.float32)
            return tf.concat([rows_of(first, ids), dense, rows_of(second, ids)], axis=1)

        return step

    check(make, tf.io.serialize_tensor(tf.ones((3, 5))), IDS)


def test_rows_without_elements() -> None:
    def make(first, second):
        empty = tf.Variable(tf.zeros((6, 0)))

        def step(ids):
            return rows_of(first, ids), rows_of(empty, ids), empty.sparse_read(ids)

        return step

    check(make, IDS)

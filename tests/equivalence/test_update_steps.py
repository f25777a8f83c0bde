"""Train steps in raw TensorFlow that do more than one plain update."""

from __future__ import annotations

import threading
from collections.abc import Iterable

import numpy as np
import pytest
import tensorflow as tf

import picasso_tf
from tests.equivalence.training import Snapshot, compare
from tests.equivalence.update_report import reasons, updates
from tests.equivalence.update_situations import STEPS
from tests.support.raw_optimizers import RATE, RAW, Optimizer

WIDTHS = (8, 3, 1)


def make_tables() -> list[tf.Variable]:
    generator = np.random.default_rng(0)
    return [tf.Variable(generator.normal(size=(20, width)).astype("f"), name=f"w{width}") for width in WIDTHS]


def ids_of(step: int, examples: int = 12) -> tf.Tensor:
    return tf.constant(np.random.default_rng(step).integers(0, 20, (examples, len(WIDTHS))))


def loss_of(rows: Iterable[tf.Tensor]) -> tf.Tensor:
    return tf.reduce_sum(tf.tanh(tf.concat(list(rows), axis=-1)) ** 2) * 0.1


def gathered(tables: list[tf.Variable], ids: tf.Tensor) -> list[tf.Tensor]:
    return [tf.gather(table, ids[:, i]) for i, table in enumerate(tables)]


def snapshot(tables: list[tf.Variable], *optimizers: Optimizer, **found: object) -> Snapshot:
    variables = [*tables, *(slot for optimizer in optimizers for slot in optimizer.variables)]
    arrays = {f"variable {i}": variable.numpy() for i, variable in enumerate(variables)}
    return arrays | {name: np.array(value) for name, value in found.items()}


def apply(optimizer: Optimizer, tape: tf.GradientTape, loss: tf.Tensor, tables: list[tf.Variable]) -> None:
    optimizer.apply_gradients(list(zip(tape.gradient(loss, tables), tables, strict=True)))


RULES = ["SGD", "Adagrad, by hand", "Adam"]


@pytest.mark.parametrize("rule", RULES)
def test_two_updates_of_the_same_tables_in_one_step(rule):
    """First-order MAML: adapt on the support set, take the gradient of the query set there, go back, update."""

    def train():
        tables = make_tables()
        inner, outer = RAW["SGD"](tables), RAW[rule](tables)

        @tf.function
        def step(support, query):
            before = [table.read_value() for table in tables]
            with tf.GradientTape() as tape:
                loss = loss_of(gathered(tables, support))
            apply(inner, tape, loss, tables)
            with tf.GradientTape() as tape:
                adapted = loss_of(gathered(tables, query))
            gradients = tape.gradient(adapted, tables)
            for table, value in zip(tables, before, strict=True):
                table.assign(value)
            outer.apply_gradients(list(zip(gradients, tables, strict=True)))
            return loss, adapted

        losses = [[loss.numpy() for loss in step(ids_of(i), ids_of(1000 + i))] for i in range(STEPS)]
        return snapshot(tables, inner, outer, losses=losses)

    report = compare(train)
    assert sum(updates(report)) >= len(WIDTHS), (
        report.details()
    )  # the inner update; the outer one writes what was read before
    assert reasons(report) <= {"unordered_write"}, report.details()


@pytest.mark.parametrize("rule", RULES)
def test_an_update_through_the_gradient_of_a_gradient(rule):
    """MAML: nested tapes, adapted rows, an update of the tables by the outer gradient and one by the inner."""

    def train():
        tables = make_tables()
        outer, inner = RAW[rule](tables), RAW["SGD"](tables)

        @tf.function
        def step(ids):
            with tf.GradientTape() as outer_tape:
                with tf.GradientTape(persistent=True) as inner_tape:
                    rows = gathered(tables, ids)
                    loss = loss_of(rows)
                slopes = inner_tape.gradient(loss, rows)
                adapted = loss_of([row - 0.5 * slope for row, slope in zip(rows, slopes, strict=True)])
            apply(outer, outer_tape, adapted, tables)
            apply(inner, inner_tape, loss, tables)
            return loss, adapted

        losses = [[loss.numpy() for loss in step(ids_of(i))] for i in range(STEPS)]
        return snapshot(tables, inner, outer, losses=losses)

    report = compare(train)
    assert sum(updates(report)) >= 2 * len(WIDTHS), report.details()


@pytest.mark.parametrize("rule", RULES)
def test_every_new_shape_is_rewritten(rule):
    def train():
        tables = make_tables()
        optimizer = RAW[rule](tables)

        @tf.function
        def step(ids):
            with tf.GradientTape() as tape:
                loss = loss_of(gathered(tables, ids))
            apply(optimizer, tape, loss, tables)
            return loss

        losses = [step(ids_of(i, examples)).numpy() for i, examples in enumerate([4, 7, 1, 0, 4, 30, 7] * 4)]
        return snapshot(tables, optimizer, losses=losses)

    report = compare(train)
    assert len(report.graphs) == 5
    for graph in report.graphs:
        members = [len(item.members) for item in graph.packed if "update_packing" in item.node]
        assert sum(members) >= len(WIDTHS), report.details()


def test_tables_are_read_before_and_after_the_update():
    def train():
        tables = make_tables()
        optimizer = RAW["Adagrad, by hand"](tables)

        @tf.function
        def step(ids):
            norms = [tf.norm(table) for table in tables]
            with tf.GradientTape() as tape:
                rows = gathered(tables, ids)
                loss = loss_of(rows)
            apply(optimizer, tape, loss, tables)
            return [loss, *norms, *(tf.norm(table) for table in tables), *rows, *gathered(tables, ids)]

        outputs = [[value.numpy() for value in step(ids_of(i))] for i in range(STEPS)]
        columns = zip(*outputs, strict=True)
        return snapshot(tables, optimizer, **{f"output {i}": np.stack(column) for i, column in enumerate(columns)})

    report = compare(train)
    assert sum(updates(report)) >= len(WIDTHS), report.details()


def test_a_loop_of_train_steps_inside_a_function():
    def train():
        tables = make_tables()
        optimizer = RAW["Adam"](tables)

        @tf.function
        def steps(many):
            for ids in many:
                with tf.GradientTape() as tape:
                    loss = loss_of(gathered(tables, ids))
                apply(optimizer, tape, loss, tables)

        for start in range(0, STEPS, 5):
            steps(tf.stack([ids_of(start + i) for i in range(5)]))
        return snapshot(tables, optimizer)

    report = compare(train)
    assert sum(updates(report)) >= len(WIDTHS), report.details()


def test_a_checkpoint_is_saved_and_restored_in_between(tmp_path):
    def train():
        tables = make_tables()
        optimizer = RAW["Adagrad, by hand"](tables)

        @tf.function
        def step(ids):
            with tf.GradientTape() as tape:
                loss = loss_of(gathered(tables, ids))
            apply(optimizer, tape, loss, tables)

        found = {}
        checkpoint = tf.train.Checkpoint(tables=tables, slots=optimizer.variables)
        for i in range(10):
            step(ids_of(i))
        path = checkpoint.write(str(tmp_path / "checkpoint"))
        for part in ("first", "again"):
            checkpoint.read(path).assert_consumed()
            found |= {f"restored {part} {name}": value for name, value in snapshot(tables, optimizer).items()}
            for i in range(10, 20):
                step(ids_of(i))
            found |= {f"{part} {name}": value for name, value in snapshot(tables, optimizer).items()}
        for name in snapshot(tables, optimizer):
            assert found[f"first {name}"].tobytes() == found[f"again {name}"].tobytes()
        return found

    report = compare(train)
    assert sum(updates(report)) >= len(WIDTHS), report.details()


def test_many_threads_train_the_same_tables():
    """Every gradient is a multiple of 1/8, so the sum is exact in any order, if no update is lost."""
    tables = [tf.Variable(tf.zeros((5, width))) for width in (4, 3)]

    @tf.function
    def step(ids):
        with tf.GradientTape() as tape:
            loss = tf.add_n([tf.reduce_sum(tf.gather(table, ids)) for table in tables])
        for table, gradient in zip(tables, tape.gradient(loss, tables), strict=True):
            table.scatter_sub(tf.IndexedSlices(gradient.values * 0.125, gradient.indices))

    ids = tf.constant([0, 1, 1, 4, 0, 1])
    picasso_tf.enable(verify=True)
    try:
        step(ids)
        threads = [threading.Thread(target=lambda: [step(ids) for _ in range(50)]) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert updates(picasso_tf.report()) == [2]
    finally:
        picasso_tf.disable()
    for table in tables:
        np.testing.assert_array_equal(table[:, 0], -0.125 * 401 * np.array([2, 3, 0, 0, 1]))


def test_a_table_that_two_rules_update_keeps_their_order():
    """A decay of all rows and then a sparse rule, written by hand."""

    def train():
        tables = make_tables()
        optimizer = RAW["SGD"](tables)

        @tf.function
        def step(ids):
            with tf.GradientTape() as tape:
                loss = loss_of(gathered(tables, ids))
            gradients = tape.gradient(loss, tables)
            for table in tables:
                table.assign_sub(table * (RATE * 0.01))
            optimizer.apply_gradients(list(zip(gradients, tables, strict=True)))
            for table in tables:
                table.assign(tf.clip_by_value(table, -2.0, 2.0))

        for i in range(STEPS):
            step(ids_of(i))
        return snapshot(tables, optimizer)

    report = compare(train)
    assert sum(updates(report)) >= len(WIDTHS) or reasons(report), report.details()

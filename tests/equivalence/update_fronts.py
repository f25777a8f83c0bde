"""Trains one small model through each front end; the optimizer is given, everything else follows from fixed seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np
import tensorflow as tf

import picasso_tf
from tests.equivalence.training import Snapshot
from tests.equivalence.update_situations import DENSE, FIELDS, STEPS, TABLES, TablesAndKernels, batches, dataset

v1 = tf.compat.v1
RATE = 0.05


def keras_model(keras: ModuleType, **embedding_options: Any):
    """Wide and deep: a concatenation of rows, one on axis 1, and a width-1 table that feeds none."""
    layers = keras.layers
    inputs = {name: keras.Input((field.ids,), dtype=field.dtype, name=name) for name, field in FIELDS.items()}
    inputs["age"] = keras.Input((DENSE,), name="age")
    tables = {
        name: layers.Embedding(rows, width, name=f"{name}_table", **embedding_options)
        for name, (rows, width) in TABLES.items()
    }
    rows = {name: tables[field.table](inputs[name]) for name, field in FIELDS.items()}
    pairs = layers.Concatenate(axis=1)([rows["user"], rows["city"], rows["home"]])
    crossed = layers.Flatten()(layers.Dot(axes=(2, 2))([pairs, pairs]))
    deep = [layers.Flatten()(rows[name]) for name in FIELDS if name != "tag"]
    hidden = layers.Dense(8, activation="tanh")(layers.Concatenate()([*deep, inputs["age"], crossed]))
    return keras.Model(inputs, layers.Add()([layers.Dense(1)(hidden), layers.Flatten()(rows["tag"])]))


def sum_of_squares(labels: tf.Tensor, outputs: tf.Tensor) -> tf.Tensor:
    """A loss that is 0, not NaN, for an empty batch."""
    return tf.reduce_sum(tf.square(outputs - tf.cast(labels, outputs.dtype))) * 0.05


def keras_snapshot(model) -> Snapshot:
    """Every variable and every slot."""
    slots = model.optimizer.variables
    slots = slots() if callable(slots) else slots
    named = [
        *((f"variable {i}", v) for i, v in enumerate(model.variables)),
        *((f"slot {i}", v) for i, v in enumerate(slots)),
    ]
    return {name: np.asarray(variable) for name, variable in named}


def train_keras(
    keras: ModuleType,
    optimizer: Callable[[], Any],
    steps: int = STEPS,
    build: Callable[[ModuleType], Any] = keras_model,
    **compile_options: Any,
) -> Snapshot:
    """`fit` for `steps` steps."""
    keras.backend.clear_session()
    keras.utils.set_random_seed(7)
    model = build(keras)
    model.compile(optimizer(), sum_of_squares, **compile_options)
    model.fit(dataset(steps), verbose=0)
    return keras_snapshot(model)


def train_v1_session(optimizer: Callable[[], Any]) -> Snapshot:
    """`minimize` in a graph, run in a session."""
    with tf.Graph().as_default(), v1.variable_scope("model", use_resource=True):
        v1.set_random_seed(0)
        model = TablesAndKernels(lambda value, name: v1.get_variable(name, initializer=value))
        columns = {name: v1.placeholder(field.dtype, [None, field.ids]) for name, field in FIELDS.items()}
        columns["age"] = v1.placeholder("float32", [None, DENSE])
        labels = v1.placeholder("float32", [None, 1])
        loss = model.loss(columns, labels)
        update = optimizer().minimize(loss)
        options = v1.ConfigProto()
        options.graph_options.rewrite_options.use_plugin_optimizers = 1 if picasso_tf.is_enabled() else 2  # on, off
        with v1.Session(config=options) as session:
            session.run(v1.global_variables_initializer())
            losses = []
            for values, wanted in batches():
                fed = {columns[name]: value for name, value in values.items()} | {labels: wanted}
                losses.append(session.run([loss, update], fed)[0])
            found = session.run({variable.name: variable for variable in v1.global_variables()})
    return {"losses": np.array(losses), **found}


def train_function(
    optimizer: Callable[[Sequence[tf.Variable]], Any],
    apply: Callable[[Any, list[tuple[Any, tf.Variable]]], None] = lambda made, pairs: made.apply_gradients(pairs),
    model: Callable[[], TablesAndKernels] = TablesAndKernels,
) -> Snapshot:
    """A train step in `tf.function`.

    Args:
        optimizer: makes the optimizer for some variables.
        apply: applies gradients in the step.
        model: makes the model.
    """
    trained = model()
    made = optimizer(trained.variables)

    @tf.function(reduce_retracing=True)
    def step(columns, labels):
        with tf.GradientTape() as tape:
            loss = trained.loss(columns, labels)
        apply(made, list(zip(tape.gradient(loss, trained.variables), trained.variables, strict=True)))
        return loss

    losses = []
    for columns, labels in batches():
        tensors = {name: tf.constant(value) for name, value in columns.items()}
        losses.append(step(tensors, tf.constant(labels)).numpy())
    if hasattr(made, "get_slot_names"):
        slots = [made.get_slot(v, name) for v in trained.variables for name in sorted(made.get_slot_names())]
    else:
        slots = made.variables
    found = {f"slot {i}": np.asarray(slot) for i, slot in enumerate(slots) if slot is not None}
    return {"losses": np.array(losses), **{v.name: v.numpy() for v in trained.variables}, **found}

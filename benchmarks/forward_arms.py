"""TensorFlow's arms of the forward benchmark: embedding layers and a concatenation, stock or with the plugin."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks.batches import endless
from benchmarks.shapes import Shape, digest
from benchmarks.worker import Arm


def lookups(shape: dict[str, Any], front_end: str, plugin: bool, trained: bool, matrix: bool = False) -> Arm:
    """An Embedding per field, then Concatenate, called in a tf.function.

    Args:
        shape: settings of a `Shape`.
        front_end: "keras" (that is Keras 3) or "tf_keras".
        plugin: whether picasso_tf is enabled.
        trained: whether each table has seen a sparse update. From then on, and for ever, TensorFlow copies a table
            whole on every read of it.
        matrix: the ids come as one matrix [batch, fields], of which each layer takes a column, as FBGEMM takes its ids
            in one tensor; else as one tensor [batch, 1] per field.
    """
    what = Shape(**shape)
    if plugin:
        import picasso_tf

        picasso_tf.enable()
    keras = importlib.import_module(front_end)
    layers = [keras.layers.Embedding(what.rows, what.width) for _ in range(what.fields)]
    fields = [what.ids(field) for field in range(what.fields)]
    if matrix:
        inputs = keras.Input((what.fields,), dtype="int32")
        vectors = [layer(inputs[:, field]) for field, layer in enumerate(layers)]
        batches = endless(np.stack(fields, axis=2))
    else:
        inputs = [keras.Input((1,), dtype="int32") for _ in layers]
        vectors = [keras.layers.Flatten()(layer(ids)) for layer, ids in zip(layers, inputs, strict=True)]
        batches = endless(tuple(ids[..., None] for ids in fields))
    model = keras.Model(inputs, keras.layers.Concatenate()(vectors))
    for field, layer in enumerate(layers):
        layer.embeddings.assign(what.table(field))
        if trained:
            _update_sparsely(layer.embeddings)

    @tf.function(reduce_retracing=True)
    def forward(iterator: Any) -> tf.Tensor:
        ids = next(iterator)
        return model(ids if matrix else list(ids), training=False)

    def check() -> dict[str, Any]:
        if plugin:
            _check_packed(what.fields)
        return {"digest": digest(forward(iter(batches)).numpy())}

    iterator = iter(batches)
    return Arm(lambda: forward(iterator), check)


def _check_packed(wanted: int) -> None:
    import picasso_tf

    packed = max((graph.lookups_packed for graph in picasso_tf.report().graphs), default=0)
    if packed != wanted:
        raise AssertionError(f"{packed} lookups were packed, but {wanted} should have been")


def _update_sparsely(embeddings: Any) -> None:
    """Subtracts zeros from one row: an update that leaves every value as it was."""
    variable = embeddings if isinstance(embeddings, tf.Variable) else embeddings.value  # Keras 3 wraps it
    variable.scatter_sub(tf.IndexedSlices(tf.zeros([1, variable.shape[1]]), tf.constant([0])))


def call_only(shape: dict[str, Any]) -> Arm:
    """What remains of the above when nothing is looked up: the call, with as many variables, and the ids' way in."""
    what = Shape(**shape)
    variables = [tf.Variable(tf.zeros([1, what.width])) for _ in range(what.fields)]
    iterator = iter(endless(tuple(what.ids(field)[..., None] for field in range(what.fields))))

    @tf.function(reduce_retracing=True)
    def first_ids(iterator: Any) -> tf.Tensor:
        for variable in variables:
            tf.compat.v1.get_default_graph().capture(variable.handle)
        return next(iterator)[0]

    return Arm(lambda: first_ids(iterator), dict)

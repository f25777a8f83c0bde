"""Arms that train: a Keras model's train step, stock or with the plugin."""

from __future__ import annotations

from typing import Any

from benchmarks.batches import endless
from benchmarks.worker import Arm

FIRST_STEPS = 5
"""Steps made by `fit` before any is timed. Their losses are compared between arms; and from the second step on, tables
have seen a sparse update, which changes for good how fast stock TensorFlow reads them."""


def enable(plugin: bool) -> None:
    """Switches the plugin on where it is wanted."""
    if plugin:
        import picasso_tf

        picasso_tf.enable()


def train(model: Any, inputs: Any, labels: Any, rewritten: int) -> Arm:
    """Trains a compiled model. A step is one call of its train function: what `fit` does per batch, but its callbacks.

    Args:
        model: compiled, of Keras 3 or tf_keras.
        inputs: a nest of arrays [batches, batch, ...].
        labels: array [batches, batch, ...].
        rewritten: lookups that the plugin must have rewritten; 0 where it is off.
    """
    dataset = endless((inputs, labels))
    history = model.fit(dataset, epochs=FIRST_STEPS, steps_per_epoch=1, verbose=0)
    if rewritten:
        _check_rewritten(rewritten)
    iterator = iter(dataset)
    return Arm(step=lambda: model.train_function(iterator), check=lambda: {"losses": history.history["loss"]})


def _check_rewritten(wanted: int) -> None:
    import picasso_tf

    passes = [graph.rewritten for graph in picasso_tf.report().graphs]
    rewritten = max((len(names.get("canonicalize", ())) for names in passes), default=0)
    if rewritten != wanted:
        raise AssertionError(f"{rewritten} lookups were rewritten, but {wanted} should have been")

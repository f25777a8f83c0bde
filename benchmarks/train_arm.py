"""Arms that train: a Keras model's train step, stock or with the plugin."""

from __future__ import annotations

from typing import Any

from benchmarks.batches import endless
from benchmarks.worker import Arm

FIRST_STEPS = 5
"""Steps made by `fit` before any is timed. Their losses are compared between arms; and from the second step on, tables
have seen a sparse update, which changes for good how fast stock TensorFlow reads them."""


def train(model: Any, inputs: Any, labels: Any, plugin: bool) -> Arm:
    """Trains a compiled model. A step is one call of its train function: what `fit` does per batch, but its callbacks.

    Args:
        model: compiled, of Keras 3 or tf_keras. picasso_tf is enabled already when it is to be.
        inputs: a nest of arrays [batches, batch, ...].
        labels: array [batches, batch, ...].
        plugin: whether picasso_tf is enabled.
    """
    dataset = endless((inputs, labels))
    history = model.fit(dataset, epochs=FIRST_STEPS, steps_per_epoch=1, verbose=0)
    iterator = iter(dataset)
    return Arm(
        step=lambda: model.train_function(iterator),
        check=lambda: {"losses": history.history["loss"], "packed": _packed() if plugin else 0},
    )


def enable(plugin: bool) -> None:
    """Switches the plugin on where it is wanted."""
    if plugin:
        import picasso_tf

        picasso_tf.enable()


def _packed() -> int:
    """Lookups that packed ops, or row gathers in place of whole-table reads, do in the train step."""
    import picasso_tf

    return max((len(graph.rewritten.get("canonicalize", ())) for graph in picasso_tf.report().graphs), default=0)

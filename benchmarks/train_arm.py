"""Arms that train: a Keras model's train step, stock or with the plugin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.batches import endless
from benchmarks.harness import BenchmarkError
from benchmarks.worker import Arm

FIRST_STEPS = 5
"""Steps made by `fit` before any is timed. Their losses are compared between arms; and from the second step on, tables
have seen a sparse update, which changes for good how fast stock TensorFlow reads them."""


def enable(plugin: bool) -> None:
    """Switches the plugin on where it is wanted."""
    if plugin:
        import picasso_tf

        picasso_tf.enable()


def optimizer(keras: Any, name: str, rate: float) -> Any:
    """An optimizer of the front end's present generation; tf_keras's `get` would give one of its older.

    Args:
        keras: the module, Keras 3 or tf_keras.
        name: "sgd", "adagrad" or "adam".
        rate: the learning rate.
    """
    names = {"sgd": "SGD", "adagrad": "Adagrad", "adam": "Adam"}
    return getattr(keras.optimizers, names[name])(rate)


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


def packs() -> list[int]:
    """How many ops each packed op of the largest rewritten graph does the work of, the largest first.

    Raises:
        BenchmarkError: a pass failed, so that a graph ran as it came.
    """
    import picasso_tf

    graphs = picasso_tf.report().graphs
    failures = [failure for graph in graphs for failure in graph.failures]
    if failures:
        raise BenchmarkError(f"A pass failed: {failures[0]}")
    return max((sorted((len(p.members) for p in g.packed), reverse=True) for g in graphs), key=sum, default=[])


def check_packed(found: Sequence[int], tables: int) -> None:
    """Makes sure that all lookups went into packed ops, and all updates too.

    Args:
        found: what `packs` gave.
        tables: as many lookups there were, and at least as many updates.

    Raises:
        BenchmarkError: they did not.
    """
    if len(found) < 2 or found[0] < tables or sum(found) < 2 * tables:
        raise BenchmarkError(f"{tables} lookups and their updates should have been packed; packed were {found}.")


def _check_rewritten(wanted: int) -> None:
    import picasso_tf

    passes = [graph.rewritten for graph in picasso_tf.report().graphs]
    rewritten = max((len(names.get("canonicalize", ())) for names in passes), default=0)
    if rewritten != wanted:
        raise AssertionError(f"{rewritten} lookups were rewritten, but {wanted} should have been")

"""Arms that train one of `benchmarks.models`: stock or with the plugin, with its tables or the dense part alone."""

from __future__ import annotations

import importlib
import os
import resource
import time
from collections.abc import Sequence
from typing import Any

from benchmarks.harness import BenchmarkError, Entry
from benchmarks.model_shape import TF_KERAS, ModelShape
from benchmarks.worker import Arm

RATES = {"sgd": 0.05, "adagrad": 0.05, "adam": 0.001}
"""Optimizers, each with its learning rate."""

OURS = "ours"
STOCK = "stock"
FLOOR = "dense part alone, stock"


def entries(shape: ModelShape, optimizer: str, jit: bool = False) -> list[Entry]:
    """Ours, stock, and the dense part alone.

    Args:
        shape: what model.
        optimizer: a key of `RATES`.
        jit: whether XLA compiles the steps.
    """

    def arm(name: str, **settings: bool) -> Entry:
        values = {"shape": shape.settings(), "optimizer": optimizer, "jit": jit, **settings}
        return Entry(name, "benchmarks.model_arm:train", values)

    return [arm(OURS, plugin=True), arm(STOCK), arm(FLOOR, floor=True)]


def train(shape: dict[str, Any], optimizer: str, plugin: bool = False, floor: bool = False, jit: bool = False) -> Arm:
    """A model's train step, as `fit` runs it.

    Args:
        shape: settings of a `ModelShape`.
        optimizer: a key of `RATES`.
        plugin: whether picasso_tf is enabled.
        floor: whether it is the dense part alone.
        jit: whether XLA compiles the step.
    """
    model, inputs, labels = _compiled(ModelShape.of(shape), optimizer, plugin, floor, jit)
    from benchmarks import train_arm

    arm = train_arm.train(model, inputs, labels, rewritten=0)
    packs = train_arm.packs() if plugin else []
    if plugin and not packs and not jit:
        raise BenchmarkError("Nothing was packed.")
    return Arm(arm.step, lambda: {**arm.check(), "packs": packs})


def first_step(shape: dict[str, Any], optimizer: str, plugin: bool = False, jit: bool = False, steps: int = 20) -> Arm:
    """Says how long a model's first step takes, how many nodes its graph has, and how much memory the process took.

    The nodes are left out where XLA compiles the step. The arm's own step does nothing: a first step is to be made
    once per process.

    Args:
        shape: settings of a `ModelShape`.
        optimizer: a key of `RATES`.
        plugin: whether picasso_tf is enabled.
        jit: whether XLA compiles the step.
        steps: made before the process's largest memory is read.
    """
    model, inputs, labels = _compiled(ModelShape.of(shape), optimizer, plugin, False, jit)
    from benchmarks.batches import endless

    dataset = endless((inputs, labels))
    start, start_cpu = time.perf_counter(), time.process_time()
    loss = [model.fit(dataset, epochs=1, steps_per_epoch=1, verbose=0).history["loss"][0]]
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - start_cpu
    loss += model.fit(dataset, epochs=steps - 1, steps_per_epoch=1, verbose=0).history["loss"]
    check: dict[str, Any] = {"losses": loss, "peak_bytes": _peak_bytes()}
    check |= {"first_seconds": seconds, "first_cpu_seconds": cpu_seconds}
    if not jit:  # what XLA compiles is one node
        ops = run_ops(lambda: model.train_function(iter(dataset)))
        check |= {"nodes": len(ops), "nodes_that_do_something": sum(op != "NoOp" for op in ops)}
    return Arm(lambda: None, lambda: check)


def predict(shape: dict[str, Any], plugin: bool = False) -> Arm:
    """A call of a model, as a server makes it: a tf.function that takes a batch from a dataset.

    No table has seen an update, as in a process that has only loaded a model: stock TensorFlow reads rows then, and
    does not copy tables. The losses of the first predictions are for comparison, and are not computed in a step.

    Args:
        shape: settings of a `ModelShape`.
        plugin: whether picasso_tf is enabled.
    """
    model, inputs, labels = _compiled(ModelShape.of(shape), "sgd", plugin, floor=False, jit=False)
    import numpy as np
    import tensorflow as tf

    from benchmarks import train_arm
    from benchmarks.batches import endless

    call = tf.function(lambda iterator: model(next(iterator), training=False), reduce_retracing=True)
    iterator = iter(endless(inputs))
    first = [call(iterator).numpy() for _ in labels[: train_arm.FIRST_STEPS]]
    losses = [float(np.square(outputs - wanted).mean()) for outputs, wanted in zip(first, labels, strict=False)]
    packs = train_arm.packs() if plugin else []
    return Arm(lambda: call(iterator), lambda: {"losses": losses, "packs": packs})


def run_ops(step: Any) -> Sequence[str]:
    """The op of each node in the largest graph that TensorFlow runs in a step, after all of its optimizers.

    Args:
        step: calls a tf.function that ran before.
    """
    import tensorflow as tf
    from tensorflow.python.eager import context

    tf.config.optimizer.set_experimental_options({"debug_stripper": False})  # another key: the function is made anew
    context.enable_run_metadata()
    step()
    metadata = context.export_run_metadata()
    context.disable_run_metadata()
    graphs = [[node.op for part in graph.partition_graphs for node in part.node] for graph in metadata.function_graphs]
    return max(graphs, key=len)


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _compiled(shape: ModelShape, optimizer: str, plugin: bool, floor: bool, jit: bool) -> tuple[Any, Any, Any]:
    """(compiled model, inputs, labels)"""
    if shape.front_end == TF_KERAS:
        os.environ["TF_USE_LEGACY_KERAS"] = "1"  # TensorFlow Recommenders asks for it; before TensorFlow is imported
    from benchmarks import models, train_arm

    train_arm.enable(plugin)
    keras = importlib.import_module(shape.front_end)
    keras.utils.set_random_seed(0)
    model = models.build(keras, shape, floor)
    inputs, labels = models.data(shape, floor)
    loss = {} if shape.kind.startswith("tfrs_") else {"loss": "binary_crossentropy"}  # those bring their own
    model.compile(train_arm.optimizer(keras, optimizer, RATES[optimizer]), jit_compile=jit, **loss)
    return model, inputs, labels

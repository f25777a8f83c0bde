"""The process in which one run of the demo lives."""

import os
import resource
import sys
import time
from multiprocessing.connection import Connection
from typing import Any

from examples.arm_messages import LEARNING_RATES, ArmSettings, Chunk, GraphFigures, Summary
from examples.click_data import ClickData


def run(connection: Connection, settings: ArmSettings, data: ClickData) -> None:
    """Builds the model, trains it as the parent asks, tests it.

    Messages sent: "ready" once the model is built, a Chunk for each number of steps received, a Summary for "test".

    Args:
        connection: to the parent.
        settings: of the run.
        data: what to train and test on.
    """
    log = os.open(settings.log_path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(log, stream.fileno())  # the descriptor itself: TensorFlow's C++ side prints too

    # Only now, for importing TensorFlow prints.
    import keras
    import tensorflow as tf

    from examples import wide_and_deep

    if settings.plugin:
        import picasso_tf

        picasso_tf.enable(dump_dir=settings.dump_dir)

    keras.utils.set_random_seed(settings.seed)
    model = wide_and_deep.build_model(
        data.table_rows, data.dense_columns, embedding_dim=settings.embedding_dim, wide_fields=data.wide_fields
    )
    wide_and_deep.compile_model(model, settings.optimizer, LEARNING_RATES[settings.optimizer], jit=settings.jit)
    batches = data.train.batched(settings.batch_size)
    # No prefetching: it would go on working while the other run is being timed.
    pipeline = tf.data.Dataset.from_tensor_slices((batches.features, batches.labels)).repeat()
    connection.send("ready")

    model.fit(pipeline, steps_per_epoch=settings.steps, verbose=0, callbacks=[_stepping(connection, keras)])

    if connection.recv() != "test":
        raise AssertionError("The run has made all its steps.")
    graphs = _graphs(picasso_tf.report()) if settings.plugin else []
    auc = keras.metrics.AUC(num_thresholds=1000)
    auc.update_state(data.test.labels[:, None], model.predict(data.test.features, settings.batch_size, verbose=0))
    peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    connection.send(Summary(float(auc.result()), peak_kib * 1024, graphs))


def _stepping(connection: Connection, keras: Any) -> Any:
    """Returns a Keras callback that trains as many steps as the parent asks for, replies with a Chunk, and waits."""

    class Stepping(keras.callbacks.Callback):
        allowed = 0

        def on_train_batch_begin(self, batch: int, logs: dict[str, Any] | None = None) -> None:
            if not self.allowed:
                self.allowed = connection.recv()
                self.chunk = Chunk([], [])
            self.start = time.perf_counter()

        def on_train_batch_end(self, batch: int, logs: dict[str, Any]) -> None:
            loss = float(logs["loss"])  # waits for the step where steps are asynchronous
            self.chunk.seconds.append(time.perf_counter() - self.start)
            self.chunk.losses.append(loss)
            self.model.reset_metrics()  # Keras reports a running mean; this makes it the loss of one batch
            self.allowed -= 1
            if not self.allowed:
                connection.send(self.chunk)

    return Stepping()


def _graphs(report: Any) -> list[GraphFigures]:
    return [
        GraphFigures(
            graph.name,
            graph.nodes_before,
            graph.nodes_after,
            graph.lookups_packed,
            graph.updates_packed,
            len(graph.packed),
            len(graph.declined),
            [str(failure) for failure in graph.failures],
        )
        for graph in report.graphs
    ]

"""Situations that users have reported as bugs, in Keras: each takes the module of a front end, Keras 3 or tf_keras.

`python -m tests.equivalence.keras_situations FRONT_END` compares `two_replicas` in a process with two logical devices,
which must be made before TensorFlow starts.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

import numpy as np
import tensorflow as tf

from tests.equivalence.situations import ROWS, WIDTHS, attempts, random_ids
from tests.equivalence.training import Snapshot, compare

EXAMPLES = 8
FEATURES = 167
LABELS = np.linspace(0, 1, EXAMPLES, dtype=np.float32)[:, None]


def embeddings(front: ModuleType, **options: Any) -> list[Any]:
    """Two tables."""
    return [front.layers.Embedding(ROWS, width, **options) for width in WIDTHS]


def trained(
    front: ModuleType, ids: np.ndarray, optimizer: Any = None, pooling: Any = None, steps: int = 4, **options: Any
) -> tuple[Any, Snapshot]:
    """A model of two tables and a layer behind them, and its losses and weights after some steps.

    Args:
        front: the module.
        ids: int32 [examples, ids].
        optimizer: default: Adagrad.
        pooling: the layer behind the embeddings; default: Flatten.
        steps: on the same batch.
        options: of the embedding layers.
    """
    inputs = front.Input((ids.shape[1],), dtype="int32")
    vectors = front.layers.Concatenate()([table(inputs) for table in embeddings(front, **options)])
    output = front.layers.Dense(1)((pooling or front.layers.Flatten())(vectors))
    model = front.Model(inputs, output)
    model.compile(optimizer or front.optimizers.Adagrad(0.1), "mse")
    history = model.fit(ids, LABELS, batch_size=EXAMPLES, epochs=steps, verbose=0)
    return model, attempts(losses=lambda: np.array(history.history["loss"]), weights=model.get_weights)


def clipped_gradients(front: ModuleType) -> Snapshot:
    """Sparse gradients are clipped with duplicates in them, one id in the whole batch."""
    found = {}
    for option in ("clipnorm", "global_clipnorm", "clipvalue"):
        optimizer = front.optimizers.Adagrad(0.1, **{option: 0.01})
        _, snapshot = trained(front, np.ones((EXAMPLES, 5), np.int32), optimizer)
        found |= {f"{option} {name}": value for name, value in snapshot.items()}
    return found


def masked_padding(front: ModuleType) -> Snapshot:
    """Id 0 is padding; a row of nothing else has no mean."""
    ids = random_ids(EXAMPLES, 6) * (random_ids(EXAMPLES, 6, seed=1) > 4)
    model, found = trained(front, ids, pooling=front.layers.GlobalAveragePooling1D(), mask_zero=True)
    return found | {"padding": np.isnan(model.predict(np.zeros((2, 6), np.int32), verbose=0))}


def regularized_tables(front: ModuleType) -> Snapshot:
    """A penalty on all rows: those that no id names move too."""
    return trained(front, random_ids(EXAMPLES, 3), embeddings_regularizer=front.regularizers.L2(0.01))[1]


def an_id_many_times_in_an_example(front: ModuleType) -> Snapshot:
    """Whether Adagrad sums the gradients of duplicates before it squares them shows here."""
    return trained(front, np.array([[1, 1, 1, 2]] * EXAMPLES, np.int32))[1]


def changing_batches(front: ModuleType) -> Snapshot:
    """Each batch has another size, as a stream's have."""
    model, found = trained(front, random_ids(EXAMPLES, 2))
    sizes = (1, 7, 8, 3, 256)
    losses = [model.train_on_batch(random_ids(size, 2), np.ones((size, 1), np.float32)) for size in sizes]
    return found | attempts(changing=lambda: [np.ravel(loss)[0] for loss in losses], weights=model.get_weights)


def hashed_ids(front: ModuleType) -> Snapshot:
    """Strings, numbers and a masked value are hashed to ids in the graph."""
    layers = front.layers
    strings, numbers = front.Input((1,), dtype="string"), front.Input((1,), dtype="int64")
    tables = [*embeddings(front), layers.Embedding(ROWS, 3)]
    hashes = [
        layers.Hashing(ROWS)(strings),
        layers.Hashing(ROWS)(numbers),
        layers.Hashing(ROWS, mask_value="")(strings),
    ]
    joined = layers.Concatenate()([table(ids) for table, ids in zip(tables, hashes, strict=True)])
    model = front.Model([strings, numbers], [joined, *hashes])
    call = tf.function(lambda words, ids: model([words, ids]))
    return attempts(call=lambda: call(tf.constant([["1"], ["2"], [""]]), tf.constant([[1], [2], [0]], tf.int64)))


def words_that_xla_cannot_look_up(front: ModuleType) -> Snapshot:
    """A vocabulary of strings before the tables: refused by XLA, and as ever without it."""
    words = front.layers.StringLookup(vocabulary=list("abcde"))
    tables = embeddings(front)

    def call(given: tf.Tensor) -> tf.Tensor:
        ids = words(given)
        return tf.concat([table(ids) for table in tables], axis=-1)

    given = tf.constant(["a", "z"])
    return attempts(plain=lambda: tf.function(call)(given), compiled=lambda: tf.function(call, jit_compile=True)(given))


def accumulated_gradients(front: ModuleType) -> Snapshot:
    """The sparse gradients of two micro-batches are joined and applied at once."""
    tables = embeddings(front)
    for table in tables:
        table.build((None, 3))
    weights = [table.embeddings for table in tables]
    variables = [weight if isinstance(weight, tf.Variable) else weight.value for weight in weights]
    optimizer = front.optimizers.Adagrad(0.1)
    optimizer.build(weights)

    @tf.function
    def step(*micro_batches: tf.Tensor) -> None:
        parts = []
        for ids in micro_batches:
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.concat([table(ids) for table in tables], axis=-1) ** 2)
            parts.append(tape.gradient(loss, variables))
        joined = [
            tf.IndexedSlices(
                tf.concat([part.values for part in of_table], 0),
                tf.concat([part.indices for part in of_table], 0),
                size,
            )
            for of_table, size in zip(zip(*parts, strict=True), map(tf.shape, variables), strict=True)
        ]
        optimizer.apply_gradients(zip(joined, weights, strict=True))

    for n in range(4):
        step(tf.constant(random_ids(8, 3, seed=n)), tf.constant(random_ids(4, 3, seed=n + 10)))
    return attempts(tables=lambda: variables)


def many_features_to_serve(front: ModuleType) -> Snapshot:
    """A wide model called as a server calls it."""
    layers = front.layers
    inputs = [front.Input((1,), dtype="int32") for _ in range(FEATURES)]
    vectors = [layers.Flatten()(layers.Embedding(ROWS, 4)(ids)) for ids in inputs]
    model = front.Model(inputs, layers.Dense(1)(layers.Concatenate()(vectors)))
    serve = tf.function(lambda columns: model(columns, training=False))
    columns = [tf.constant(random_ids(100, 1, seed=n)) for n in range(FEATURES)]
    return attempts(serve=lambda: serve(columns))


def two_replicas(front: ModuleType) -> Snapshot:
    """A mirrored model, of whose batch each replica gets a half."""
    front.utils.set_random_seed(5)
    with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
        return trained(front, random_ids(EXAMPLES, 3))[1]


def main(front_end: str) -> None:
    """Compares `two_replicas`; the last line says how many lookups were packed in each graph."""
    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    front = importlib.import_module(front_end)
    report = compare(lambda: two_replicas(front))
    print([graph.lookups_packed for graph in report.graphs])


if __name__ == "__main__":
    main(sys.argv[1])

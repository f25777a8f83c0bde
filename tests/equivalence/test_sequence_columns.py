"""Sequence feature columns through tf_keras: a row for each place of a sequence, and their mean."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
import tensorflow as tf

from tests.equivalence.training import Snapshot, compare

BATCH, LENGTH, STEPS, ROWS = 16, 5, 4, 50
WIDTHS = {"items": 8, "shops": 8, "words": 4}


def batch(step: int) -> dict[str, tf.SparseTensor]:
    """The sequences of one batch: some without a place, and one that has them all."""
    random = np.random.default_rng(step)
    found = {}
    for name in WIDTHS:
        counts = random.integers(0, LENGTH + 1, BATCH)
        counts[step % BATCH] = LENGTH
        places = np.array([(row, at) for row in range(BATCH) for at in range(counts[row])], np.int64)
        ids = random.integers(0, ROWS, len(places))
        values = ids.astype("S2") if name == "words" else ids
        found[name] = tf.SparseTensor(places, values, [BATCH, LENGTH])
    return found


def columns() -> list:
    column = tf.feature_column
    ids = [column.sequence_categorical_column_with_identity(name, ROWS) for name in ("items", "shops")]
    ids.append(column.sequence_categorical_column_with_hash_bucket("words", ROWS))
    return [column.embedding_column(one, width) for one, width in zip(ids, WIDTHS.values(), strict=True)]


@pytest.mark.parametrize("optimizer", ["SGD", "Adagrad", "Adam"])
def test_training_gives_the_same_bits(optimizer: str) -> None:
    keras = importlib.import_module("tf_keras")

    def train() -> Snapshot:
        keras.backend.clear_session()
        keras.utils.set_random_seed(3)
        layers = [keras.experimental.SequenceFeatures([column]) for column in columns()]
        dense, rule = keras.layers.Dense(1), getattr(keras.optimizers, optimizer)(0.1)

        @tf.function(reduce_retracing=True)
        def step(sequences: dict[str, tf.SparseTensor], y: tf.Tensor) -> tf.Tensor:
            with tf.GradientTape() as tape:
                means = []
                for layer in layers:
                    rows, lengths = layer(sequences)
                    there = tf.sequence_mask(lengths, LENGTH, tf.float32)[..., None]
                    means.append(tf.reduce_sum(rows * there, 1) / tf.maximum(tf.reduce_sum(there, 1), 1.0))
                loss = tf.reduce_mean((dense(tf.concat(means, 1)) - y) ** 2)
            variables = [v for layer in [*layers, dense] for v in layer.trainable_variables]
            rule.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
            return loss

        y = np.random.default_rng(0).random((STEPS, BATCH, 1)).astype(np.float32)
        losses = np.array([step(batch(number), y[number]) for number in range(STEPS)])
        variables = [v for part in [*layers, dense] for v in part.variables] + list(rule.variables)
        return {"losses": losses, **{f"{n}": tf.convert_to_tensor(v).numpy() for n, v in enumerate(variables)}}

    graph = max(compare(train).graphs, key=lambda graph: graph.nodes_before)
    packs = [len(pack.members) for pack in graph.packed if pack.kind == "lookup" and "pooling_packing" in pack.node]
    assert packs == [len(WIDTHS)]
    assert {declined.code for declined in graph.declined} <= {"single_transform"}  # the one hash

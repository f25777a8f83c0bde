"""Keras 3 and tf_keras: 20 steps with and without the plugin leave the same bits."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from tests.equivalence.training import ROWS, compare, features, labels, train_keras

FRONT_ENDS = {"keras3": keras, "tf_keras": tf_keras}
LOOKUPS = len(ROWS) + 1  # one field more, which shares a table


@pytest.mark.parametrize("optimizer", ["SGD", "Adagrad", "Adam", "RMSprop", "Ftrl"])
@pytest.mark.parametrize("front_end", FRONT_ENDS)
def test_training_is_bit_identical(front_end, optimizer):
    report = compare(lambda: train_keras(FRONT_ENDS[front_end], optimizer))
    step = next(graph for graph in report.graphs if graph.name.startswith("update"))
    forward = [packed for packed in step.packed if packed.absorbed]  # tf_keras also gathers slots, after the update
    assert [(len(packed.members), len(packed.absorbed)) for packed in forward] == [(LOOKUPS, 2)]
    assert not step.declined
    assert step.nodes_after < step.nodes_before


def test_several_steps_per_execution_are_bit_identical():
    report = compare(lambda: train_keras(keras, "SGD", steps_per_execution=4))
    assert sum(graph.lookups_packed for graph in report.graphs) >= LOOKUPS


def test_mixed_precision_is_bit_identical():
    def train():
        keras.mixed_precision.set_global_policy("mixed_bfloat16")
        try:
            return train_keras(keras, "SGD")
        finally:
            keras.mixed_precision.set_global_policy("float32")

    report = compare(train)
    assert sum(graph.lookups_packed for graph in report.graphs) >= LOOKUPS


@pytest.mark.parametrize("front_end", FRONT_ENDS)
def test_columns_of_one_matrix_are_read_in_place(front_end):
    front = FRONT_ENDS[front_end]

    def train():
        front.backend.clear_session()
        front.utils.set_random_seed(3)
        ids = front.Input((6,), dtype="int32")
        vectors = [front.layers.Embedding(50 + i, 4 + i)(ids[:, i]) for i in range(6)]
        out = front.layers.Dense(1)(front.layers.Concatenate()(vectors))
        model = front.Model(ids, out)
        model.compile(front.optimizers.SGD(0.1), "mse")
        x = np.random.default_rng(5).integers(0, 50, (320, 6)).astype("int32")
        history = model.fit(tf.data.Dataset.from_tensor_slices((x, labels(320))).batch(32), verbose=0)
        return {"loss": np.array(history.history["loss"]), **{str(i): w for i, w in enumerate(model.get_weights())}}

    report = compare(train)
    assert [graph.lookups_packed for graph in report.graphs] == [6]


def test_sequences_of_unknown_length_are_bit_identical():
    def train():
        keras.backend.clear_session()
        keras.utils.set_random_seed(3)
        items, shops = keras.Input((None,), dtype="int32"), keras.Input((None,), dtype="int32")
        joined = keras.layers.Concatenate()(
            [keras.layers.Embedding(100, 8)(items), keras.layers.Embedding(20, 4)(shops)]
        )
        model = keras.Model([items, shops], keras.layers.Dense(1)(keras.layers.GlobalAveragePooling1D()(joined)))
        model.compile(keras.optimizers.Adagrad(0.1), "mse")
        generator = np.random.default_rng(0)
        losses = []
        for length in (3, 7, 1, 3):
            x = [generator.integers(0, rows, (16, length)).astype("int32") for rows in (100, 20)]
            losses.append(model.train_on_batch(x, labels(16)))
        return {"losses": np.array(losses), **{str(i): w for i, w in enumerate(model.get_weights())}}

    report = compare(train)
    assert sum(graph.lookups_packed for graph in report.graphs) >= 2


def test_changing_batch_sizes_down_to_none_are_bit_identical():
    def train():
        keras.utils.set_random_seed(7)
        tables = [keras.layers.Embedding(rows, 4) for rows in ROWS.values()]
        for table in tables:
            table.build((None, 1))

        @tf.function(reduce_retracing=True)
        def forward(columns):
            return tf.concat([tf.squeeze(table(ids), 1) for table, ids in zip(tables, columns, strict=True)], axis=1)

        outputs = {}
        for batch in (5, 1, 64, 0):
            columns = [features(ROWS, batch)[name] for name in ROWS]
            outputs[f"batch {batch}"] = forward(columns).numpy()
        return outputs

    compare(train)

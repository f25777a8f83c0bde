"""Trains two TensorFlow Recommenders models and saves every variable: python recommenders_script.py OUT.npz.

Run as a process of its own, since TFRS needs TF_USE_LEGACY_KERAS=1 from the start.
"""

import sys

import numpy as np
import tensorflow as tf
import tensorflow_recommenders as tfrs

ROWS = {"user": 50, "item": 1000, "hour": 24}
BATCH, STEPS = 64, 20


class TwoTower(tfrs.Model):
    """Retrieval with an embedding table on either side."""

    def __init__(self):
        super().__init__()
        self.user = tf.keras.layers.Embedding(ROWS["user"], 8)
        self.item = tf.keras.layers.Embedding(ROWS["item"], 8)
        self.task = tfrs.tasks.Retrieval()

    def compute_loss(self, inputs, training=False):
        features, _ = inputs
        return self.task(self.user(features["user"]), self.item(features["item"]), compute_metrics=False)


def ranking():
    """TFRS's own DLRM, whose embedding layer is the one for TPUs, run on the CPU."""
    embedding = tf.tpu.experimental.embedding
    tables = {name: embedding.TableConfig(rows, 8, combiner="mean", name=name) for name, rows in ROWS.items()}
    features = {name: embedding.FeatureConfig(table=table, name=name) for name, table in tables.items()}
    layer = tfrs.layers.embedding.TPUEmbedding(features, tf.keras.optimizers.legacy.Adagrad(0.05))
    blocks = tfrs.layers.blocks
    return tfrs.experimental.models.Ranking(
        embedding_layer=layer,
        bottom_stack=blocks.MLP([16, 8], final_activation="relu"),
        top_stack=blocks.MLP([16, 1], final_activation="sigmoid"),
    )


def main(path: str) -> None:
    generator = np.random.default_rng(0)
    sparse = {name: generator.integers(0, rows, STEPS * BATCH).astype("int32") for name, rows in ROWS.items()}
    dense = generator.random((STEPS * BATCH, 5), np.float32)
    labels = generator.integers(0, 2, (STEPS * BATCH, 1)).astype("float32")
    saved = {}
    for name, build, features in (
        ("two_tower", TwoTower, sparse),
        ("ranking", ranking, {"dense_features": dense, "sparse_features": sparse}),
    ):
        tf.keras.utils.set_random_seed(1)
        model = build()
        model.compile(optimizer=tf.keras.optimizers.Adagrad(0.1))
        history = model.fit(tf.data.Dataset.from_tensor_slices((features, labels)).batch(BATCH), verbose=0)
        saved[f"{name} loss"] = np.array(next(iter(history.history.values())))
        saved |= {f"{name} {i}": variable.numpy() for i, variable in enumerate(model.variables)}
    np.savez(path, **saved)


if __name__ == "__main__":
    main(sys.argv[1])

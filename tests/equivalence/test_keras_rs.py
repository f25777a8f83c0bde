"""Keras Recommenders' embedding layers on the TensorFlow backend: training gives stock's bits."""

from __future__ import annotations

from collections.abc import Callable

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.equivalence.training import Snapshot, compare

keras_rs = pytest.importorskip("keras_rs")

ROWS, EXAMPLES, LENGTH = 60, 43, 7
COMBINERS = ("sum", "mean", "sqrtn")
KINDS = ("dense", "sparse", "ragged")


def features(kind: str) -> dict[str, tf.Tensor]:
    """Ids, none of them 0, and their weights."""
    random = np.random.default_rng(0)
    ids = (random.zipf(1.5, (EXAMPLES, LENGTH)) % (ROWS - 1) + 1).astype(np.int32)
    weights = random.random(ids.shape).astype(np.float32) + 0.1
    if kind == "dense":
        return {"ids": tf.constant(ids), "weights": tf.constant(weights)}
    present = np.maximum(random.integers(1, LENGTH + 1, EXAMPLES), 1)[:, None] > np.arange(LENGTH)
    if kind == "sparse":
        return {"ids": tf.sparse.from_dense(ids * present), "weights": tf.sparse.from_dense(weights * present)}
    lengths = present.sum(axis=1)
    return {
        "ids": tf.RaggedTensor.from_row_lengths(ids[present], lengths),
        "weights": tf.RaggedTensor.from_row_lengths(weights[present], lengths),
    }


class Reduced(keras.Model):
    """EmbedReduce of one feature by tables of all combiners."""

    def __init__(self, weighted: bool):
        super().__init__()
        self.weighted = weighted
        widths = zip(COMBINERS, (8, 5, 16), strict=True)
        self.tables = [keras_rs.layers.EmbedReduce(ROWS, width, combiner=combiner) for combiner, width in widths]
        self.dense = keras.layers.Dense(1)

    def call(self, inputs: dict) -> tf.Tensor:
        arguments = (inputs["ids"], inputs["weights"]) if self.weighted else (inputs["ids"],)
        reduced = [keras.ops.reshape(t(*arguments), (-1, t.output_dim)) for t in self.tables]
        return self.dense(keras.ops.concatenate(reduced, axis=-1))


class Distributed(keras.Model):
    """DistributedEmbedding of one feature by tables of all combiners."""

    def __init__(self, weighted: bool):
        super().__init__()
        self.weighted = weighted
        layers = keras_rs.layers
        self.embedding = layers.DistributedEmbedding(
            {
                combiner: layers.FeatureConfig(
                    name=combiner,
                    table=layers.TableConfig(combiner, ROWS, 8, combiner=combiner),
                    input_shape=(None, LENGTH),
                    output_shape=(None, 8),
                )
                for combiner in COMBINERS
            }
        )
        self.dense = keras.layers.Dense(1)

    def call(self, inputs: dict) -> tf.Tensor:
        weights = dict.fromkeys(COMBINERS, inputs["weights"]) if self.weighted else None
        found = self.embedding(dict.fromkeys(COMBINERS, inputs["ids"]), weights)
        return self.dense(keras.ops.concatenate([found[combiner] for combiner in COMBINERS], axis=-1))


def fitter(model: type[keras.Model], kind: str, weighted: bool, optimizer: str) -> Callable[[], Snapshot]:
    def train() -> Snapshot:
        keras.utils.set_random_seed(0)
        made = model(weighted)
        made.compile(getattr(keras.optimizers, optimizer)(0.05), "mse", jit_compile=False)
        wanted = np.random.default_rng(9).standard_normal((EXAMPLES, 1)).astype(np.float32)
        data = tf.data.Dataset.from_tensor_slices((features(kind), wanted)).batch(10)
        history = made.fit(data, epochs=2, verbose=0, shuffle=False)
        found = {f"weight {n}": weight for n, weight in enumerate(made.get_weights())}
        slots = {f"slot {n}": tf.convert_to_tensor(slot).numpy() for n, slot in enumerate(made.optimizer.variables)}
        return {**found, **slots, "losses": np.array(history.history["loss"])}

    return train


@pytest.mark.parametrize("optimizer", ["SGD", "Adagrad", "Adam"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("model", [Reduced, Distributed], ids=lambda model: model.__name__)
def test_dense_ids(model: type[keras.Model], weighted: bool, optimizer: str) -> None:
    graph = max(compare(fitter(model, "dense", weighted, optimizer)).graphs, key=lambda graph: graph.nodes_before)
    assert graph.lookups_packed == len(COMBINERS)
    assert not [item for item in graph.declined if item.code not in ("single_update", "single_transform")]


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_sparse_ids(weighted: bool) -> None:
    graph = max(compare(fitter(Reduced, "sparse", weighted, "Adagrad")).graphs, key=lambda graph: graph.nodes_before)
    assert graph.lookups_packed == len(COMBINERS)


def test_ragged_ids_are_declined() -> None:
    """Their shapes are not known where the layer multiplies rows by ones; the gathers and the updates are packed."""
    graph = max(compare(fitter(Reduced, "ragged", False, "Adagrad")).graphs, key=lambda graph: graph.nodes_before)
    assert {item.code for item in graph.declined if "Segment" in item.node} == {"ragged_reduction"}

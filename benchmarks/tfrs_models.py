"""TensorFlow Recommenders' ranking model, DLRM or DCN, with the library's own embedding layer on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks import gradient_kept
from benchmarks.model_shape import ModelShape


def build(keras: Any, shape: ModelShape, floor: bool) -> Any:
    """`tfrs.experimental.models.Ranking`; the arguments are those of `benchmarks.models.build`.

    The dense part alone takes an embedding per field, for the library concatenates them itself.
    """
    import tensorflow_recommenders as tfrs

    interaction = None
    if shape.kind == "tfrs_dcn":
        interaction = keras.Sequential(
            [keras.layers.Concatenate(), tfrs.layers.feature_interaction.Cross()], name="interaction"
        )
    return tfrs.experimental.models.Ranking(
        embedding_layer=gradient_kept.layer(keras) if floor else _tables(tfrs, shape),
        bottom_stack=tfrs.layers.blocks.MLP([64, 32, shape.width], final_activation="relu"),
        feature_interaction=interaction,
        top_stack=tfrs.layers.blocks.MLP([64, 32, 1], final_activation="sigmoid"),
    )


def inputs(shape: ModelShape, floor: bool, dense: np.ndarray) -> dict[str, Any]:
    """What `Ranking` takes: dense features, and by field ids [batches, batch] or embeddings [.., width]."""
    random = np.random.default_rng(1)
    size = (shape.batches, shape.batch, shape.width)
    sparse = {
        f"C{field}": random.standard_normal(size, np.float32) if floor else shape.ids(field)
        for field in range(shape.fields)
    }
    return {"dense_features": dense, "sparse_features": sparse}


def _tables(tfrs: Any, shape: ModelShape) -> Any:
    embedding = tf.tpu.experimental.embedding
    features = {}
    for field, rows in enumerate(shape.table_rows):
        table = embedding.TableConfig(rows, shape.width, combiner="mean", name=f"t{field}")
        features[f"C{field}"] = embedding.FeatureConfig(table=table, name=f"C{field}")
    return tfrs.layers.embedding.TPUEmbedding(features, None)

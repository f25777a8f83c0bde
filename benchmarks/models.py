"""The models that benchmarks train, each in two forms: with its tables, and as the dense part alone.

The dense part alone is fed with embeddings that are ready, joined as the model joins them. It still computes the
gradient of the embeddings, which is part of the dense layers' work and which no packing of lookups and updates can
spare.

| kind | what |
| --- | --- |
| `mlp` | embeddings and dense columns, concatenated, into a multilayer perceptron |
| `wide_deep` | the same, and a linear part with a weight per id and per dense column (Cheng et al. 2016) |
| `deepfm` | the same, and a factorisation machine over the embeddings (Guo et al. 2017) |
| `dlrm` | a perceptron over the dense columns, all pairs of dot products, a second one on top (Naumov et al. 2019) |
| `dcn` | two cross layers x0 (w x) + x beside the perceptron (Wang et al. 2017) |
| `preprocessing` | `mlp` behind StringLookup, Hashing, Discretization and IntegerLookup layers, in turn |
| `feature_columns` | `mlp` behind identity, hash, vocabulary and bucketized columns, in turn, and DenseFeatures |
| `tfrs_dlrm`, `tfrs_dcn` | TensorFlow Recommenders' `Ranking` with its embedding layer: `benchmarks.tfrs_models` |
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks import gradient_kept, model_inputs, tfrs_models
from benchmarks.model_shape import ModelShape


def build(keras: Any, shape: ModelShape, floor: bool) -> Any:
    """A model, not compiled.

    Args:
        keras: the module, Keras 3 or tf_keras.
        shape: what model.
        floor: whether it is the dense part alone.
    """
    if shape.kind.startswith("tfrs_"):
        return tfrs_models.build(keras, shape, floor)
    inputs, deep, linear = (_ready if floor else _TABLES.get(shape.kind, _embeddings))(keras, shape)
    dense = keras.Input((shape.dense,), name="dense_columns")
    logit = _DENSE_PARTS.get(shape.kind, _mlp)(keras, shape, deep, dense)
    if shape.kind in ("wide_deep", "deepfm"):
        summed = keras.layers.Lambda(lambda weights: tf.reduce_sum(weights, axis=1, keepdims=True))
        wide = [summed(_joined(keras, linear))] if linear else []
        logit = keras.layers.Add()([logit, *wide, keras.layers.Dense(1, use_bias=False)(dense)])
    return keras.Model({**inputs, "dense_columns": dense}, keras.layers.Activation("sigmoid")(logit))


def data(shape: ModelShape, floor: bool) -> tuple[Any, np.ndarray]:
    """Inputs, a nest of arrays [batches, batch, ...], and labels float32 [batches, batch, 1].

    Args:
        shape: what model.
        floor: whether it is the dense part alone.
    """
    random = np.random.default_rng(0)
    size = (shape.batches, shape.batch)
    dense = random.random((*size, shape.dense), np.float32)
    labels = random.integers(0, 2, (*size, 1)).astype(np.float32)
    if shape.kind.startswith("tfrs_"):
        return tfrs_models.inputs(shape, floor, dense), labels
    inputs = {"dense_columns": dense}
    if floor:
        inputs["deep"] = random.standard_normal((*size, shape.fields * shape.width), np.float32)
        if shape.has_linear:
            inputs["linear"] = random.standard_normal((*size, shape.fields), np.float32)
    else:
        inputs |= model_inputs.of(shape)
    return inputs, labels


def _ready(keras: Any, shape: ModelShape) -> tuple[dict[str, Any], list[Any], list[Any]]:
    inputs = {"deep": keras.Input((shape.fields * shape.width,), name="deep")}
    if shape.has_linear:
        inputs["linear"] = keras.Input((shape.fields,), name="linear")
    passed = {name: gradient_kept.layer(keras)(value) for name, value in inputs.items()}
    return inputs, [passed["deep"]], [value for name, value in passed.items() if name == "linear"]


def _embeddings(keras: Any, shape: ModelShape) -> tuple[dict[str, Any], list[Any], list[Any]]:
    """(inputs, embeddings [batch, width] of each field, weights [batch, 1] of each field)."""
    inputs = {f"C{field}": keras.Input((1,), dtype="int32", name=f"C{field}") for field in range(shape.fields)}
    widths = (shape.width, 1) if shape.has_linear else (shape.width,)
    looked_up = [
        [keras.layers.Flatten()(keras.layers.Embedding(rows, width)(ids)) for width in widths]
        for ids, rows in zip(inputs.values(), shape.table_rows, strict=True)
    ]
    return inputs, [vectors[0] for vectors in looked_up], [vectors[1] for vectors in looked_up if len(vectors) > 1]


def _preprocessed(keras: Any, shape: ModelShape) -> tuple[dict[str, Any], list[Any], list[Any]]:
    inputs, deep = {}, []
    for field, rows in enumerate(shape.table_rows):
        kind = model_inputs.preprocessing(field)
        name = f"C{field}"
        inputs[name] = keras.Input((1,), dtype=kind.dtype, name=name)
        layer, table_rows = {
            "string": lambda rows: (keras.layers.StringLookup(vocabulary=[str(i) for i in range(rows)]), rows + 1),
            "hash": lambda rows: (keras.layers.Hashing(rows), rows),
            "bucket": lambda _: (
                keras.layers.Discretization(model_inputs.BOUNDARIES),
                len(model_inputs.BOUNDARIES) + 1,
            ),
            "int": lambda rows: (keras.layers.IntegerLookup(vocabulary=list(range(rows))), rows + 1),
        }[kind.name](rows)
        embedding = keras.layers.Embedding(table_rows, shape.width)
        deep.append(keras.layers.Flatten()(embedding(layer(inputs[name]))))
    return inputs, deep, []


def _feature_columns(keras: Any, shape: ModelShape) -> tuple[dict[str, Any], list[Any], list[Any]]:
    column = tf.feature_column
    inputs, columns = {}, []
    for field, rows in enumerate(shape.table_rows):
        kind, name = model_inputs.feature_column(field), f"C{field}"
        inputs[name] = keras.Input((1,), dtype=kind.dtype, name=name)
        if kind.name == "identity":
            ids = column.categorical_column_with_identity(name, rows)
        elif kind.name == "hash":
            ids = column.categorical_column_with_hash_bucket(name, rows)
        elif kind.name == "string":
            vocabulary = [str(i) for i in range(rows)]
            ids = column.categorical_column_with_vocabulary_list(name, vocabulary, num_oov_buckets=3)
        else:
            ids = column.bucketized_column(column.numeric_column(name), model_inputs.BOUNDARIES)
        columns.append(column.embedding_column(ids, shape.width, combiner="mean"))
    return inputs, [keras.layers.DenseFeatures(columns)(inputs)], []


_TABLES = {"preprocessing": _preprocessed, "feature_columns": _feature_columns}


def _joined(keras: Any, tensors: list[Any]) -> Any:
    return tensors[0] if len(tensors) == 1 else keras.layers.Concatenate()(tensors)


def _perceptron(keras: Any, values: Any, units: tuple[int, ...]) -> Any:
    for count in units:
        values = keras.layers.Dense(count, activation="relu")(values)
    return values


def _mlp(keras: Any, shape: ModelShape, deep: list[Any], dense: Any) -> Any:
    hidden = _perceptron(keras, _joined(keras, [*deep, dense]), shape.hidden)
    return keras.layers.Dense(1)(hidden)


def _deepfm(keras: Any, shape: ModelShape, deep: list[Any], dense: Any) -> Any:
    vectors = keras.layers.Reshape((shape.fields, shape.width))(_joined(keras, deep))
    pairs = keras.layers.Lambda(
        lambda v: 0.5 * tf.reduce_sum(tf.square(tf.reduce_sum(v, 1)) - tf.reduce_sum(tf.square(v), 1), 1, keepdims=True)
    )
    return keras.layers.Add()([_mlp(keras, shape, deep, dense), pairs(vectors)])


def _dlrm(keras: Any, shape: ModelShape, deep: list[Any], dense: Any) -> Any:
    bottom = _perceptron(keras, dense, (64, shape.width))
    vectors = keras.layers.Reshape((shape.fields + 1, shape.width))(_joined(keras, [*deep, bottom]))
    products = keras.layers.Flatten()(keras.layers.Dot(axes=2)([vectors, vectors]))
    hidden = _perceptron(keras, keras.layers.Concatenate()([bottom, products]), shape.hidden)
    return keras.layers.Dense(1)(hidden)


def _dcn(keras: Any, shape: ModelShape, deep: list[Any], dense: Any) -> Any:
    first = crossed = _joined(keras, [*deep, dense])
    for _ in range(2):
        scale = keras.layers.Dense(1)(crossed)
        crossed = keras.layers.Add()([keras.layers.Multiply()([first, scale]), crossed])
    hidden = _perceptron(keras, first, shape.hidden)
    return keras.layers.Dense(1)(keras.layers.Concatenate()([crossed, hidden]))


_DENSE_PARTS = {"deepfm": _deepfm, "dlrm": _dlrm, "dcn": _dcn}

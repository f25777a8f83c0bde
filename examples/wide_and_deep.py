"""Wide & Deep in plain Keras 3: nothing here knows of picasso_tf, which is the point of the demo.

The model is that of Cheng et al., "Wide & Deep Learning for Recommender Systems", 2016: a linear part that memorises
and a multilayer perceptron over embeddings that generalises, added before one sigmoid.
"""

from collections.abc import Mapping, Sequence

import keras


def build_model(
    table_rows: Mapping[str, int],
    dense_columns: int,
    *,
    embedding_dim: int = 16,
    wide_fields: Sequence[str] = (),
    hidden: Sequence[int] = (64, 32),
) -> keras.Model:
    """Builds the model.

    Args:
        table_rows: rows of the embedding table of each categorical field.
        dense_columns: width of the "dense" input.
        embedding_dim: width of the deep part's embeddings.
        wide_fields: fields that also get a weight per id (an embedding of width 1) in the linear part. The dense
            columns are always in it.
        hidden: units of the hidden layers.

    Returns:
        A model from a dict of int32 ids [batch], one per field, and float32 "dense" [batch, dense_columns] to
        float32 probabilities [batch, 1].
    """
    ids = {name: keras.Input((), dtype="int32", name=name) for name in table_rows}
    dense = keras.Input((dense_columns,), name="dense")

    embedded = [
        keras.layers.Embedding(rows, embedding_dim, name=f"deep_{name}")(ids[name]) for name, rows in table_rows.items()
    ]
    deep = keras.layers.Concatenate(name="deep_input")([*embedded, dense])
    for layer, units in enumerate(hidden):
        deep = keras.layers.Dense(units, activation="relu", name=f"deep_hidden_{layer}")(deep)

    # Zeros, as a linear model starts: an id that never occurs must not move the logit.
    weights = [
        keras.layers.Embedding(table_rows[name], 1, embeddings_initializer="zeros", name=f"wide_{name}")(ids[name])
        for name in wide_fields
    ]
    logits = keras.layers.Concatenate(name="logits")(
        [
            *weights,
            keras.layers.Dense(1, use_bias=False, name="wide_dense")(dense),
            keras.layers.Dense(1, name="deep_logit")(deep),
        ]
    )
    probability = keras.ops.sigmoid(keras.ops.sum(logits, axis=-1, keepdims=True))
    return keras.Model({**ids, "dense": dense}, probability, name="wide_and_deep")


def compile_model(model: keras.Model, optimizer: str, learning_rate: float, *, jit: bool = False) -> None:
    """Compiles for binary classification.

    Args:
        model: what `build_model` returned.
        optimizer: name of a class of `keras.optimizers`, such as "adagrad".
        learning_rate: of the optimizer; the rest of its options keep their defaults.
        jit: whether XLA compiles the train step.
    """
    rule = keras.optimizers.get({"class_name": optimizer, "config": {"learning_rate": learning_rate}})
    model.compile(optimizer=rule, loss="binary_crossentropy", jit_compile=jit)

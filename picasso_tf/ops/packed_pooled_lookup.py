"""`Picasso>PackedPooledLookup`: rows of many tables, combined by one op. The wrapper."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

# Private in TensorFlow: what tells tapes and automatic control dependencies that an op only reads a variable.
from tensorflow.python.framework import auto_control_deps_utils
from tensorflow.python.ops import resource_variable_ops

from graph_passes.errors import ConfigError
from picasso_tf.bridge import library
from picasso_tf.ops.variables import as_variable

OP = "Picasso>PackedPooledLookup"
COMBINERS = ("sum", "mean", "sqrtn")

auto_control_deps_utils.register_read_only_resource_op(OP)


def packed_pooled_lookup(
    tables: Sequence,
    ids: Sequence[tf.SparseTensor | tf.RaggedTensor],
    weights: Sequence[tf.SparseTensor | tf.RaggedTensor | None] | None = None,
    *,
    combiner: str | Sequence[str] = "mean",
    default_id: int | Sequence[int | None] | None = None,
    drop_negative: bool = False,
    concat: bool = False,
    name: str | None = None,
) -> tf.Tensor | list[tf.Tensor]:
    """Looks up all ids of each row of `ids[i]` in `tables[i]` and combines them, for all i at once.

    The result is that of `[tf.nn.embedding_lookup_sparse(table, i, w, combiner=c) ...]` in a graph, bit for bit; rows
    without ids are kept, also at the end. With `drop_negative` it is that of `tf.nn.safe_embedding_lookup_sparse`, but
    for the shape of ids of rank 3 or more. There is no gradient.

    Args:
        tables: `tf.Variable`s or Keras variables of shape [rows, ...], all of one dtype: float16, bfloat16, float32
            or float64. One may come several times.
        ids: as many int32 or int64 `tf.SparseTensor`s of rank 2 or more, in row-major order, or `tf.RaggedTensor`s of
            rank 2.
        weights: for each of `ids` None or the weight of each id, a float tensor of the same form; None: no weights.
        combiner: "sum", "mean" or "sqrtn", the sum over the square root of the number of ids; one for all, or a list.
            Weighted rows are divided by the sum of their weights, or by the root of the sum of their squares.
        default_id: the id that a row without ids gets; None for zeros. One for all, or a list.
        drop_negative: whether ids below 0 are left out, and, unless `combiner` is "sum", ids whose weight is not above
            0; otherwise ids below 0 are errors.
        concat: whether to return one matrix instead of a list.
        name: of the op.

    Returns:
        A list of tensors of shape [product of all dimensions of `ids[i]` but the last] + `tables[i].shape[1:]`; with
        `concat` one tensor of shape [batch, sum of the elements of a row].

    Raises:
        ConfigError: an argument is not as described. It is a ValueError.
        tf.errors.InvalidArgumentError: an id is outside [0, rows), the indices of a SparseTensor are not in order, or
            there is not one weight for each id.

    Example:
        >>> table = tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        >>> ids = tf.ragged.constant([[0, 2], [], [1]])
        >>> packed_pooled_lookup([table], [ids])[0].numpy().tolist()
        [[3.0, 4.0], [0.0, 0.0], [3.0, 4.0]]
    """
    variables = [as_variable(table, f"tables[{i}]") for i, table in enumerate(tables)]
    ids = list(ids)
    count = len(ids)
    weights = [None] * count if weights is None else list(weights)
    _check(variables, ids)
    _check_weights(weights, count)
    combiners = [combiner] * count if isinstance(combiner, str) else list(combiner)
    fills = list(default_id) if isinstance(default_id, Sequence) else [default_id] * count
    _check_choices(combiners, fills, count)
    distinct = list({id(variable): variable for variable in variables}.values())
    position = {id(variable): i for i, variable in enumerate(distinct)}
    for variable in distinct:
        resource_variable_ops.variable_accessed(variable)

    sparse = [value for value in ids if isinstance(value, tf.SparseTensor)]
    row_input = {id(value): i for i, value in enumerate(sparse)}
    if concat:
        widths = [_width(variable, i) for i, variable in enumerate(variables)]
        outputs, shapes = [0] * count, [tf.TensorShape([None, sum(widths)])]
    else:
        widths = [0] * count
        outputs, shapes = list(range(count)), [tf.TensorShape(None)] * count
    compute = tf.float64 if variables[0].dtype == tf.float64 else tf.float32
    given = [tf.cast(value.values, compute) for value in weights if value is not None]
    numbers = iter(range(len(given)))
    drops_weightless = [drop_negative and w is not None and c != "sum" for w, c in zip(weights, combiners, strict=True)]
    result = library.ops().picasso_packed_pooled_lookup(
        tables=[variable.handle for variable in distinct],
        ids=[value.values for value in ids],
        segments=[value.indices if id(value) in row_input else value.row_splits for value in ids],
        rows=[value.dense_shape for value in sparse],
        # No piece reads it: the generated function takes the dtype from this argument.
        dense=[tf.zeros([0], variables[0].dtype)],
        weights=given,
        segments_are_splits=[id(value) not in row_input for value in ids],
        lookup_names=[variable.name for variable in variables],
        lookup_table=[position[id(variable)] for variable in variables],
        lookup_ids=list(range(count)),
        lookup_segments=list(range(count)),
        lookup_rows=[row_input.get(id(value), -1) for value in ids],
        lookup_combiner=combiners,
        lookup_drop=[drop_negative] * count,
        lookup_fill=[-1 if fill is None else fill for fill in fills],
        lookup_weights=[-1 if value is None else next(numbers) for value in weights],
        lookup_drop_weightless=drops_weightless,
        piece_output=outputs,
        piece_source=list(range(count)),
        piece_width=widths,
        output_shapes=shapes,
        num_outputs=len(shapes),
        name=name,
    )
    return result[0] if concat else list(result)


def _check(variables: list[tf.Variable], ids: list[Any]) -> None:
    if not variables or len(variables) != len(ids):
        raise ConfigError(
            "`tables` and `ids` must be lists of the same length, at least 1. "
            f"Received: {len(variables)} tables and {len(ids)} ids."
        )
    dtypes = sorted({variable.dtype.name for variable in variables})
    if len(dtypes) > 1 or not variables[0].dtype.is_floating:
        raise ConfigError(f"All `tables` must have the same floating-point dtype. Received: {', '.join(dtypes)}.")
    for i, (variable, value) in enumerate(zip(variables, ids, strict=True)):
        if variable.shape.rank == 0:
            raise ConfigError(
                f"`tables[{i}]` must have rows, so a rank of 1 or more. Received: shape {variable.shape}."
            )
        is_ragged = isinstance(value, tf.RaggedTensor) and value.ragged_rank == 1 and value.values.shape.rank == 1
        is_sparse = isinstance(value, tf.SparseTensor) and value.shape.rank != 1
        if not is_ragged and not is_sparse:
            raise ConfigError(
                f"`ids[{i}]` must be a tf.SparseTensor of rank 2 or more or a tf.RaggedTensor of rank 2. "
                f"Received: {value!r}."
            )
        if value.dtype not in (tf.int32, tf.int64):
            raise ConfigError(f"`ids[{i}]` must be int32 or int64. Received: {value.dtype.name}.")


def _check_weights(weights: list[Any], count: int) -> None:
    if len(weights) != count:
        raise ConfigError(
            f"`weights` must have one entry for each table. Received: {len(weights)} entries for {count} tables."
        )
    for i, value in enumerate(weights):
        if value is None or (isinstance(value, tf.SparseTensor | tf.RaggedTensor) and value.dtype.is_floating):
            continue
        raise ConfigError(
            f"`weights[{i}]` must be None or a tf.SparseTensor or tf.RaggedTensor of floats. Received: {value!r}."
        )


def _check_choices(combiners: list[str], fills: list[int | None], count: int) -> None:
    for argument, given in (("combiner", combiners), ("default_id", fills)):
        if len(given) != count:
            raise ConfigError(
                f"A list of `{argument}` must have one entry for each table. "
                f"Received: {len(given)} entries for {count} tables."
            )
    for combiner in combiners:
        if combiner not in COMBINERS:
            raise ConfigError(f'`combiner` must be "sum", "mean" or "sqrtn". Received: {combiner!r}.')
    for fill in fills:
        if fill is not None and fill < 0:
            raise ConfigError(f"`default_id` must be None or at least 0. Received: {fill}.")


def _width(variable: tf.Variable, i: int) -> int:
    """Elements that one lookup adds to each row of the concatenated output."""
    elements = variable.shape[1:].num_elements()
    if not elements:
        raise ConfigError(
            f"With `concat`, the rows of `tables[{i}]` must have a known, positive size. "
            f"Received: shape {variable.shape}."
        )
    return int(elements)

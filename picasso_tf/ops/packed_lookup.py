"""`Picasso>PackedLookup`: rows of many tables, gathered by one op. The wrapper and the gradient.

Models need not call this: the pass `embedding_packing` puts the op into graphs that were written without it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

# Private in TensorFlow: what tells tapes and automatic control dependencies that an op only reads a variable.
from tensorflow.python.framework import auto_control_deps_utils
from tensorflow.python.ops import resource_variable_ops

from graph_passes.errors import ConfigError
from picasso_tf.bridge import library
from picasso_tf.ops.variables import as_variable

OP = "Picasso>PackedLookup"

auto_control_deps_utils.register_read_only_resource_op(OP)


# ---- The wrapper ---------------------------------------------------------------------------------------------------


def packed_lookup(
    tables: Sequence, ids: Sequence, *, concat: bool = False, name: str | None = None
) -> tf.Tensor | list[tf.Tensor]:
    """Looks up `ids[i]` in `tables[i]`, for all i at once.

    The result is that of `[tf.gather(table, i) for table, i in zip(tables, ids)]`, bit for bit, and differentiable
    with respect to the tables in the same way. With `concat` it is that of a `tf.concat` of these along the last
    axis, written straight to its place.

    Args:
        tables: `tf.Variable`s or Keras variables of shape [rows, ...], all of one dtype: float16, bfloat16, float32
            or float64. One may come several times.
        ids: as many int32 or int64 tensors, of any shape; with `concat` of shape [batch] or [batch, k], the batch
            being the same for all.
        concat: whether to return one matrix instead of a list.
        name: of the op.

    Returns:
        A list of tensors of shape `ids[i].shape + tables[i].shape[1:]`; with `concat` one tensor of shape
        [batch, sum of k * elements of a row].

    Raises:
        ConfigError: an argument is not as described. It is a ValueError.
        tf.errors.InvalidArgumentError: an id is outside [0, rows); on GPU its row is zeros instead.

    Example:
        >>> user = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
        >>> item = tf.Variable([[10.0], [20.0], [30.0]])
        >>> packed_lookup([user, item], [[1, 0], [2, 2]], concat=True).numpy().tolist()
        [[3.0, 4.0, 30.0], [1.0, 2.0, 30.0]]
    """
    variables = [_variable(table, i) for i, table in enumerate(tables)]
    ids = [_ids(value, i) for i, value in enumerate(ids)]
    _check(variables, ids)
    distinct = list({id(variable): variable for variable in variables}.values())
    position = {id(variable): i for i, variable in enumerate(distinct)}
    for variable in distinct:
        resource_variable_ops.variable_accessed(variable)

    count = len(ids)
    if concat:
        widths = [_width(variable, value, i) for i, (variable, value) in enumerate(zip(variables, ids, strict=True))]
        outputs, shapes = [0] * count, [tf.TensorShape([None, sum(widths)])]
    else:
        widths = [0] * count
        outputs, shapes = list(range(count)), [tf.TensorShape(None)] * count
    result = library.ops().picasso_packed_lookup(
        tables=[variable.handle for variable in distinct],
        ids=ids,
        # No piece reads it: the generated function takes the dtype from this argument.
        dense=[tf.zeros([0], variables[0].dtype)],
        lookup_names=[variable.name for variable in variables],
        lookup_table=[position[id(variable)] for variable in variables],
        lookup_ids=list(range(count)),
        lookup_column=[-1] * count,
        lookup_columns=[0] * count,
        lookup_wrap=[0] * count,
        lookup_narrow=[False] * count,
        piece_output=outputs,
        piece_source=list(range(count)),
        piece_width=widths,
        output_shapes=shapes,
        shape_lookup=[],
        shape_templates=[],
        num_outputs=len(shapes),
        num_shapes=0,
        name=name,
    )
    return result.outputs[0] if concat else list(result.outputs)


def _variable(table: Any, i: int) -> tf.Variable:
    variable = as_variable(table, f"tables[{i}]")
    if variable.shape.rank == 0:
        raise ConfigError(f"`tables[{i}]` must have rows, so a rank of 1 or more. Received: shape {variable.shape}.")
    return variable


def _ids(value: Any, i: int) -> tf.Tensor:
    value = tf.convert_to_tensor(value)
    if value.dtype not in (tf.int32, tf.int64):
        raise ConfigError(f"`ids[{i}]` must be int32 or int64. Received: {value.dtype.name}.")
    return value


def _check(variables: list[tf.Variable], ids: list[tf.Tensor]) -> None:
    if not variables or len(variables) != len(ids):
        raise ConfigError(
            "`tables` and `ids` must be lists of the same length, at least 1. "
            f"Received: {len(variables)} tables and {len(ids)} ids."
        )
    dtypes = sorted({variable.dtype.name for variable in variables})
    if len(dtypes) > 1 or not variables[0].dtype.is_floating:
        raise ConfigError(f"All `tables` must have the same floating-point dtype. Received: {', '.join(dtypes)}.")


def _width(variable: tf.Variable, ids: tf.Tensor, i: int) -> int:
    """Elements that one lookup adds to each row of the concatenated output."""
    elements = variable.shape[1:].num_elements()
    if not elements:
        raise ConfigError(
            f"With `concat`, the rows of `tables[{i}]` must have a known, positive size. "
            f"Received: shape {variable.shape}."
        )
    if ids.shape.rank == 1:
        return elements
    if ids.shape.rank == 2 and ids.shape[1]:
        return elements * ids.shape[1]
    raise ConfigError(f"With `concat`, `ids[{i}]` must have the shape [batch] or [batch, k]. Received: {ids.shape}.")


# ---- The gradient --------------------------------------------------------------------------------------------------


@dataclass
class _Slices:
    """What flows back to one table: rows of gradients and the ids they belong to."""

    values: list[tf.Tensor] = field(default_factory=list)
    indices: list[tf.Tensor] = field(default_factory=list)

    def merge(self, dense_shape: tf.Tensor) -> tf.IndexedSlices | None:
        if not self.values:
            return None
        if len(self.values) == 1:
            return tf.IndexedSlices(self.values[0], self.indices[0], dense_shape)
        mixed = len({indices.dtype for indices in self.indices}) > 1
        indices = [tf.cast(value, tf.int64) for value in self.indices] if mixed else self.indices
        return tf.IndexedSlices(tf.concat(self.values, 0), tf.concat(indices, 0), dense_shape)


@tf.RegisterGradient(OP)  # type: ignore[untyped-decorator]
def _packed_lookup_gradient(op: tf.Operation, *gradients: Any) -> list[Any]:
    """IndexedSlices for each table, as `ResourceGather` gives; a band of the gradient for each dense piece."""
    num_tables, num_ids = op.get_attr("num_tables"), len(op.get_attr("ids_types"))
    handles, dense = op.inputs[:num_tables], op.inputs[num_tables + num_ids :]
    table_shapes = [resource_variable_ops.variable_shape(handle) for handle in handles]
    lookup_table = op.get_attr("lookup_table")
    slices = [_Slices() for _ in handles]
    dense_bands: list[list[tf.Tensor]] = [[] for _ in dense]
    for source, band in _bands(op, gradients):
        if source < 0:
            dense_bands[-1 - source].append(tf.reshape(band, tf.shape(dense[-1 - source])))
            continue
        indices = _lookup_ids(op, source)
        table = lookup_table[source]
        rows = tf.concat([tf.shape(indices), table_shapes[table][1:]], 0)
        slices[table].values.append(tf.reshape(band, rows))
        slices[table].indices.append(indices)
    table_gradients = [one.merge(shape) for one, shape in zip(slices, table_shapes, strict=True)]
    dense_gradients = [tf.add_n(bands) if bands else None for bands in dense_bands]
    return [*table_gradients, *[None] * num_ids, *dense_gradients]


def _bands(op: tf.Operation, gradients: Sequence[Any]) -> Iterator[tuple[int, tf.Tensor]]:
    """Yields (source, gradient of the piece) for every piece of an output that has a gradient."""
    outputs, widths = op.get_attr("piece_output"), op.get_attr("piece_width")
    totals = [0] * op.get_attr("num_outputs")
    for output, width in zip(outputs, widths, strict=True):
        totals[output] += width
    offsets = [0] * len(totals)
    matrices = {}
    for output, source, width in zip(outputs, op.get_attr("piece_source"), widths, strict=True):
        gradient, begin = gradients[output], offsets[output]
        offsets[output] += width
        if gradient is None:
            continue
        if width == totals[output]:  # all of the output; 0 in a natural one
            yield source, tf.convert_to_tensor(gradient)
            continue
        if output not in matrices:
            matrices[output] = tf.reshape(gradient, [-1, totals[output]])
        yield source, matrices[output][:, begin : begin + width]


def _lookup_ids(op: tf.Operation, lookup: int) -> tf.Tensor:
    """The ids of one lookup as the op uses them: its columns, narrowed, wrapped, flat."""
    attribute = {key: op.get_attr(f"lookup_{key}")[lookup] for key in ("ids", "column", "columns", "wrap", "narrow")}
    ids = op.inputs[op.get_attr("num_tables") + attribute["ids"]]
    if attribute["column"] >= 0:
        ids = ids[:, attribute["column"] : attribute["column"] + attribute["columns"]]
    ids = tf.reshape(ids, [-1])
    if attribute["narrow"]:
        ids = tf.cast(ids, tf.int32)
    if attribute["wrap"]:
        ids = tf.where(ids < 0, ids + tf.cast(attribute["wrap"], ids.dtype), ids)
    return ids

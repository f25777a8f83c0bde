"""`Picasso>PackedSparseUpdate` and `Picasso>PackedDenseUpdate`: one optimizer step for many tables. The wrappers.

Models need not call these: a graph pass puts the ops into graphs that were written without them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from graph_passes.errors import ConfigError
from picasso_tf.bridge import library
from picasso_tf.ops.variables import as_variable


@dataclass(frozen=True)
class PooledGradient:
    """The gradient of a pooled lookup, which all ids of one output row share.

    Args:
        values: a float32 or float64 tensor with one row of the table for each output row.
        rows: int32 or int64, one for each id: the output row that it belongs to; or the indices of a SparseTensor,
            a matrix whose column 0 gives it.
        combiner: "sum", "mean" or "sqrtn". An output row of n ids gives each of them its gradient times 1, 1 / n or
            1 / sqrt(n), as the gradients of TensorFlow's SparseSegment ops do.
        weights: for each id a number that its gradient is multiplied by, of the dtype of `values`; then the combiner
            is "sum". None: no such.
    """

    values: Any
    rows: Any
    combiner: str = "sum"
    weights: Any = None


@dataclass(frozen=True)
class UpdateTable:
    """What one table brings to an update.

    Args:
        states: `tf.Variable`s or Keras variables, the table and then its slots, all with the same number of elements.
        ids: int32 or int64 tensors of any shape, each id a row of the table; one tensor for each segment.
        gradients: for each segment a list of gradients, tensors with one row of the table for each id, or
            `PooledGradient`s.
        table_gradients: tensors with as many elements as the table.
        parameters: numbers, or tensors of one element, e.g. the learning rate.
    """

    states: Sequence[Any]
    ids: Sequence[Any] = ()
    gradients: Sequence[Sequence[Any]] = ()
    table_gradients: Sequence[Any] = ()
    parameters: Sequence[Any] = ()


def packed_sparse_update(
    tables: Sequence[UpdateTable],
    program: Sequence[str],
    results: Sequence[str],
    *,
    drop_negative: bool = False,
    rule: str = "",
    name: str | None = None,
) -> tf.Operation | None:
    """Runs an update program over those rows of many tables that ids name.

    The program is a list of instructions on s0, s1, ... (rows of the states as they are before), g0, ... (rows of
    gradients, one for each id), t0, ... (rows of table gradients), p0, ... (parameters) and v0, v1, ... (results of
    the instructions before). The op's documentation lists the instructions. Each rounds once, as a TensorFlow op of
    its own would; equal ids are summed in the order in which they come.

    Args:
        tables: what to update; all of one dtype (float16, bfloat16, float32 or float64) and with the same numbers of
            states, gradients, table gradients and parameters. A variable may be a state of one table only.
        program: the instructions.
        results: for each state the value that it holds afterwards; "s1" for state 1 leaves it as it is.
        drop_negative: whether negative ids are skipped; else they are out of range.
        rule: a name of the rule, for people who read graphs.
        name: of the op.

    Returns:
        The operation in a graph, None in eager execution.

    Raises:
        ConfigError: an argument is not as described. It is a ValueError.
        tf.errors.InvalidArgumentError: the program is wrong, shapes do not fit, or an id is outside [0, rows); nothing
            is written then.

    Example:
        >>> user = tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        >>> sgd = ["mul g0 p0", "scatter_sub s0 v0"]
        >>> table = UpdateTable([user], ids=[[2, 2]], gradients=[[[[1.0, 1.0], [3.0, 1.0]]]], parameters=[0.5])
        >>> packed_sparse_update([table], sgd, results=["v1"])
        >>> user.numpy().tolist()
        [[1.0, 2.0], [3.0, 4.0], [3.0, 5.0]]
    """
    return _call(library.ops().picasso_packed_sparse_update, tables, program, results, drop_negative, rule, name)


def packed_dense_update(
    tables: Sequence[UpdateTable],
    program: Sequence[str],
    results: Sequence[str],
    *,
    drop_negative: bool = False,
    rule: str = "",
    name: str | None = None,
) -> tf.Operation | None:
    """Runs an update program over every row of many tables.

    As `packed_sparse_update`, but rows that no id names are updated too: a `segment_sum` is 0 there, and the
    scatter_ and touched_ instructions leave their first operand. A table may have no ids at all.

    Args:
        tables: as for `packed_sparse_update`.
        program: the instructions.
        results: for each state the value that it holds afterwards.
        drop_negative: whether negative ids are skipped; else they are out of range.
        rule: a name of the rule, for people who read graphs.
        name: of the op.

    Returns:
        The operation in a graph, None in eager execution.

    Raises:
        ConfigError: an argument is not as described. It is a ValueError.
        tf.errors.InvalidArgumentError: as for `packed_sparse_update`.

    Example:
        >>> weights, momentum = tf.Variable([[1.0], [2.0]]), tf.Variable([[4.0], [8.0]])
        >>> table = UpdateTable([weights, momentum], ids=[[0]], gradients=[[[[2.0]]]], parameters=[0.5])
        >>> rule = ["mul s1 p0", "segment_sum g0", "add v0 v1", "sub s0 v2"]
        >>> packed_dense_update([table], rule, results=["v3", "v2"])
        >>> weights.numpy().tolist(), momentum.numpy().tolist()
        ([[-3.0], [-2.0]], [[4.0], [4.0]])
    """
    return _call(library.ops().picasso_packed_dense_update, tables, program, results, drop_negative, rule, name)


def _call(
    op: Callable[..., Any],
    tables: Sequence[UpdateTable],
    program: Sequence[str],
    results: Sequence[str],
    drop_negative: bool,
    rule: str,
    name: str | None,
) -> tf.Operation | None:
    inputs = _collect(tables)
    first = tables[0]
    return op(
        variables=[variable.handle for variable in inputs.variables],
        ids=inputs.ids,
        # No program reads it: the generated function takes the dtype from this argument.
        gradients=inputs.gradients or [tf.zeros([0], inputs.variables[0].dtype)],
        scalars=inputs.scalars,
        pools=inputs.pools,
        weights=inputs.weights,
        rule=rule,
        program=list(program),
        results=list(results),
        num_states=len(first.states),
        num_row_gradients=_row_gradients(tables),
        num_table_gradients=len(first.table_gradients),
        num_parameters=len(first.parameters),
        table_names=[variable.name for variable in inputs.variables[:: len(first.states)]],
        table_variables=list(range(len(inputs.variables))),
        table_parameters=list(range(len(inputs.scalars))),
        table_gradients=inputs.table_gradients,
        segment_table=inputs.segment_table,
        segment_ids=list(range(len(inputs.ids))),
        segment_column=[-1] * len(inputs.ids),
        segment_columns=[0] * len(inputs.ids),
        segment_wrap=[0] * len(inputs.ids),
        segment_narrow=[False] * len(inputs.ids),
        segment_gradients=inputs.segment_gradients,
        segment_first=[0] * len(inputs.segment_gradients),
        segment_span=[0] * len(inputs.segment_gradients),
        segment_pitch=[0] * len(inputs.segment_gradients),
        gradient_pool=inputs.gradient_pool if inputs.pools else [],
        gradient_combiner=inputs.gradient_combiner if inputs.pools else [],
        gradient_weights=inputs.gradient_weights if inputs.weights else [],
        drop_negative=drop_negative,
        name=name,
    )


@dataclass
class _Inputs:
    """The op's inputs, and which of them each table and segment uses."""

    variables: list[tf.Variable] = field(default_factory=list)
    ids: list[tf.Tensor] = field(default_factory=list)
    gradients: list[tf.Tensor] = field(default_factory=list)
    scalars: list[tf.Tensor] = field(default_factory=list)
    table_gradients: list[int] = field(default_factory=list)
    segment_table: list[int] = field(default_factory=list)
    segment_gradients: list[int] = field(default_factory=list)
    pools: list[tf.Tensor] = field(default_factory=list)
    gradient_pool: list[int] = field(default_factory=list)
    gradient_combiner: list[str] = field(default_factory=list)
    weights: list[tf.Tensor] = field(default_factory=list)
    gradient_weights: list[int] = field(default_factory=list)

    def add_row_gradient(self, value: Any) -> None:
        pooled = value if isinstance(value, PooledGradient) else None
        self.segment_gradients.append(self.add_gradient(value if pooled is None else pooled.values))
        self.gradient_pool.append(-1 if pooled is None else len(self.pools))
        self.gradient_combiner.append("sum" if pooled is None else pooled.combiner)
        weighted = pooled is not None and pooled.weights is not None
        self.gradient_weights.append(len(self.weights) if weighted else -1)
        if pooled is not None:
            self.pools.append(tf.convert_to_tensor(pooled.rows))
        if pooled is not None and pooled.weights is not None:
            self.weights.append(tf.convert_to_tensor(pooled.weights, self.variables[0].dtype))

    def add_gradient(self, value: Any) -> int:
        self.gradients.append(tf.convert_to_tensor(value, self.variables[0].dtype))
        return len(self.gradients) - 1


def _collect(tables: Sequence[UpdateTable]) -> _Inputs:
    if not tables:
        raise ConfigError("`tables` must hold at least one table. Received: none.")
    inputs = _Inputs()
    for i, table in enumerate(tables):
        _check_like_first(tables, i)
        inputs.variables += [as_variable(state, f"tables[{i}].states[{k}]") for k, state in enumerate(table.states)]
        dtypes = sorted({variable.dtype.name for variable in inputs.variables})
        if len(dtypes) > 1 or not inputs.variables[0].dtype.is_floating:
            raise ConfigError(f"All states must have the same floating-point dtype. Received: {', '.join(dtypes)}.")
        inputs.scalars += [tf.convert_to_tensor(value, inputs.variables[0].dtype) for value in table.parameters]
        inputs.table_gradients += [inputs.add_gradient(value) for value in table.table_gradients]
        for k, (ids, gradients) in enumerate(zip(table.ids, table.gradients, strict=True)):
            ids = tf.convert_to_tensor(ids)
            if ids.dtype not in (tf.int32, tf.int64):
                raise ConfigError(f"`tables[{i}].ids[{k}]` must be int32 or int64. Received: {ids.dtype.name}.")
            inputs.ids.append(ids)
            inputs.segment_table.append(i)
            for value in gradients:
                inputs.add_row_gradient(value)
    return inputs


def _check_like_first(tables: Sequence[UpdateTable], i: int) -> None:
    table, first = tables[i], tables[0]
    if not table.states:
        raise ConfigError(f"`tables[{i}].states` must hold at least one variable. Received: none.")
    for what in ("states", "table_gradients", "parameters"):
        found, wanted = len(getattr(table, what)), len(getattr(first, what))
        if found != wanted:
            raise ConfigError(
                f"All tables must have as many {what}. Received: {wanted} and, in `tables[{i}]`, {found}."
            )
    if len(table.ids) != len(table.gradients):
        raise ConfigError(
            f"`tables[{i}]` must have a list of gradients for each of its ids. "
            f"Received: {len(table.ids)} ids and {len(table.gradients)} lists."
        )
    for k, gradients in enumerate(table.gradients):
        if len(gradients) != _row_gradients(tables):
            raise ConfigError(
                "All segments must have as many gradients. "
                f"Received: {_row_gradients(tables)} and, in `tables[{i}].gradients[{k}]`, {len(gradients)}."
            )


def _row_gradients(tables: Sequence[UpdateTable]) -> int:
    return next((len(gradients) for table in tables for gradients in table.gradients), 0)

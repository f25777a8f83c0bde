"""Optimizers as people write them in raw TensorFlow: scatter ops, training ops, rows gathered and written back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

raw = tf.raw_ops
RATE = 0.05
Pairs = list[tuple[Any, tf.Variable]]


def summed(gradient: tf.IndexedSlices) -> tuple[tf.Tensor, tf.Tensor]:
    """Distinct ids and the sum of the gradients of each."""
    ids, places = tf.unique(gradient.indices)
    return ids, tf.math.unsorted_segment_sum(gradient.values, places, tf.size(ids))


class Optimizer:
    """Calls `sparse(variable, slots, ids, rows)` for tables and `dense(variable, slots, gradient)` for the rest.

    Args:
        variables: what is trained.
        slots: number of slots of each variable.
        sparse: updates rows.
        dense: updates a whole variable; default: subtracts RATE times the gradient.
        unique: whether the gradients of an id are summed first.
        initial: value of the first slot.
    """

    def __init__(
        self,
        variables: Sequence[tf.Variable],
        slots: int,
        sparse: Callable[..., Any],
        dense: Callable[..., Any] = lambda variable, slots, gradient: variable.assign_sub(gradient * RATE),
        unique: bool = True,
        initial: float = 0.0,
    ):
        fills = [initial, *[0.0] * slots][:slots]
        self._slots = {
            v.ref(): [tf.Variable(tf.fill(v.shape, tf.cast(fill, v.dtype))) for fill in fills] for v in variables
        }
        self._sparse, self._dense, self._unique = sparse, dense, unique

    @property
    def variables(self) -> list[tf.Variable]:
        return [slot for slots in self._slots.values() for slot in slots]

    def apply_gradients(self, pairs: Pairs) -> None:
        for gradient, variable in pairs:
            slots = self._slots[variable.ref()]
            if not isinstance(gradient, tf.IndexedSlices):
                self._dense(variable, slots, gradient)
            elif self._unique:
                self._sparse(variable, slots, *summed(gradient))
            else:
                self._sparse(variable, slots, gradient.indices, gradient.values)


def _scatter_sub(variable, _, ids, rows):
    variable.scatter_sub(tf.IndexedSlices(rows * RATE, ids))


def _scatter_nd_sub(variable, _, ids, rows):
    variable.scatter_nd_sub(ids[:, None], rows * RATE)


def _scattered(variable, ids, rows):
    variable.scatter_sub(tf.IndexedSlices(rows, ids))


def _lazy_adam(variable, slots, ids, rows):
    first, second = slots
    mean = 0.9 * tf.gather(first, ids) + 0.1 * rows
    square = 0.999 * tf.gather(second, ids) + 0.001 * rows * rows
    first.scatter_update(tf.IndexedSlices(mean, ids))
    second.scatter_update(tf.IndexedSlices(square, ids))
    _scattered(variable, ids, RATE * mean / (tf.sqrt(square) + 1e-7))


def _lazy_adamax(variable, slots, ids, rows):
    first, norm = slots
    mean = 0.9 * tf.gather(first, ids) + 0.1 * rows
    largest = tf.maximum(0.999 * tf.gather(norm, ids), tf.abs(rows))
    first.scatter_update(tf.IndexedSlices(mean, ids))
    norm.scatter_update(tf.IndexedSlices(largest, ids))
    _scattered(variable, ids, RATE * mean / (largest + 1e-7))


def _lazy_lion(variable, slots, ids, rows):
    (momentum,) = slots
    old = tf.gather(momentum, ids)
    _scattered(variable, ids, RATE * tf.sign(0.9 * old + 0.1 * rows))
    momentum.scatter_update(tf.IndexedSlices(0.99 * old + 0.01 * rows, ids))


def _hand_adagrad(variable, slots, ids, rows):
    (accumulator,) = slots
    accumulator.scatter_add(tf.IndexedSlices(rows * rows, ids))
    _scattered(variable, ids, RATE * rows / (tf.sqrt(accumulator.sparse_read(ids)) + 1e-6))


def _fused(name: str, *names: str, **constants: Any) -> Callable[..., None]:
    """A training op, whose slots have the given names."""

    def apply(variable, slots, ids, rows):
        handles = {argument: slot.handle for argument, slot in zip(names, slots, strict=True)}
        scalars = {
            argument: value if isinstance(value, bool) else tf.cast(value, rows.dtype)
            for argument, value in constants.items()
        }
        op = getattr(raw, "ResourceSparseApply" + name)
        op(var=variable.handle, **handles, **scalars, grad=rows, indices=ids)

    return apply


def _optimizer(*args: Any, **kwargs: Any) -> Callable[[Sequence[tf.Variable]], Optimizer]:
    return lambda variables: Optimizer(variables, *args, **kwargs)


RMS = {"lr": RATE, "rho": 0.9, "epsilon": 1e-7}
RAW: dict[str, Callable[[Sequence[tf.Variable]], Optimizer]] = {
    "SGD": _optimizer(0, _scatter_sub, unique=False),
    "SGD, scatter_nd_sub": _optimizer(0, _scatter_nd_sub, unique=False),
    "momentum": _optimizer(1, _fused("Momentum", "accum", lr=RATE, momentum=0.9)),
    "Nesterov": _optimizer(1, _fused("Momentum", "accum", lr=RATE, momentum=0.9, use_nesterov=True)),
    "Adagrad": _optimizer(1, _fused("Adagrad", "accum", lr=RATE), initial=0.1),
    "Adagrad, by hand": _optimizer(1, _hand_adagrad, initial=0.1),
    "Adagrad, duplicates in turn": _optimizer(1, _fused("Adagrad", "accum", lr=RATE), unique=False, initial=0.1),
    "Adam": _optimizer(2, _lazy_adam),
    "Adamax": _optimizer(2, _lazy_adamax),
    "RMSprop": _optimizer(2, _fused("RMSProp", "ms", "mom", momentum=0.0, **RMS), initial=1.0),
    "RMSprop, momentum": _optimizer(2, _fused("RMSProp", "ms", "mom", momentum=0.5, **RMS), initial=1.0),
    "Adadelta": _optimizer(2, _fused("Adadelta", "accum", "accum_update", **RMS)),
    "Ftrl": _optimizer(2, _fused("Ftrl", "accum", "linear", lr=RATE, l1=0.01, l2=0.01, lr_power=-0.5), initial=0.1),
    "Lion": _optimizer(1, _lazy_lion),
}

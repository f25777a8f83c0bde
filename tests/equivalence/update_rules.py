"""Every optimizer that a front end offers, and what its packed updates promise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import tensorflow as tf
import tf_keras

from tests.equivalence import update_fronts as fronts
from tests.equivalence.training import Snapshot
from tests.support.raw_optimizers import RAW

v1 = tf.compat.v1.train
RATE = fronts.RATE


class Promise(NamedTuple):
    """What holds for one rule through one front end after 100 steps.

    Attributes:
        bound: largest difference of an element, as a fraction of the largest element of its array; 0: the same bits.
        declined: the reason code under which the updates stay as they are; "": they are packed.
        note: why the bits may differ, or what stock does.
    """

    bound: float = 0.0
    declined: str = ""
    note: str = ""

    def __str__(self) -> str:
        if self == STOCK_FAILS:
            return self.note
        text = f"within {self.bound:g}" if self.bound else "same bits"
        text += f", declined: `{self.declined}`" if self.declined else ""
        return text + (f" ({self.note})" if self.note else "")


SAME = Promise()
STOCK_FAILS = Promise(note="stock fails")

KERAS: dict[str, tuple[str, dict[str, Any]]] = {
    "SGD": ("SGD", {}),
    "momentum": ("SGD", {"momentum": 0.9}),
    "Nesterov": ("SGD", {"momentum": 0.9, "nesterov": True}),
    "Adagrad": ("Adagrad", {}),
    "Adam": ("Adam", {}),
    "Adam, amsgrad": ("Adam", {"amsgrad": True}),
    "AdamW": ("AdamW", {}),
    "Adamax": ("Adamax", {}),
    "Nadam": ("Nadam", {}),
    "RMSprop": ("RMSprop", {}),
    "RMSprop, momentum": ("RMSprop", {"momentum": 0.5}),
    "RMSprop, centered": ("RMSprop", {"centered": True}),
    "Adadelta": ("Adadelta", {}),
    "Ftrl": ("Ftrl", {"l1_regularization_strength": 0.01, "l2_regularization_strength": 0.01}),
    "Lion": ("Lion", {}),
}
V1: dict[str, Callable[[], Any]] = {
    "SGD": lambda: v1.GradientDescentOptimizer(RATE),
    "momentum": lambda: v1.MomentumOptimizer(RATE, 0.9),
    "Nesterov": lambda: v1.MomentumOptimizer(RATE, 0.9, use_nesterov=True),
    "Adagrad": lambda: v1.AdagradOptimizer(RATE),
    "Adam": lambda: v1.AdamOptimizer(RATE),
    "RMSprop": lambda: v1.RMSPropOptimizer(RATE),
    "RMSprop, momentum": lambda: v1.RMSPropOptimizer(RATE, momentum=0.5),
    "RMSprop, centered": lambda: v1.RMSPropOptimizer(RATE, centered=True),
    "Adadelta": lambda: v1.AdadeltaOptimizer(RATE),
    "Ftrl": lambda: v1.FtrlOptimizer(RATE, l1_regularization_strength=0.01, l2_regularization_strength=0.01),
}

# What is not SAME. The table in docs/equivalence.md is made from this: python -m tests.equivalence.update_table
PROMISES: dict[tuple[str, str], Promise] = {
    ("RMSprop, centered", "Keras 3"): STOCK_FAILS,
    ("Adagrad, duplicates in turn", "raw TensorFlow"): Promise(declined="duplicates_apply_in_turn"),
}


def promise(rule: str, front_end: str) -> Promise:
    return PROMISES.get((rule, front_end), SAME)


def _of_keras(front: Any, optimizers: Any) -> dict[str, Callable[[], Snapshot]]:
    def training(name: str, options: dict[str, Any]) -> Callable[[], Snapshot]:
        return lambda: fronts.train_keras(front, lambda: getattr(optimizers, name)(RATE, **options))

    return {rule: training(*made) for rule, made in KERAS.items() if hasattr(optimizers, made[0])}


def _of(train: Callable[[Callable[..., Any]], Snapshot], made: dict[str, Callable[..., Any]]) -> dict[str, Any]:
    return {rule: lambda optimizer=optimizer: train(optimizer) for rule, optimizer in made.items()}


# Trains 100 steps with a rule through a front end.
TRAININGS: dict[str, dict[str, Callable[[], Snapshot]]] = {
    "Keras 3": _of_keras(keras, keras.optimizers),
    "tf_keras": _of_keras(tf_keras, tf_keras.optimizers),
    "tf_keras legacy": _of_keras(tf_keras, tf_keras.optimizers.legacy),
    "v1 Session": _of(fronts.train_v1_session, V1),
    "v1 in tf.function": _of(lambda make: fronts.train_function(lambda _: make()), V1),
    "raw TensorFlow": _of(fronts.train_function, RAW),
}

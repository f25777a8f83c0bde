"""TensorFlow's training ops, one by one, on rows of every kind of width: packed or declined, and the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.equivalence.training import Snapshot, compare
from tests.equivalence.update_report import reasons, updates
from tests.support.raw_optimizers import summed

ROWS = 37
WIDTHS = (1, 3, 8, 11, 16)
RMS = {"rho": 0.9, "momentum": 0.5, "epsilon": 1e-7}
SHRINK = {"l1": 0.01, "l2": 0.01}
ADAM = {"beta1": 0.9, "beta2": 0.999, "beta1_power": 0.81, "beta2_power": 0.9, "epsilon": 1e-7}
# Slots, in the order of their arguments, and constants.
BOTH: dict[str, tuple[str, dict[str, Any]]] = {
    "Adagrad": ("accum", {}),
    "AdagradV2": ("accum", {"epsilon": 1e-7}),
    "Momentum": ("accum", {"momentum": 0.9}),
    "Momentum nesterov": ("accum", {"momentum": 0.9, "use_nesterov": True}),
    "KerasMomentum": ("accum", {"momentum": 0.9}),
    "KerasMomentum nesterov": ("accum", {"momentum": 0.9, "use_nesterov": True}),
    "RMSProp": ("ms mom", RMS),
    "CenteredRMSProp": ("mg ms mom", RMS),
    "Adadelta": ("accum accum_update", {"rho": 0.9, "epsilon": 1e-7}),
    "Ftrl": ("accum linear", {**SHRINK, "lr_power": -0.5}),
    "Ftrl without l1": ("accum linear", {"l1": 0.0, "l2": 0.0, "lr_power": -0.5}),
    "Ftrl of another power": ("accum linear", {**SHRINK, "lr_power": -0.3}),
    "FtrlV2": ("accum linear", {**SHRINK, "l2_shrinkage": 0.01, "lr_power": -0.5}),
    "ProximalAdagrad": ("accum", SHRINK),
    "ProximalGradientDescent": ("", SHRINK),
}
DENSE: dict[str, tuple[str, dict[str, Any]]] = {
    **BOTH,
    "GradientDescent": ("", {}),
    "Adam": ("m v", ADAM),
    "Adam nesterov": ("m v", {**ADAM, "use_nesterov": True}),
    "AdamWithAmsgrad": ("m v vhat", ADAM),
    "AdaMax": ("m v", {name: value for name, value in ADAM.items() if name != "beta2_power"}),
    "AddSign": ("m", {"alpha": 1.0, "sign_decay": 0.9, "beta": 0.9}),
    "PowerSign": ("m", {"logbase": 1.0, "sign_decay": 0.9, "beta": 0.9}),
}


def _train(prefix: str, name: str, slots: str, constants: dict[str, Any], dtype: str) -> Snapshot:
    generator = np.random.default_rng(0)
    op = name.split()[0]
    plain = op in ("GradientDescent", "ProximalGradientDescent")
    rate, gradient_name = ("alpha" if plain else "lr"), ("delta" if plain and prefix == "ResourceApply" else "grad")
    scalars = {key: value if isinstance(value, bool) else tf.constant(value, dtype) for key, value in constants.items()}
    scalars[rate] = tf.constant(0.05, dtype)
    if slots.startswith("mg"):
        order = [0.0, 1.0, 0.0]  # the mean square is at least the square of the mean
        starts = dict(zip(slots.split(), order, strict=True))
    else:
        starts = {}

    def variable(width: int, slot: str = "") -> tf.Variable:
        value = generator.normal(size=(ROWS, width))
        value = np.abs(value) if slot else value
        return tf.Variable(tf.cast(np.full_like(value, starts[slot]) if slot in starts else value, dtype))

    tables = [variable(width) for width in WIDTHS for _ in range(2)]
    states = [{slot: variable(table.shape[1], slot) for slot in slots.split()} for table in tables]

    @tf.function
    def step(ids: tf.Tensor, rows: list[tf.Tensor]) -> tf.Tensor:
        looked_up = [tf.reduce_sum(tf.gather(table, ids)) for table in tables]
        for table, state, gradient in zip(tables, states, rows, strict=True):
            arguments = {"var": table.handle, **{slot: value.handle for slot, value in state.items()}, **scalars}
            if prefix == "ResourceSparseApply":
                arguments["indices"], gradient = summed(tf.IndexedSlices(gradient, ids))
            getattr(tf.raw_ops, prefix + op)(**arguments, **{gradient_name: gradient})
        return tf.stack(looked_up)

    found = {}
    for number in range(5):
        count = 30 if prefix == "ResourceSparseApply" else ROWS
        ids = tf.constant(generator.integers(0, ROWS, count))
        rows = [tf.cast(generator.normal(size=(count, table.shape[1])), dtype) for table in tables]
        found[f"step {number}"] = step(ids, rows).numpy()
    for number, table in enumerate(tables):
        found[f"table {number} of width {table.shape[1]}"] = table.numpy()
        found |= {f"{slot} {number}": value.numpy() for slot, value in states[number].items()}
    return found


def _check(prefix: str, name: str, rule: tuple[str, dict[str, Any]], dtype: str) -> None:
    bound = 1e-6 if "power" in name else 0.0  # pow itself: the C library's against Eigen's, a last bit in some elements
    report = compare(lambda: _train(prefix, name, *rule, dtype), bound if dtype == "float32" else 1e3 * bound)
    packed = sum(updates(report))
    assert packed in (0, 2 * len(WIDTHS)), report.details()
    assert packed or reasons(report) == {"update_arithmetic"}, report.details()


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        (name, dtype)
        for name in BOTH
        for dtype in ("float32", "float16")
        if dtype == "float32" or "Proximal" not in name  # TensorFlow has no kernel
    ],
)
def test_a_sparse_training_op(name: str, dtype: str) -> None:
    _check("ResourceSparseApply", name, BOTH[name], dtype)


@pytest.mark.parametrize("name", DENSE)
def test_a_dense_training_op(name: str) -> None:
    _check("ResourceApply", name, DENSE[name], "float32")

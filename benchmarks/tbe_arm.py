"""FBGEMM's arms: its table-batched embedding on the CPU. Runs in an environment of its own."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from fbgemm_gpu.split_embedding_configs import EmbOptimType
from fbgemm_gpu.split_table_batched_embeddings_ops_common import EmbeddingLocation, PoolingMode
from fbgemm_gpu.split_table_batched_embeddings_ops_training import (
    ComputeDevice,
    SplitTableBatchedEmbeddingBagsCodegen,
)

from benchmarks.shapes import BATCHES, Shape, digest, encoded
from benchmarks.worker import Arm

_RULES = {
    "sgd": (EmbOptimType.EXACT_SGD, {}),
    "adagrad": (EmbOptimType.EXACT_ADAGRAD, {"eps": 1e-7}),
}
_ACCUMULATED_AT_FIRST = 0.1  # by Keras's Adagrad


def build(shape: dict[str, Any], threads: int = 2) -> Arm:
    """The forward step: all tables in one operator; bags of one id each, so that its output is that of lookups and a
    concatenation.

    Ids are given as it wants them: those of all fields in one int64 tensor, with offsets. Making these from the fields
    of a model is not part of its time.

    Args:
        shape: settings of a `Shape`.
        threads: that torch may use. FBGEMM's CPU operator runs on one all the same, as its wheel is built.
    """
    step, first_output = _forward(shape, threads)
    return Arm(step, lambda: {"digest": digest(first_output())})


def pooled(shape: dict[str, Any], threads: int = 2) -> Arm:
    """The same over bags of several ids. It adds in an order of its own, so the check has the output and no hash.

    Args:
        shape: settings of a `Shape`.
        threads: as in `build`.
    """
    step, first_output = _forward(shape, threads)
    return Arm(step, lambda: {"output": encoded(first_output())})


def train(shape: dict[str, Any], optimizer: str, rate: float, first: int, threads: int = 2) -> Arm:
    """A train step: forward, then backward from a given gradient, with the optimizer fused into it.

    Args:
        shape: settings of a `Shape`.
        optimizer: "sgd" or "adagrad".
        rate: the learning rate.
        first: steps on one batch before any is timed, whose outputs are checked.
        threads: that torch may use.
    """
    torch.set_num_threads(threads)
    what = Shape(**shape)
    kind, options = _RULES[optimizer]
    tables = _tables(what, optimizer=kind, learning_rate=rate, **options)
    for states in tables.split_optimizer_states():
        for state in states:
            state.detach().fill_(_ACCUMULATED_AT_FIRST)
    batches, offsets = _batches(what)
    upstream = torch.from_numpy(what.gradient())

    def step(indices: torch.Tensor) -> torch.Tensor:
        output = tables(indices, offsets)
        output.backward(upstream)
        return output

    values = [float(step(batches[0]).detach().double().square().mean()) for _ in range(first)]
    turn = itertools.cycle(batches)
    return Arm(lambda: step(next(turn)), lambda: {"losses": values})


def _forward(shape: dict[str, Any], threads: int) -> tuple[Callable[[], object], Callable[[], np.ndarray]]:
    """(a step, what gives the output of the first batch)"""
    torch.set_num_threads(threads)
    what = Shape(**shape)
    tables = _tables(what).eval()
    batches, offsets = _batches(what)
    turn = itertools.cycle(batches)

    @torch.no_grad()  # not inference_mode: the operator has a CPU kernel only where autograd could ask for it
    def forward(indices: torch.Tensor) -> torch.Tensor:
        return tables(indices, offsets)

    return lambda: forward(next(turn)), lambda: forward(batches[0]).numpy()


def _tables(what: Shape, **options: Any) -> SplitTableBatchedEmbeddingBagsCodegen:
    tables = SplitTableBatchedEmbeddingBagsCodegen(
        [(what.rows, what.width, EmbeddingLocation.HOST, ComputeDevice.CPU)] * what.fields,
        pooling_mode=PoolingMode.SUM,
        **options,
    )
    for field, weights in enumerate(tables.split_embedding_weights()):
        weights.detach().copy_(torch.from_numpy(what.table(field)))
    return tables


def _batches(what: Shape) -> tuple[list[torch.Tensor], torch.Tensor]:
    """Ids of each batch, and their offsets."""
    ids = np.stack([what.ids(field) for field in range(what.fields)], axis=1).reshape(BATCHES, -1).astype(np.int64)
    return [torch.from_numpy(batch) for batch in ids], torch.arange(what.fields * what.batch + 1) * what.pooling

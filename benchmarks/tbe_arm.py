"""FBGEMM's arm of the forward benchmark: its table-batched embedding on the CPU. Runs in an environment of its own."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import torch
from fbgemm_gpu.split_table_batched_embeddings_ops_common import EmbeddingLocation, PoolingMode
from fbgemm_gpu.split_table_batched_embeddings_ops_training import (
    ComputeDevice,
    SplitTableBatchedEmbeddingBagsCodegen,
)

from benchmarks.shapes import BATCHES, Shape, digest
from benchmarks.worker import Arm


def build(shape: dict[str, Any], threads: int = 2) -> Arm:
    """All tables in one operator; bags of one id each, so that its output is that of lookups and a concatenation.

    Ids are given as it wants them: those of all fields in one int64 tensor, with offsets. Making these from the fields
    of a model is not part of its time.

    Args:
        shape: settings of a `Shape`.
        threads: that torch may use. FBGEMM's CPU operator runs on one all the same, as its wheel is built.
    """
    torch.set_num_threads(threads)
    what = Shape(**shape)
    tables = SplitTableBatchedEmbeddingBagsCodegen(
        [(what.rows, what.width, EmbeddingLocation.HOST, ComputeDevice.CPU)] * what.fields,
        pooling_mode=PoolingMode.SUM,
    ).eval()
    for field, weights in enumerate(tables.split_embedding_weights()):
        weights.detach().copy_(torch.from_numpy(what.table(field)))
    ids = np.stack([what.ids(field) for field in range(what.fields)], axis=1).reshape(BATCHES, -1).astype(np.int64)
    batches = [torch.from_numpy(batch) for batch in ids]
    offsets = torch.arange(what.fields * what.batch + 1)
    turn = itertools.cycle(batches)

    @torch.no_grad()  # not inference_mode: the operator has a CPU kernel only where autograd could ask for it
    def forward(indices: torch.Tensor) -> torch.Tensor:
        return tables(indices, offsets)

    return Arm(lambda: forward(next(turn)), lambda: {"digest": digest(forward(batches[0]).numpy())})

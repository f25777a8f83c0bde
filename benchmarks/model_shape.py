"""Whole models for benchmarks, as plain values: what kind, how many fields, how large. Imports no TensorFlow."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

KERAS = "keras"
TF_KERAS = "tf_keras"
FRONT_ENDS = {KERAS: "Keras 3", TF_KERAS: "tf_keras"}

KINDS = {
    "mlp": tuple(FRONT_ENDS),
    "wide_deep": tuple(FRONT_ENDS),
    "deepfm": tuple(FRONT_ENDS),
    "dlrm": tuple(FRONT_ENDS),
    "dcn": tuple(FRONT_ENDS),
    "preprocessing": tuple(FRONT_ENDS),
    "feature_columns": (TF_KERAS,),
    "tfrs_dlrm": (TF_KERAS,),
    "tfrs_dcn": (TF_KERAS,),
}
"""Models of `benchmarks.models`, each with the front ends that have what it needs."""

LINEAR = ("wide_deep", "deepfm")
"""Kinds in which each field also has a weight per id, an embedding of width 1."""


@dataclass(frozen=True)
class ModelShape:
    """One model and its batches.

    Attributes:
        kind: a key of `KINDS`.
        front_end: "keras" (that is Keras 3) or "tf_keras".
        fields: categorical fields.
        rows: of each table, or of the smallest.
        most_rows: of the largest; sizes between are spread evenly on a logarithmic scale. 0: all have `rows`.
        width: float32 values of an embedding.
        batch: examples per step.
        dense: dense columns.
        hidden: units of the hidden layers.
        zipf: exponent of the ids' distribution; 0: uniform.
        linear: whether kinds in `LINEAR` have their weights per id.
        batches: ready in memory, through which a run goes in turn.
    """

    kind: str
    front_end: str = KERAS
    fields: int = 26
    rows: int = 1_000
    most_rows: int = 0
    width: int = 8
    batch: int = 256
    dense: int = 13
    hidden: tuple[int, ...] = (128, 64)
    zipf: float = 1.2
    linear: bool = True
    batches: int = 16

    def __str__(self) -> str:
        rows = f"{self.rows:,} to {self.most_rows:,}" if self.most_rows else f"{self.rows:,}"
        name = f"{self.kind} in {FRONT_ENDS[self.front_end]}"
        return f"{name}, {self.fields} tables x {rows} rows x {self.width}, batch {self.batch:,}"

    @property
    def has_linear(self) -> bool:
        """Whether there is a weight per id beside each embedding."""
        return self.linear and self.kind in LINEAR

    @property
    def table_rows(self) -> list[int]:
        """Rows of each table. A few sizes repeat, as vocabularies of a thousand fields do."""
        if not self.most_rows:
            return [self.rows] * self.fields
        return [int(rows) for rows in np.geomspace(self.rows, self.most_rows, self.fields)]

    def ids(self, field: int) -> np.ndarray:
        """Ids of one field, int32 [batches, batch]; the same in every process."""
        random, rows = np.random.default_rng([field, 1]), self.table_rows[field]
        size = (self.batches, self.batch)
        if not self.zipf:
            return random.integers(0, rows, size, np.int32)
        return (random.zipf(self.zipf, size) % rows).astype(np.int32)

    def settings(self) -> dict[str, Any]:
        """Plain values that `ModelShape.of` takes back."""
        return dataclasses.asdict(self)

    @classmethod
    def of(cls, settings: dict[str, Any]) -> ModelShape:
        """The shape of some settings, also after they went through JSON."""
        return cls(**{**settings, "hidden": tuple(settings["hidden"])})

"""The shapes of the benchmarks without a model, with their tables, ids and the bytes that must move."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

BATCHES = 16
"""Batches that arms go through in turn: together they touch far more rows than the caches hold."""


@dataclass(frozen=True)
class Shape:
    """Lookups of one id per field and example, or of as many each time, whose rows are summed.

    Attributes:
        fields: number of tables.
        rows: rows of each table.
        width: float32 values of a row.
        batch: examples per batch.
        pooling: ids per field and example.
    """

    fields: int
    rows: int
    width: int
    batch: int
    pooling: int = 1

    def __str__(self) -> str:
        pooled = f", {self.pooling} ids, sum" if self.pooling > 1 else ""
        return f"{self.fields} tables x {self.rows:,} rows x {self.width}, batch {self.batch:,}{pooled}"

    @property
    def forward_bytes(self) -> int:
        """Bytes of one forward step: each int32 id and each row is read, and each output value is written, once."""
        return self.fields * self.batch * (self.pooling * (4 + 4 * self.width) + 4 * self.width)

    @property
    def values(self) -> int:
        """Floats of all tables."""
        return self.fields * self.rows * self.width

    def update_bytes(self, slots: int) -> int:
        """Bytes of one update of the rows that a batch names, after the forward step.

        The gradient is read, and each row that some id names is read and written once, with its slots.

        Args:
            slots: values per weight that the optimizer keeps.
        """
        rows = sum(len(np.unique(batch)) for field in range(self.fields) for batch in self.ids(field)) // BATCHES
        return 4 * self.width * (self.fields * self.batch + 2 * rows * (1 + slots))

    def gradient(self) -> np.ndarray:
        """The gradient that an update is given, float32 [batch, fields * width]; the same in every process."""
        return np.random.default_rng(2).standard_normal((self.batch, self.fields * self.width), np.float32)

    def settings(self) -> dict[str, Any]:
        """Plain values that `Shape(**values)` takes back."""
        return dataclasses.asdict(self)

    def table(self, field: int) -> np.ndarray:
        """Values of one table, float32 [rows, width]; the same in every process."""
        return np.random.default_rng([field, 0]).standard_normal((self.rows, self.width), np.float32)

    def ids(self, field: int) -> np.ndarray:
        """Uniform ids of one field, int32 [BATCHES, batch * pooling]; the same in every process."""
        size = (BATCHES, self.batch * self.pooling)
        return np.random.default_rng([field, 1]).integers(0, self.rows, size, np.int32)


SHAPES = {
    "fields": Shape(fields=26, rows=100_000, width=32, batch=4096),
    "wide": Shape(fields=200, rows=20_000, width=16, batch=1024),
}
"""By name, for the command line."""

POOLED = {
    "fields": Shape(fields=26, rows=100_000, width=32, batch=512, pooling=20),
    "wide": Shape(fields=100, rows=20_000, width=16, batch=512, pooling=20),
}
"""Those of the pooled lookups."""


def digest(output: np.ndarray) -> str:
    """A short hash of an output's bytes: equal where outputs are equal bit for bit."""
    return hashlib.sha256(np.ascontiguousarray(output).tobytes()).hexdigest()[:16]


def encoded(output: np.ndarray) -> str:
    """All values of a float32 output, for a line of JSON; `decoded` takes them back."""
    return base64.b64encode(np.ascontiguousarray(output, np.float32).tobytes()).decode()


def decoded(text: str) -> np.ndarray:
    """The values that `encoded` was given, float32 [values]."""
    return np.frombuffer(base64.b64decode(text), np.float32)

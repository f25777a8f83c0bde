"""Multi-hot features: `safe_embedding_lookup_sparse` of 0 to 20 ids, a perceptron, Adagrad.

    python -m benchmarks.multi_hot                     100 fields, Keras 3 and tf_keras
    python -m benchmarks.multi_hot --fields 1000
    python -m benchmarks.multi_hot --predict           the forward part alone
    python -m benchmarks.multi_hot --quick

Tables of 10,000 rows x 16, batch 512, ids Zipf-distributed; the number of ids in a row follows a power law, one row in
five has none. The dense part alone is the same step fed with ready-made embeddings.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from benchmarks import command_line, train_race
from benchmarks.harness import Entry, Pace, race
from benchmarks.model_shape import FRONT_ENDS
from benchmarks.table import print_race

HIDDEN = (128, 64)
"""Units of the hidden layers."""

OURS, STOCK, FLOOR = "ours", "stock", "dense part alone, stock"


@dataclass(frozen=True)
class MultiHot:
    """What is looked up.

    Attributes:
        fields: each with a table of its own.
        rows: of a table.
        width: float32 values of an embedding.
        batch: examples per step.
        most: ids of one example and field.
        combiner: "sum", "mean" or "sqrtn".
    """

    fields: int
    rows: int = 10_000
    width: int = 16
    batch: int = 512
    most: int = 20
    combiner: str = "mean"

    def __str__(self) -> str:
        tables = f"{self.fields} tables x {self.rows:,} rows x {self.width}"
        return f"{tables}, batch {self.batch}, 0 to {self.most} ids, {self.combiner}"

    def table(self, field: int) -> np.ndarray:
        """First values of a table, float32 [rows, width]."""
        return np.random.default_rng([field, 2]).standard_normal((self.rows, self.width), np.float32) * 0.1

    def ids(self, field: int, batch: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Indices int64 [ids, 2], values int64 [ids] and dense shape of one batch of one field."""
        random = np.random.default_rng([field, batch])
        counts = np.minimum(random.zipf(1.6, self.batch), self.most) * (random.random(self.batch) > 0.2)
        examples = np.repeat(np.arange(self.batch), counts)
        columns = np.concatenate([np.arange(count) for count in counts])
        values = (random.zipf(1.2, len(examples)) % self.rows).astype(np.int64)
        indices = np.stack([examples, columns], axis=1).astype(np.int64)
        return indices, values, np.array([self.batch, self.most], np.int64)


def run(shape: MultiHot, front_end: str, train: bool, pace: Pace) -> None:
    """Races the arms and prints the table.

    Raises:
        BenchmarkError: an arm failed, or they did not learn the same.
    """

    def arm(name: str, **settings: bool) -> Entry:
        values = {"shape": dataclasses.asdict(shape), "front_end": front_end, "train": train, **settings}
        return Entry(name, "benchmarks.multi_hot_arm:build", values)

    title = f"{'train' if train else 'predict'}, {FRONT_ENDS[front_end]} Adagrad, {shape}"
    timings = race(title, [arm(OURS, plugin=True), arm(STOCK), arm(FLOOR, floor=True)], pace, announce=True)
    steps = train_race.check_losses(timings, [(OURS, STOCK)])
    stock, ours = (1e3 * (timings[name].median - timings[FLOOR].median) for name in (STOCK, OURS))
    notes = [
        f"Above the dense part stock takes {stock:.2f} ms and ours {ours:.2f} ms (medians): {stock / ours:.1f} times.",
        f"ours packed {timings[OURS].check['packs']} ops into one each.",
        f"Losses of ours and of stock agree to {train_race.TOLERANCE:g} in the first {steps} steps.",
    ]
    print_race(title, timings.values(), timings[OURS], notes)


def main() -> None:
    """Runs the benchmark."""
    parser = command_line.parser(__doc__, rounds=20)
    parser.add_argument("--fields", type=int, help="default: 100, with --quick 10")
    parser.add_argument("--front-ends", nargs="+", choices=FRONT_ENDS, default=list(FRONT_ENDS))
    parser.add_argument("--predict", action="store_true", help="the forward part alone")
    arguments = parser.parse_args()
    fields = arguments.fields or (10 if arguments.quick else 100)
    for front_end in arguments.front_ends:
        run(MultiHot(fields), front_end, not arguments.predict, command_line.pace(arguments))


if __name__ == "__main__":
    main()

"""A train step of a Wide & Deep model with a thousand fields, in Keras 3.

    python -m benchmarks.wide_model
    python -m benchmarks.wide_model --optimizer adam --fields 300
    python -m benchmarks.wide_model --quick

Vocabularies of 1,000 to 100,000, embeddings of width 16, a perceptron of 128 and 64 units, batch 512; the linear part
is over the dense columns, so that there are as many tables as fields. TensorFlow traces a thousand optimizer updates
before the first step: that takes minutes, of stock and of ours alike; a line tells when an arm is ready. With Adam
the arms need about 12 GB of memory. `--quick` means 20 fields.
"""

from __future__ import annotations

from benchmarks import command_line, train_race
from benchmarks.harness import Pace, race
from benchmarks.model_arm import FLOOR, OURS, STOCK, entries
from benchmarks.model_shape import ModelShape
from benchmarks.table import print_race

OPTIMIZERS = ("adagrad", "adam")
QUICK_FIELDS = 20


def shape(fields: int, most_rows: int = 100_000, batch: int = 512) -> ModelShape:
    """The model."""
    return ModelShape("wide_deep", fields=fields, rows=1_000, most_rows=most_rows, width=16, batch=batch, linear=False)


def run(model: ModelShape, optimizer: str, pace: Pace) -> None:
    """Races the arms and prints the table.

    Raises:
        BenchmarkError: an arm failed, or they did not learn the same.
    """
    title = f"train step, {optimizer}, {model}"
    timings = race(title, entries(model, optimizer), pace, announce=True)
    steps = train_race.check_losses(timings, [(OURS, STOCK)])
    stock, ours = (1e3 * (timings[name].median - timings[FLOOR].median) for name in (STOCK, OURS))
    notes = [
        "dense part alone: the same step fed with ready-made embeddings.",
        f"Above it, stock takes {stock:.1f} ms and ours {ours:.1f} ms (medians).",
        f"ours packed {timings[OURS].check['packs']} ops into one each.",
        f"Losses of ours and of stock agree to {train_race.TOLERANCE:g} in the first {steps} steps.",
    ]
    print_race(title, timings.values(), timings[OURS], notes)


def main() -> None:
    """Runs the benchmark."""
    parser = command_line.parser(__doc__, rounds=15)
    parser.add_argument("--fields", type=int, help=f"categorical fields; default: 1000, with --quick {QUICK_FIELDS}")
    parser.add_argument("--optimizer", choices=[*OPTIMIZERS, "all"], default="all")
    arguments = parser.parse_args()
    fields = arguments.fields or (QUICK_FIELDS if arguments.quick else 1000)
    for optimizer in OPTIMIZERS if arguments.optimizer == "all" else [arguments.optimizer]:
        run(shape(fields), optimizer, command_line.pace(arguments))


if __name__ == "__main__":
    main()

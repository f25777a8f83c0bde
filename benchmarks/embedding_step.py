"""A step of the embedding part alone: lookups, concatenation, a given gradient, and the optimizer's update.

    python -m benchmarks.embedding_step
    python -m benchmarks.embedding_step --optimizer adam --shape fields
    python -m benchmarks.embedding_step --quick

Ours and stock are Keras 3's and tf_keras's Embedding layers, a concatenation and their optimizers in a tf.function.
FBGEMM's table-batched embedding, whose optimizer is fused into its backward pass, takes part for SGD and Adagrad when
its environment exists: `make .venv-peers/ready` makes it. Its Adagrad sums the gradients of an id that occurs twice
before it squares them, as tf_keras does and Keras 3 does not. Its Adam touches only the rows that are looked up,
which is another rule than Keras's; instead, a plain sweep over all rows and both moments shows what dense Adam must
move. The SGD of tf_keras sweeps over all rows too: it keeps a momentum of each, of factor 0.

`--quick` runs fewer rounds; `--optimizer` and `--shape` choose. Building the arms takes about a minute for 26 tables,
and several for 200.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks import command_line, train_race
from benchmarks.forward import BOUND, FBGEMM
from benchmarks.harness import Entry, Pace, Timing, race
from benchmarks.shapes import Shape
from benchmarks.table import print_race

OURS = "ours, Keras 3"
OURS_TF_KERAS = "ours, tf_keras"
STOCK = "Keras 3"
STOCK_TF_KERAS = "tf_keras"
SLOTS = {"sgd": 0, "adagrad": 1, "adam": 2}
"""Optimizers, with the values that each keeps per weight."""

LEARNING_RATE = 0.05
FIRST_STEPS = 5
"""Steps on one batch before any is timed. What they look up is compared between arms; and from the second step on,
tables have seen a sparse update, which changes for good how fast stock TensorFlow reads them."""


def entries(shape: Shape, optimizer: str, peers_python: Path | None) -> list[Entry]:
    """The arms.

    Args:
        shape: what is looked up.
        optimizer: a key of `SLOTS`.
        peers_python: interpreter of the environment that FBGEMM is installed in, or None to do without.
    """

    def keras(name: str, front_end: str, plugin: bool) -> Entry:
        settings = {"shape": shape.settings(), "front_end": front_end, "optimizer": optimizer, "plugin": plugin}
        return Entry(name, "benchmarks.embedding_step_arms:build", settings)

    arms = [
        keras(OURS, "keras", plugin=True),
        keras(OURS_TF_KERAS, "tf_keras", plugin=True),
        keras(STOCK, "keras", plugin=False),
        keras(STOCK_TF_KERAS, "tf_keras", plugin=False),
    ]
    if optimizer == "adam":
        return [*arms, Entry(BOUND, "benchmarks.bound_arm:sweep", {"values": shape.values})]
    if peers_python is not None:
        settings = {"shape": shape.settings(), "optimizer": optimizer, "rate": LEARNING_RATE, "first": FIRST_STEPS}
        arms.append(Entry(FBGEMM, "benchmarks.tbe_arm:train", settings, str(peers_python)))
    return [*arms, Entry(BOUND, "benchmarks.bound_arm:build", {"moved_bytes": moved_bytes(shape, optimizer)})]


def moved_bytes(shape: Shape, optimizer: str) -> int:
    """Bytes that a step must move: by the sweep over everything for Adam, else rows that a batch names."""
    if optimizer == "adam":
        return 2 * 3 * 4 * shape.values
    return shape.forward_bytes + shape.update_bytes(SLOTS[optimizer])


def run(shape: Shape, optimizer: str, arms: list[Entry], pace: Pace) -> dict[str, Timing]:
    """Races the arms, makes sure that they learn the same, and prints the table.

    Raises:
        BenchmarkError: an arm failed, or they did not learn the same.
    """
    title = f"embedding step, {optimizer}, {shape}"
    timings = race(title, arms, pace)
    alike = [(OURS, STOCK), (OURS_TF_KERAS, STOCK_TF_KERAS), (FBGEMM, STOCK_TF_KERAS)]
    alike = [(one, other) for one, other in alike if one in timings]
    steps = train_race.check_losses(timings, alike)
    ours, bound = timings[OURS], timings[BOUND]
    moved = moved_bytes(shape, optimizer)
    how = "a sweep over every weight and its moments" if optimizer == "adam" else "a copy"
    notes = [
        f"{BOUND}: {moved / 1e6:,.0f} MB at the rate of {how} by two threads in the same rounds, "
        f"median {moved / bound.median / 1e9:.0f} GB/s read and written.",
        f"ours takes {ours.ratio_to(bound):.2f} times as long as the bound, "
        + "; ".join(f"{ours.ratio_to(timings[name]):.2f} of {name}" for name in (STOCK, FBGEMM) if name in timings)
        + f"; ours in tf_keras {timings[OURS_TF_KERAS].ratio_to(timings[STOCK_TF_KERAS]):.2f} of stock tf_keras.",
        f"What is looked up in the first {steps} steps agrees to {train_race.TOLERANCE:g}: "
        + "; ".join(f"{one} = {other}" for one, other in alike)
        + ".",
    ]
    if FBGEMM not in timings and optimizer != "adam":
        notes.append("FBGEMM is left out: `make .venv-peers/ready` makes its environment.")
    print_race(title, timings.values(), ours, notes)
    return timings


def main() -> None:
    """Runs the benchmark."""
    parser = command_line.parser(__doc__, rounds=20)
    command_line.add_shape(parser)
    parser.add_argument("--optimizer", choices=[*SLOTS, "all"], default="all")
    arguments = parser.parse_args()
    pace, peers_python = command_line.pace(arguments), command_line.peers_python(arguments)
    for shape in command_line.shapes(arguments):
        for optimizer in SLOTS if arguments.optimizer == "all" else [arguments.optimizer]:
            run(shape, optimizer, entries(shape, optimizer, peers_python), pace)


if __name__ == "__main__":
    main()

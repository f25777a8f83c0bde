"""Steps that XLA compiles: ours with XLA on against XLA alone, in Keras 3.

    python -m benchmarks.xla_step
    python -m benchmarks.xla_step --part first --repeats 2
    python -m benchmarks.xla_step --quick

Three parts: `embedding`, the embedding step of 26 tables x 100,000 x 32 in a tf.function with jit_compile; `model`,
`fit`'s train step of a perceptron over the same tables, compiled with jit_compile; `first`, how soon the latter makes
its first step with 100 fields and Adagrad. Stock and ours without XLA are shown beside. Compiling stock's Adagrad
step takes about a minute, and several for 100 fields; a line tells when an arm is ready. Where the plugin leaves a
compiled step alone, ours with XLA is XLA alone, and "packed" below the table says so.
"""

from __future__ import annotations

import dataclasses

from benchmarks import command_line, embedding_step, first_step, model_arm, train_race
from benchmarks.harness import Entry, Pace, race
from benchmarks.model_arm import FLOOR, OURS, STOCK
from benchmarks.model_shape import ModelShape
from benchmarks.shapes import SHAPES, Shape
from benchmarks.table import print_race

PARTS = ("embedding", "model", "first")
OPTIMIZERS = ("sgd", "adagrad")
OURS_XLA, XLA = "ours, XLA on", "stock, XLA on"
QUICK_SHAPE = Shape(fields=4, rows=1_000, width=8, batch=128)


def embedding_entries(shape: Shape, optimizer: str) -> list[Entry]:
    """The arms without a model; arguments as of `embedding_step_arms.build`."""

    def arm(name: str, plugin: bool, jit: bool) -> Entry:
        settings = {"shape": shape.settings(), "front_end": "keras", "optimizer": optimizer}
        return Entry(name, "benchmarks.embedding_step_arms:build", {**settings, "plugin": plugin, "jit": jit})

    bound = {"moved_bytes": embedding_step.moved_bytes(shape, optimizer)}
    return [
        arm(OURS_XLA, plugin=True, jit=True),
        arm(XLA, plugin=False, jit=True),
        arm(OURS, plugin=True, jit=False),
        arm(STOCK, plugin=False, jit=False),
        Entry(embedding_step.BOUND, "benchmarks.bound_arm:build", bound),
    ]


def model_entries(model: ModelShape, optimizer: str) -> list[Entry]:
    """The arms with a model; arguments as of `model_arm.entries`."""
    ours, stock, floor = model_arm.entries(model, optimizer, jit=True)
    compiled = [
        dataclasses.replace(ours, name=OURS_XLA),
        dataclasses.replace(stock, name=XLA),
        dataclasses.replace(floor, name=f"{FLOOR}, XLA on"),
    ]
    return [*compiled, *model_arm.entries(model, optimizer)]


def run(title: str, arms: list[Entry], pace: Pace) -> None:
    """Races arms and prints the table.

    Raises:
        BenchmarkError: an arm failed, or they did not learn the same.
    """
    timings = race(title, arms, pace, announce=True)
    steps = train_race.check_losses(timings, [(OURS, STOCK), (OURS_XLA, XLA)])
    ours, alone = timings[OURS_XLA], timings[XLA]
    notes = [
        f"{OURS_XLA} takes {ours.ratio_to(alone):.2f} of the time of XLA alone; "
        f"packed: {ours.check['packs'] or 'nothing'}.",
        f"Losses of ours agree with stock's, with XLA and without, to {train_race.TOLERANCE:g} in {steps} steps.",
    ]
    print_race(title, timings.values(), ours, notes)


def main() -> None:
    """Runs the benchmark."""
    parser = command_line.parser(__doc__, rounds=15)
    parser.add_argument("--part", choices=[*PARTS, "all"], default="all")
    parser.add_argument("--optimizer", choices=[*OPTIMIZERS, "all"], default="all")
    parser.add_argument("--repeats", type=int, default=1, help="runs of each first step; default: 1")
    arguments = parser.parse_args()
    pace, quick = command_line.pace(arguments), arguments.quick
    parts = PARTS if arguments.part == "all" else [arguments.part]
    optimizers = OPTIMIZERS if arguments.optimizer == "all" else [arguments.optimizer]
    shape = QUICK_SHAPE if quick else SHAPES["fields"]
    model = ModelShape("mlp", zipf=0.0, **shape.settings())
    for optimizer in optimizers:
        if "embedding" in parts:
            run(f"embedding step, {optimizer}, {shape}", embedding_entries(shape, optimizer), pace)
        if "model" in parts:
            run(f"train step, {optimizer}, {model}", model_entries(model, optimizer), pace)
    if "first" in parts:
        many = ModelShape("mlp", fields=5 if quick else 100)
        title = f"first steps with XLA, adagrad, {many}"
        first_step.run(title, first_step.entries(many, "adagrad", jit=True), arguments.repeats)


if __name__ == "__main__":
    main()

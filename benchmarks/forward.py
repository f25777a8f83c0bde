"""Forward lookups and their concatenation: ours against Keras 3, tf_keras and FBGEMM's table-batched embedding.

    python -m benchmarks.forward
    python -m benchmarks.forward --quick --shape wide

Only the embedding part is there: a table per field, one id per field and example, one output [batch, sum of widths].
Stock Keras 3 is shown twice, for its speed depends on the past of its tables: TensorFlow copies a table whole on every
read once it has seen a sparse update, as every trained table has. FBGEMM takes part when its environment exists: `make
bench-peers` makes it.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks import command_line
from benchmarks.harness import BenchmarkError, Entry, Timing, race
from benchmarks.shapes import Shape
from benchmarks.table import print_race

OURS = "ours, Keras 3"
FBGEMM = "FBGEMM TBE 1.9.0"
BOUND = "memory bound"
CALL = "call without lookups"


def entries(shape: Shape, peers_python: Path | None) -> list[Entry]:
    """The arms for one shape.

    Args:
        shape: what is looked up.
        peers_python: interpreter of the environment that FBGEMM is installed in, or None to do without.
    """

    def keras(name: str, front_end: str, **settings: bool) -> Entry:
        values = {"shape": shape.settings(), "front_end": front_end, **settings}
        return Entry(name, "benchmarks.forward_arms:lookups", values)

    arms = [
        keras(OURS, "keras", plugin=True, trained=True),
        keras("ours, Keras 3, id matrix", "keras", plugin=True, trained=True, matrix=True),
        keras("ours, tf_keras", "tf_keras", plugin=True, trained=True),
        keras("Keras 3, fresh tables", "keras", plugin=False, trained=False),
        keras("Keras 3, id matrix, fresh", "keras", plugin=False, trained=False, matrix=True),
        keras("Keras 3, trained tables", "keras", plugin=False, trained=True),
        keras("tf_keras", "tf_keras", plugin=False, trained=True),
    ]
    if peers_python is not None:
        arms.append(Entry(FBGEMM, "benchmarks.tbe_arm:build", {"shape": shape.settings()}, str(peers_python)))
    return [*arms, Entry(CALL, "benchmarks.forward_arms:call_only", {"shape": shape.settings()}), bound(shape)]


def bound(shape: Shape) -> Entry:
    """The arm that only moves as many bytes."""
    return Entry(BOUND, "benchmarks.bound_arm:build", {"moved_bytes": shape.forward_bytes})


def notes(shape: Shape, timings: dict[str, Timing]) -> list[str]:
    """Sentences about the arms that are no lookups of ours or of stock."""
    bandwidth = shape.forward_bytes / timings[BOUND].median
    said = [
        f"{BOUND}: {shape.forward_bytes / 1e6:.1f} MB (ids and rows read, output written) at the rate of a copy "
        f"by two threads in the same rounds, median {bandwidth / 1e9:.0f} GB/s read and written."
    ]
    if FBGEMM not in timings:
        said.append("FBGEMM is left out: `make bench-peers` makes its environment.")
    return said


def check(timings: dict[str, Timing]) -> None:
    """Makes sure that all arms computed the same bits. That ours did so by packed lookups, its arms check themselves.

    Raises:
        BenchmarkError: they did not.
    """
    digests = {name: timing.check["digest"] for name, timing in timings.items() if "digest" in timing.check}
    if len(set(digests.values())) != 1:
        raise BenchmarkError(f"The arms computed different outputs; their hashes: {digests}.")


def main() -> None:
    """Runs the benchmark."""
    parser = command_line.parser(__doc__)
    command_line.add_shape(parser)
    arguments = parser.parse_args()
    pace, peers_python = command_line.pace(arguments), command_line.peers_python(arguments)
    for shape in command_line.shapes(arguments):
        timings = race(str(shape), entries(shape, peers_python), pace)
        check(timings)
        said = [
            *notes(shape, timings),
            f"{CALL}: a tf.function of as many variables that takes the ids from the dataset and returns one field's.",
            "id matrix: the ids come in one tensor, as FBGEMM's do; elsewhere in one tensor per field.",
            "All outputs are equal, bit for bit.",
        ]
        print_race(f"forward, {shape}", timings.values(), timings[OURS], said)


if __name__ == "__main__":
    main()

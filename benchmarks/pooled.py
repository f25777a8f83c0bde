"""Pooled lookups: 20 ids per field and example, their rows summed, against stock TensorFlow and FBGEMM.

    python -m benchmarks.pooled
    python -m benchmarks.pooled --quick --shape wide

Only the embedding part is there: a table per field, one output [batch, sum of widths]. Ours is the packed op itself,
stock a `tf.nn.embedding_lookup_sparse` per field and a concatenation, both in a tf.function. TensorFlow's arms take
SparseTensors, whose 16 bytes of indices per id they read; ours is also shown with row splits, which is how FBGEMM
knows where a bag ends. FBGEMM takes part when its environment exists: `make bench-peers` makes it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks import command_line
from benchmarks.forward import FBGEMM, bound, notes
from benchmarks.harness import BenchmarkError, Entry, Timing, race
from benchmarks.shapes import POOLED, Shape, decoded
from benchmarks.table import print_race

OURS = "ours"
ROW_SPLITS = "ours, row splits"
STOCK = "embedding_lookup_sparse"
TOLERANCE = 1e-5
"""Largest difference of FBGEMM's outputs from stock's: it adds in another order."""


def entries(shape: Shape, peers_python: Path | None) -> list[Entry]:
    """The arms for one shape.

    Args:
        shape: what is looked up.
        peers_python: interpreter of the environment that FBGEMM is installed in, or None to do without.
    """

    def tensorflow(name: str, **settings: bool) -> Entry:
        return Entry(name, "benchmarks.pooled_arms:build", {"shape": shape.settings(), **settings})

    arms = [tensorflow(OURS, packed=True), tensorflow(ROW_SPLITS, packed=True, splits=True), tensorflow(STOCK)]
    if peers_python is not None:
        arms.append(Entry(FBGEMM, "benchmarks.tbe_arm:pooled", {"shape": shape.settings()}, str(peers_python)))
    return [*arms, bound(shape)]


def check(timings: dict[str, Timing]) -> None:
    """Makes sure that ours has stock's bits, and FBGEMM the same numbers.

    Raises:
        BenchmarkError: an output differs.
    """
    outputs = {name: decoded(timing.check["output"]) for name, timing in timings.items() if timing.check}
    stock = outputs[STOCK]
    for name, output in outputs.items():
        near = name == FBGEMM and np.allclose(output, stock, rtol=TOLERANCE, atol=TOLERANCE)
        if not near and output.tobytes() != stock.tobytes():
            difference = np.max(np.abs(output - stock))
            raise BenchmarkError(f"The outputs of '{name}' and of '{STOCK}' differ by up to {difference:.2g}.")


def main() -> None:
    """Runs the benchmark."""
    parser = command_line.parser(__doc__)
    command_line.add_shape(parser, POOLED)
    arguments = parser.parse_args()
    pace, peers_python = command_line.pace(arguments), command_line.peers_python(arguments)
    for shape in command_line.shapes(arguments):
        timings = race(str(shape), entries(shape, peers_python), pace)
        check(timings)
        said = [*notes(shape, timings), "Outputs of ours and of stock are equal, bit for bit."]
        if FBGEMM in timings:
            said.append(f"FBGEMM's, which adds in another order, agree with them to {TOLERANCE:g}.")
        print_race(f"pooled, {shape}", timings.values(), timings[OURS], said)


if __name__ == "__main__":
    main()

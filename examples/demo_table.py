"""What the demo prints: figures in, text for the terminal out."""

import os
import statistics
from collections.abc import Iterator, Mapping

import numpy as np
from rich.markup import escape
from rich.table import Table

from examples.arm_messages import ArmSettings, Chunk, GraphFigures, Summary
from examples.click_data import ClickData


def heading(data: ClickData, settings: ArmSettings) -> str:
    """Returns a line that says what is about to be trained."""
    rows = sum(data.table_rows.values())
    return (
        f"[bold]{escape(data.name)}[/]: {data.train.rows:,} rows to train on, {data.test.rows:,} to test; "
        f"{len(data.table_rows)} categorical fields with {rows:,} ids, width {settings.embedding_dim}; "
        f"{settings.optimizer}, batch {settings.batch_size}, {settings.steps} steps"
        f"{', XLA' if settings.jit else ''}."
    )


def comparison(chunks: Mapping[str, Chunk], summaries: Mapping[str, Summary], first_timed: int) -> Table:
    """Returns the table of both runs.

    Args:
        chunks: all steps of each run; keys "stock" and "plugin".
        summaries: of each run, same keys.
        first_timed: index of the first step that counts for the step time.
    """
    table = Table("", "stock", "plugin", "stock / plugin")
    for column in table.columns[1:]:
        column.justify = "right"

    def row(label: str, figures: Mapping[str, float], text: str, scale: float, compare: bool = True) -> None:
        ratio = f"{figures['stock'] / figures['plugin']:.2f}" if compare else ""
        table.add_row(label, *(text.format(figures[arm] * scale) for arm in ("stock", "plugin")), ratio)

    timed = {arm: chunk.seconds[first_timed:] for arm, chunk in chunks.items()}
    row("step, median", {arm: statistics.median(seconds) for arm, seconds in timed.items()}, "{:.1f} ms", 1e3)
    row("step, minimum", {arm: min(seconds) for arm, seconds in timed.items()}, "{:.1f} ms", 1e3)
    row("first step", {arm: chunk.seconds[0] for arm, chunk in chunks.items()}, "{:.1f} s", 1)
    row("peak memory", {arm: summary.peak_bytes for arm, summary in summaries.items()}, "{:.0f} MB", 1e-6)
    row("test AUC", {arm: summary.auc for arm, summary in summaries.items()}, "{:.4f}", 1, compare=False)
    return table


def remarks(chunks: Mapping[str, Chunk], summaries: Mapping[str, Summary], dump_dir: str) -> Iterator[str]:
    """Yields the lines under the table; arguments as for `comparison`, and the folder of the dumps."""
    difference = np.abs(np.subtract(chunks["stock"].losses, chunks["plugin"].losses))
    same = int(np.argmax(difference > 0)) if difference.any() else difference.size
    yield (
        f"Loss: largest difference between the two curves {difference.max():.3g} over {difference.size} steps, "
        f"the first {same} of them bit-identical; last loss {chunks['stock'].losses[-1]:.4f}."
    )
    yield from _graph_lines(summaries["plugin"].graphs)
    yield f"Dumps and logs: {escape(os.path.abspath(dump_dir))}"


def _graph_lines(graphs: list[GraphFigures]) -> Iterator[str]:
    if not graphs:
        yield "[red]The plugin saw no lookup.[/]"
        return
    # Of all the graphs of a run, the train step is the largest.
    step = max(graphs, key=lambda graph: graph.nodes_before)
    yield (
        f"Graph: the train step went from {step.nodes_before} to {step.nodes_after} nodes; "
        f"{step.lookups_packed} lookups and {step.updates_packed} writes of variables and slots packed into "
        f"{step.packed_ops} ops, {step.declined} declined."
    )
    for graph in graphs:
        for failure in graph.failures:
            yield f"[red]Failure[/] in {graph.name}, which ran as it was: {escape(failure)}"

"""What was done to the graphs of this process."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from graph_passes.pipeline.report import GraphReport


class Report:
    """Reports of optimised graphs. `print(report)` shows a table.

    Attributes:
        graphs: one `GraphReport` per graph, in the order in which they came: `.name`, `.nodes_before`, `.nodes_after`,
            `.packed`, `.declined`, `.failures`, `.seconds`.
    """

    def __init__(self, graphs: Sequence[GraphReport]):
        self.graphs = tuple(graphs)

    def to_json(self) -> str:
        """All reports as a JSON document: `{"graphs": [...]}`."""
        return json.dumps({"graphs": [graph.to_dict() for graph in self.graphs]}, indent=1)

    def details(self) -> str:
        """Every packed lookup and update, every declined candidate and its reason, as text."""
        return "\n".join(graph.to_text() for graph in self.graphs)

    def __str__(self) -> str:
        if not self.graphs:
            return "No graph has been optimised yet."
        table = Table(title="picasso-tf")
        for heading in (
            "graph",
            "nodes before",
            "nodes after",
            "lookups packed",
            "updates packed",
            "into ops",
            "declined",
            "ms",
        ):
            table.add_column(heading, justify="left" if heading == "graph" else "right")
        for graph in self.graphs:
            table.add_row(
                graph.name + (" (failed)" if graph.failures else ""),
                str(graph.nodes_before),
                str(graph.nodes_after),
                str(graph.lookups_packed),
                str(graph.updates_packed),
                str(len(graph.packed)),
                str(len(graph.declined)),
                f"{graph.seconds * 1e3:.0f}",
            )
        console = Console(width=110, no_color=True)
        with console.capture() as capture:
            console.print(table)
            reasons = _reasons(self.graphs)
            if reasons:
                console.print("left alone: " + ", ".join(f"{count} {code}" for code, count in reasons.items()))
            for graph in self.graphs:
                for failure in graph.failures:
                    console.print(f"failed: {failure}", markup=False)
        return capture.get().rstrip()


def _reasons(graphs: Sequence[GraphReport]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for graph in graphs:
        for declined in graph.declined:
            counts[declined.code] = counts.get(declined.code, 0) + 1
    return dict(sorted(counts.items()))

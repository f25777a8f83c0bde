"""What was done to one graph, for people and for programs."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from graph_passes.pipeline.base import Declined, Packed
from graph_passes.pipeline.manager import PipelineRun


@dataclass(frozen=True)
class GraphReport:
    """The report of one optimised graph.

    Attributes:
        name: stable name of the graph; the name of its dump folder.
        nodes_before: number of nodes that came in.
        nodes_after: number of nodes that run.
        packed: packed ops and the ops that they replace.
        declined: candidates that were left alone, each with a reason code.
        failures: a sentence per pass that raised; the graph then runs as it came.
        seconds: time spent on the graph.
        rewritten: nodes changed in another way, by pass.
        notes: (node, sentence) worth a look, such as a table that is still read whole.
        passes: the log line of each pass.
    """

    name: str
    nodes_before: int
    nodes_after: int
    packed: tuple[Packed, ...]
    declined: tuple[Declined, ...]
    failures: tuple[str, ...]
    seconds: float
    rewritten: dict[str, tuple[str, ...]]
    notes: tuple[tuple[str, str], ...]
    passes: tuple[str, ...]

    @classmethod
    def of(cls, name: str, run: PipelineRun) -> GraphReport:
        """The report of a finished run."""
        reports = run.reports if run.failure is None else []
        return cls(
            name=name,
            nodes_before=len(run.before),
            nodes_after=len(run.after),
            packed=tuple(item for report in reports for item in report.packed),
            declined=tuple(item for report in reports for item in report.declined),
            failures=() if run.failure is None else (str(run.failure),),
            seconds=run.seconds,
            rewritten={report.name: tuple(report.rewritten) for report in reports if report.rewritten},
            notes=tuple(note for report in reports for note in report.notes),
            passes=tuple(report.summary() for report in run.reports),
        )

    @property
    def lookups_packed(self) -> int:
        """Number of original lookups that a packed op now does."""
        return self._members_of("lookup")

    @property
    def updates_packed(self) -> int:
        """Number of original writes of variables and slots that a packed op now does."""
        return self._members_of("update")

    @property
    def transforms_packed(self) -> int:
        """Number of original ops on features, such as hashes and lookups in hash tables, that a packed op now does."""
        return self._members_of("transform")

    def _members_of(self, kind: str) -> int:
        return sum(len(item.members) for item in self.packed if item.kind == kind)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return dataclasses.asdict(self)

    def to_text(self) -> str:
        """The whole report as plain text, one fact a line."""
        lines = [f"graph {self.name}: {self.nodes_before} -> {self.nodes_after} nodes in {self.seconds * 1e3:.1f} ms"]
        lines += [f"  {line}" for line in self.passes]
        for item in self.packed:
            lines.append(f"packed {len(item.members)} {item.kind}s into {item.node}")
            lines += [f"  rule {item.rule}"] if item.rule else []
            lines += [f"  {item.kind} {member}" for member in item.members]
            lines += [f"  writes straight into {join}" for join in item.absorbed]
        lines += [f"declined [{item.code}] {item.node}: {item.detail}" for item in self.declined]
        lines += [f"note {node}: {sentence}" for node, sentence in self.notes]
        lines += [f"failure {sentence}" for sentence in self.failures]
        return "\n".join(lines) + "\n"

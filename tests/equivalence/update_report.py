"""What a report says about updates."""

from __future__ import annotations

import picasso_tf
from tests.equivalence.update_situations import TABLES

PASS = "picasso/update_packing/"


def updates(report: picasso_tf.Report) -> list[int]:
    """Members of each packed update of the graph that has most of them, the largest first."""
    graphs = [[len(item.members) for item in graph.packed if PASS in item.node] for graph in report.graphs]
    return sorted(max(graphs, key=sum, default=[]), reverse=True)


def reasons(report: picasso_tf.Report) -> set[str]:
    """The codes of all that was declined."""
    return {declined.code for graph in report.graphs for declined in graph.declined}


def assert_updates_packed(report: picasso_tf.Report, tables: int = len(TABLES), ops: int = 4) -> None:
    """Asserts that nothing was declined and that the updates of all tables went into a few ops.

    Args:
        report: the plugin's report.
        tables: number of tables; each of them and each slot is written at least once.
        ops: the most packed updates.
    """
    found = updates(report)
    assert not reasons(report), report.details()
    assert sum(found) >= tables, report.details()
    assert len(found) <= ops, report.details()
    assert found[0] >= tables - 1, report.details()  # rows of one element may follow a rule of their own

"""Names of graphs that stay the same from run to run."""

from __future__ import annotations

import hashlib

from graph_passes.analysis.tables import accesses
from graph_passes.ir import Graph


def graph_name(graph: Graph) -> str:
    """`update-1a2b3c4d` or `forward-1a2b3c4d`: whether it writes a variable that it reads, and a fingerprint.

    The fingerprint is a hash of how many nodes of each op there are, of the shapes of what comes in, and of the names
    of the gathers. It does not depend on the order of nodes, nor on the counters that TensorFlow puts in other names.
    """
    ops = sorted((op, len(nodes)) for op, nodes in graph.by_op.items())
    sources = graph.of("_Arg", "Placeholder", "IteratorGetNext")
    shapes = sorted(str((node.attr("_output_shapes"), node.attr("_handle_shapes"))) for node in sources)
    gathers = [node.name for node in graph.of("ResourceGather", "GatherV2")]
    digest = hashlib.sha256(repr((ops, shapes, gathers)).encode()).hexdigest()[:8]
    updates = any(access.reads and access.writes for access in accesses(graph).values())
    return f"{'update' if updates else 'forward'}-{digest}"

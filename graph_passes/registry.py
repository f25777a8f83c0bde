"""Every pass, one per line, in the order in which they run, each with the reason for its place."""

from __future__ import annotations

from graph_passes.cleanup.canonicalize import Canonicalize
from graph_passes.cleanup.dead_nodes import DeadNodes
from graph_passes.packing.embedding_packing import EmbeddingPacking
from graph_passes.pipeline.base import Pass

PASSES: tuple[type[Pass], ...] = (
    Canonicalize,  # first: the others know lookups in one form only, ResourceGather
    EmbeddingPacking,  # after it: most lookups that it packs were a read and a gather before
    DeadNodes,  # last: takes away what the others left unread, such as shape chains and wraps of ids
)

BY_NAME: dict[str, type[Pass]] = {item.name: item for item in PASSES}

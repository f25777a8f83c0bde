"""Every pass, one per line, in the order in which they run, each with the reason for its place."""

from __future__ import annotations

from graph_passes.cleanup.canonicalize import Canonicalize
from graph_passes.cleanup.clipped_gathers import ClippedGathers
from graph_passes.cleanup.control_outputs import ControlOutputs
from graph_passes.cleanup.dead_nodes import DeadNodes
from graph_passes.cleanup.sharded_gathers import ShardedGathers
from graph_passes.cleanup.shared_scalars import SharedScalars
from graph_passes.compilation.xla_close import XlaClose
from graph_passes.compilation.xla_open import XlaOpen
from graph_passes.packing.cross_packing import CrossPacking
from graph_passes.packing.embedding_packing import EmbeddingPacking
from graph_passes.packing.feature_packing import FeaturePacking
from graph_passes.packing.indicator_packing import IndicatorPacking
from graph_passes.packing.pooling_packing import PoolingPacking
from graph_passes.packing.update_packing import UpdatePacking
from graph_passes.pipeline.base import Pass

PASSES: tuple[type[Pass], ...] = (
    XlaOpen,  # before canonicalize, which reports the calls that stay compiled
    Canonicalize,  # before packing: the others know lookups in one form only, ResourceGather
    SharedScalars,  # before packing: updates share a learning rate when it is one tensor
    UpdatePacking,  # before lookups: what an optimizer gathers from its slots is part of its update
    DeadNodes,  # here too: what only gradients read, now gone, must not hold up the packing of lookups
    ShardedGathers,  # before lookups, which know a table in shards in one form only; after updates, which know none
    ClippedGathers,  # after shards are one gather, whose rows may be clipped too
    PoolingPacking,  # before single lookups: the gather of distinct ids is part of a pooled lookup
    EmbeddingPacking,  # after canonicalize: most lookups that it packs were a read and a gather before
    DeadNodes,  # after the rewrites: takes away what the others left unread, such as shape chains and wraps of ids
    CrossPacking,  # after lookups, like transforms; before these, which are then packed before and after one op
    FeaturePacking,  # after lookups, which take over casts and wraps of ids, and after what nobody reads is gone
    IndicatorPacking,  # after transforms, whose ids it counts; nothing that is left reads one-hot vectors
    XlaClose,  # gives XLA what no other pass took, without what nobody reads
    ControlOutputs,  # last: what is left of what the others took away is merged
)

BY_NAME: dict[str, type[Pass]] = {item.name: item for item in PASSES}

"""One write of variables as an update, and why a write is none."""

from __future__ import annotations

from dataclasses import dataclass, field

from graph_passes.analysis.update_expressions import Write
from graph_passes.ir import DType, Node, Shape
from graph_passes.rewrite.update_ids import UpdateIds


class NotPackable(Exception):  # noqa: N818  a reason, not a fault
    """Why a write is no update that can be packed: a reason code and a sentence."""

    def __init__(self, code: str, detail: str = ""):
        super().__init__(code)
        self.code, self.detail = code, detail


@dataclass
class Statement:
    """One node that writes variables, as an update.

    Attributes:
        node: the node.
        writes: what it does, in order.
        shape: static shape of every variable that it writes or reads as a state.
        dtype: their dtype.
        ids: the ids whose rows it works on; None when it needs none.
    """

    node: Node
    shape: Shape
    dtype: DType
    writes: list[Write] = field(default_factory=list)
    ids: UpdateIds | None = None

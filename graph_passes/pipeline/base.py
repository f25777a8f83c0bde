"""What a pass is: a pure function from a graph to a graph and a report."""

from __future__ import annotations

import abc
import dataclasses
from dataclasses import dataclass, field
from typing import Any, ClassVar

from graph_passes.errors import GraphError
from graph_passes.ir import Graph
from graph_passes.pipeline.reasons import REASONS


@dataclass(frozen=True)
class Packed:
    """One packed op that a pass made.

    Attributes:
        node: name of the packed op.
        members: original names of the ops that it does the work of, in its own order.
        absorbed: original names of the concatenations that it writes straight into.
        kind: what the members are: "lookup", "transform" (of a feature) or "update" (a write of a variable or of one of
            its slots).
        rule: for updates, the name of the optimizer's rule, or its program.
    """

    node: str
    members: tuple[str, ...]
    absorbed: tuple[str, ...] = ()
    kind: str = "lookup"
    rule: str = ""


@dataclass(frozen=True)
class Declined:
    """One candidate that a pass left alone.

    Attributes:
        code: a stable reason code, a key of `graph_passes.pipeline.reasons.REASONS`.
        node: name of the candidate.
        detail: a sentence for a person; default: the reason's own.
    """

    code: str
    node: str
    detail: str = ""

    def __post_init__(self) -> None:
        if self.code not in REASONS:
            raise GraphError(f"'{self.code}' is not a reason code.")
        if not self.detail:
            object.__setattr__(self, "detail", REASONS[self.code])


@dataclass
class PassReport:
    """What a pass did to one graph.

    Attributes:
        name: the pass.
        packed: packed ops that it made.
        declined: candidates that it left alone.
        rewritten: names of nodes that it changed in another way, such as a read turned into a gather.
        notes: further sentences for a person, as (node, sentence).
        moved: names of nodes with an effect that went into a function, and of the calls that came in their place.
        functions: names of functions that it added to the library.
        seconds: how long it took; set by the manager.
        nodes_before: size of the graph it was given; set by the manager.
        nodes_after: size of the graph it returned; set by the manager.
    """

    name: str
    packed: list[Packed] = field(default_factory=list)
    declined: list[Declined] = field(default_factory=list)
    rewritten: list[str] = field(default_factory=list)
    notes: list[tuple[str, str]] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)
    seconds: float = 0.0
    nodes_before: int = 0
    nodes_after: int = 0

    @property
    def touched(self) -> list[str]:
        """Names of nodes with an effect that the pass says it took away or added."""
        return [*self.moved, *(name for item in self.packed for name in (item.node, *item.members))]

    def summary(self) -> str:
        """The one line that is logged for a pass."""
        return (
            f"{self.name}: {self.nodes_before} -> {self.nodes_after} nodes, "
            f"{sum(len(p.members) for p in self.packed)} packed, {len(self.rewritten)} rewritten, "
            f"{len(self.declined)} declined, {self.seconds * 1e3:.0f} ms"
        )


@dataclass(frozen=True)
class PassResult:
    """A graph and the report of how it came to be."""

    graph: Graph
    report: PassReport


@dataclass
class PassContext:
    """What passes of one run share.

    Attributes:
        fuel: how many rewrites the run may still make; None is no limit. A bisection over it finds the one rewrite
            that breaks a model.
    """

    fuel: int | None = None

    def take_fuel(self) -> bool:
        """Whether one more rewrite may be made; counts it."""
        if self.fuel is None:
            return True
        self.fuel -= 1
        return self.fuel >= 0


class Pass(abc.ABC):
    """A rewrite with a name and options.

    A subclass is a frozen dataclass whose fields are its options, with defaults; they are printed and parsed as part of
    the pipeline's text form.
    """

    name: ClassVar[str]

    @abc.abstractmethod
    def run(self, graph: Graph, context: PassContext) -> PassResult:
        """The rewritten graph. The graph that was given is not changed; a graph without work comes back as it is."""

    def options(self) -> dict[str, Any]:
        """Options that differ from their defaults."""
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        return {f.name: getattr(self, f.name) for f in fields if getattr(self, f.name) != f.default}

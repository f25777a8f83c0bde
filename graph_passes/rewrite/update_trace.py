"""Reads an optimizer's update from the graph: from a write of a variable back to gradient rows, states and scalars.

Nothing here looks at names of nodes. A tensor is followed upstream as long as it is arithmetic that works element by
element on rows of one table; what it ends in are the leaves of the update's expression.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from graph_passes.analysis.constants import scalar
from graph_passes.analysis.devices import device_type
from graph_passes.analysis.tables import table_of
from graph_passes.analysis.update_expressions import (
    GRADIENT,
    ID,
    PARAMETER,
    ROW,
    STATE,
    TABLE,
    Expressions,
)
from graph_passes.ir import Graph, Node, TensorRef, product
from graph_passes.rewrite.elementwise import COMPOSITION, ELEMENTWISE, OF_UNIQUE_ROWS
from graph_passes.rewrite.gradients import GradientSource
from graph_passes.rewrite.id_gradients import id_gradient
from graph_passes.rewrite.ids import RESHAPES
from graph_passes.rewrite.pooled_gradients import PACKET, POOLING_GRADIENTS, pooled_gradient
from graph_passes.rewrite.shared_memory import may_be_written
from graph_passes.rewrite.statement import NotPackable, Statement
from graph_passes.rewrite.update_ids import Guards, UpdateIds, through_casts, trace_update_ids
from graph_passes.rewrite.weighted_gradients import weighted_gradient

_MAX_ADDENDS = 8  # AddN adds this many inputs in one go, from left to right


class Tracer:
    """Traces the values that one statement writes.

    Args:
        graph: the graph.
        expressions: where expressions are stored.
        statement: what is found out is noted here.
        guards: see `graph_passes.rewrite.update_ids.Guards`.
        states: roots of the variables that some update writes; a whole read of another variable is a table gradient.
        any_order: whether distinct rows that are no whole packets may come in any order.
    """

    def __init__(
        self,
        graph: Graph,
        expressions: Expressions,
        statement: Statement,
        guards: Guards,
        states: frozenset[str],
        any_order: bool,
    ):
        self._graph = graph
        self._expressions = expressions
        self._statement = statement
        self._guards = guards
        self._states = states
        self._any_order = any_order
        self._memo: dict[tuple[TensorRef, int], int] = {}
        self.split = True
        self.ids_before_filling: UpdateIds | None = None
        self._has_pooled = False

    # ---- Leaves and levels -------------------------------------------------------------------------------------------

    def scalar(self, ref: TensorRef) -> int:
        if self._graph.shape(ref).dims != ():
            raise NotPackable("update_arithmetic", f"'{ref}' is no scalar.")
        return self._expressions.leaf(PARAMETER, ref)

    def rows(self, ref: TensorRef) -> int:
        """The expression of a tensor with one row for each row of the variable."""
        return self._traced(ref, ROW)

    def per_id(self, ref: TensorRef) -> int:
        """The expression of a tensor with one row for each id."""
        return self._traced(ref, ID)

    def unique_rows(self, ref: TensorRef, unique: Node) -> int:
        """The expression of a tensor with one row for each distinct id, in the order that `unique` gives."""
        node = self._graph.producer(ref)
        if node.name not in self._graph.fed and ref.port == 0:
            if node.op == "UnsortedSegmentSum" and node.inputs[1] == TensorRef(unique.name, 1):
                weighted = self._weighted(node)
                value = self.per_id(node.inputs[0]) if weighted is None else weighted
                return self._expressions.make("segment_sum", value)
            if node.op == "UnsortedSegmentSum" and self._is_of_distinct(node.inputs[1], unique):
                return self.unique_rows(node.inputs[0], unique)
            if node.op in POOLING_GRADIENTS and node.inputs[1] == TensorRef(unique.name, 1):
                return self._expressions.make("segment_sum", self._pooled(node))
            if node.op in RESHAPES:
                return self.unique_rows(node.inputs[0], unique)
        if node.op in ("GatherV2", "ResourceGather") and self._takes(node.inputs[1], unique):
            return self._gathered(node)
        return self._elementwise(ref, lambda item: self.unique_rows(item, unique), OF_UNIQUE_ROWS)

    def _is_of_distinct(self, places: TensorRef, unique: Node) -> bool:
        """Whether places come from a Unique of what `unique` gives: 0, 1, 2, ..."""
        again = self._graph.producer(places)
        if again.op not in ("Unique", "UniqueV2") or places.port != 1 or again.name in self._graph.fed:
            return False
        return through_casts(self._graph, again.inputs[0], self._guards) == TensorRef(unique.name)

    def _pooled(self, node: Node) -> int:
        """The gradient of a pooled lookup, of which each id takes the row that it went into."""
        ids, row = self._statement.ids, product((self._statement.shape.dims or ())[1:])
        if ids is None or ids.joined or not row or not self._takes_pools():
            raise NotPackable("update_arithmetic", f"'{node.name}' is the gradient of a pooled lookup.")
        may_fill = self._any_order or row % PACKET == 0
        return self._of_pool(*pooled_gradient(self._graph, node, ids, row, may_fill))

    def _weighted(self, node: Node) -> int | None:
        """The gradient of weighted ids, which `node` sums for distinct ones; None: it is none of weighted ids."""
        ids, row = self._statement.ids, product((self._statement.shape.dims or ())[1:])
        if ids is None or ids.joined or not row or not self._takes_pools():
            return None
        may_fill = self._any_order or row % PACKET == 0
        found = weighted_gradient(self._graph, node.inputs[0], row, ids if may_fill else None)
        return None if found is None else self._of_pool(*found)

    def _takes_pools(self) -> bool:
        """Whether packed updates take gradients of pooled ids, on this device and of this dtype."""
        on_gpu = device_type(self._statement.node.device) == "GPU"
        return not on_gpu and self._statement.dtype in ("float32", "float64")

    def _of_pool(self, source: GradientSource, before: UpdateIds | None) -> int:
        if self._has_pooled and before != self.ids_before_filling:
            raise NotPackable("update_arithmetic", "Its parts work on different ids.")
        self._has_pooled, self.ids_before_filling = True, before
        return self._expressions.leaf(GRADIENT, (source,))

    def use_ids(self, ids: UpdateIds) -> None:
        """Notes the ids of the statement; all of its parts must agree on them."""
        if not self.split:
            ids = ids.whole(self._graph)
        known = self._statement.ids
        if known is not None and known.segments != ids.segments:
            raise NotPackable("update_arithmetic", "Its parts work on different ids.")
        self._statement.ids = ids

    def _traced(self, ref: TensorRef, level: int) -> int:
        key = (ref, level)
        if key not in self._memo:
            self._memo[key] = self._trace(ref, level)
        return self._memo[key]

    def _trace(self, ref: TensorRef, level: int) -> int:
        graph, node = self._graph, self._graph.producer(ref)
        branch = self._guards.through(ref)
        if branch is not None:
            return self._traced(branch, level)
        if node.name not in graph.fed and ref.port == 0:
            if node.op == "Identity" or (level == ID and node.op in RESHAPES):
                return self._traced(node.inputs[0], level)
            if node.op == "ReadVariableOp" and level == ROW:
                state = self._state(node, node.inputs[0])
                if state is not None:
                    return state
            if level == ROW and node.op == "UnsortedSegmentSum":
                return self._segment_sum(node)
            if level == ID and node.op in ("GatherV2", "ResourceGather") and self._takes(node.inputs[1], None):
                return self._gathered(node)
            if node.op in ELEMENTWISE or node.op in ("AddN", COMPOSITION):
                found = self._arithmetic(ref, level)
                if found is not None:
                    return found
        return self._table_gradient(ref) if level == ROW else self._gradient(ref)

    def _arithmetic(self, ref: TensorRef, level: int) -> int | None:
        """An elementwise node as an expression; None where it is better taken as a leaf.

        Arithmetic of the model, such as the product of two gradients, stays in the model: of several gradients only
        those are told apart that a state is mixed with.
        """
        try:
            found = self._elementwise(ref, lambda item: self._traced(item, level))
        except NotPackable:
            found = None
        if found is not None and level == ID:
            leaves = self._expressions.leaves([found], GRADIENT)
            if len(leaves) > 1 and not self._expressions.leaves([found], STATE):
                found = None
        return found

    def _elementwise(
        self, ref: TensorRef, trace: Callable[[TensorRef], int], ops: Mapping[str, str] = ELEMENTWISE
    ) -> int:
        graph, node = self._graph, self._graph.producer(ref)
        branch = self._guards.through(ref)
        if branch is not None:
            return trace(branch)
        if node.name in graph.fed or ref.port:
            raise NotPackable("update_arithmetic", f"'{ref}' is no arithmetic on rows.")
        if node.op == "Identity":
            return trace(node.inputs[0])
        if node.op == COMPOSITION:
            return self._composition(node, trace, ops)
        if node.op not in ELEMENTWISE and node.op != "AddN":
            raise NotPackable("update_arithmetic", f"Nothing is known about the op {node.op} of '{node.name}'.")
        args = [self._operand(item, node, trace) for item in node.inputs]
        if node.op != "AddN":
            return self._expressions.make(ops[node.op], *args)
        if len(args) > _MAX_ADDENDS:
            raise NotPackable("update_arithmetic", f"'{node.name}' adds more than {_MAX_ADDENDS} tensors.")
        if len(set(args)) > 1 and len(args) > 2 and not may_be_written(graph, node.inputs[0]):
            # AddN begins with an input whose memory it may write to, which the first one's is not.
            raise NotPackable("update_arithmetic", f"'{node.name}' may add its tensors in another order.")
        total = args[0]
        for arg in args[1:]:
            total = self._expressions.make("add", total, arg)
        return total

    def _composition(self, node: Node, trace: Callable[[TensorRef], int], ops: Mapping[str, str]) -> int:
        value = trace(node.inputs[0])
        for name in node.attr("op_names", []):
            op = ops.get(name.decode())
            if op is None:
                raise NotPackable("update_arithmetic", f"Nothing is known about {name.decode()} in '{node.name}'.")
            value = self._expressions.make(op, value)
        return value

    def _operand(self, ref: TensorRef, node: Node, trace: Callable[[TensorRef], int]) -> int:
        dims, result = self._graph.shape(ref).dims, node.output_shape().dims
        if dims == () and result != ():
            return self.scalar(ref)
        if dims is None or result is None or len(dims) != len(result) or not _agree(dims, result):
            raise NotPackable("update_arithmetic", f"'{ref}' is broadcast.")
        return trace(ref)

    def _segment_sum(self, node: Node) -> int:
        rows = (self._statement.shape.dims or (None,))[0]
        found = trace_update_ids(self._graph, node.inputs[1], self._guards)
        if found is None or self._guards.number(node.inputs[2]) != rows:
            return self._table_gradient(TensorRef(node.name))
        ids, unique = found
        self.use_ids(ids)
        if unique is None:
            return self._expressions.make("segment_sum", self.per_id(node.inputs[0]))
        value = self.unique_rows(node.inputs[0], unique)
        if self._expressions[value].op == "segment_sum":
            return value  # zero where no id is
        return self._expressions.make("touched_add", self._expressions.leaf(PARAMETER, 0.0), value)

    def _takes(self, indices: TensorRef, unique: Node | None) -> bool:
        """Whether the indices of a gather are the statement's own ids, or the values of `unique`."""
        found = trace_update_ids(self._graph, indices, self._guards)
        if found is None or self._statement.ids is None:
            return False
        ids, other = found
        if (other is None) != (unique is None) or (unique is not None and other is not None and other != unique):
            return False
        return (ids if self.split else ids.whole(self._graph)).segments == self._statement.ids.segments

    def _gathered(self, node: Node) -> int:
        if node.attr("batch_dims", 0) or (node.op == "GatherV2" and scalar(self._graph, node.inputs[2]) != 0):
            raise NotPackable("update_arithmetic", f"'{node.name}' does not gather along axis 0.")
        if node.op == "GatherV2":
            return self.rows(node.inputs[0])
        state = self._state(node, node.inputs[0])
        if state is None:
            raise NotPackable("update_arithmetic", f"'{node.name}' gathers from another table.")
        return state

    def _state(self, node: Node, handle: TensorRef) -> int | None:
        """A read of a variable as wide as the one that is written."""
        table = table_of(self._graph, handle)
        if table.root not in self._states or table.shape != self._statement.shape or not table.traceable:
            return None
        return self._expressions.leaf(STATE, (table.root, node.name))

    def _table_gradient(self, ref: TensorRef) -> int:
        if self._graph.shape(ref) != self._statement.shape:
            raise NotPackable("update_arithmetic", f"The shape of '{ref}' is not that of the variable.")
        return self._expressions.leaf(TABLE, ref)

    def _gradient(self, ref: TensorRef) -> int:
        """Gradient rows, one source for each segment of the ids."""
        ids, row = self._statement.ids, product((self._statement.shape.dims or ())[1:])
        assert ids is not None
        if not row:
            raise NotPackable("update_arithmetic", "The width of the table is not known.")
        may_pool = self._takes_pools()
        if not ids.joined:
            return self._expressions.leaf(GRADIENT, (id_gradient(self._graph, ref, row, ids.ref, may_pool),))
        node = self._graph.producer(ref)
        if node.op != "ConcatV2" or len(node.inputs) != len(ids.segments) + 1 or node.name in self._graph.fed:
            raise NotPackable("parts_differ")
        parts = zip(node.inputs[:-1], ids.segments, strict=True)
        gradients = tuple(id_gradient(self._graph, part, row, of.ref, may_pool) for part, of in parts)
        return self._expressions.leaf(GRADIENT, gradients)


def _agree(one: tuple[int | None, ...], other: tuple[int | None, ...]) -> bool:
    return all(a == b or a is None or b is None for a, b in zip(one, other, strict=True))

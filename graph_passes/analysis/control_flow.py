"""The v1 loop and the branches of lowered conditionals that a node lives in.

A node inside a branch that is not taken is dead, and deadness spreads to whatever it feeds: nodes of different
branches must never be merged. TensorFlow lowers `tf.cond` and Keras's conditional updates to Switch and Merge before
plugins run.
"""

from __future__ import annotations

from graph_passes.ir import Graph, TensorRef

Context = frozenset[tuple[str, object]]
_TOP: Context = frozenset()
_OPS = ("Switch", "RefSwitch", "Merge", "RefMerge", "Enter", "RefEnter", "Exit", "RefExit", "_SwitchN")


def has_branches_or_loops(graph: Graph) -> bool:
    """Whether a node may be dead or run more than once."""
    return any(op in graph.by_op for op in _OPS)


def contexts(graph: Graph) -> dict[str, Context]:
    """The branches and frames around each node; nodes at the top level are absent.

    Merge ends what its inputs do not share; Exit ends its frame and the branches inside it.
    """
    found: dict[str, Context] = {}
    if not has_branches_or_loops(graph):
        return found
    port_contexts: dict[TensorRef, Context] = {}
    around_frame: dict[object, Context] = {}
    inside: set[str] = set()  # nodes that have a context, or give one to their readers
    for node in graph.topological:
        if node.op not in _OPS and inside.isdisjoint(node.predecessors()):
            continue  # nearly all nodes of nearly all graphs
        incoming = [port_contexts.get(ref) or found.get(ref.node, _TOP) for ref in node.inputs]
        incoming += [found.get(name, _TOP) for name in node.controls]
        if node.op.endswith("Merge") and incoming:
            context = frozenset.intersection(*incoming[: len(_forward_inputs(graph, node.name))])
        else:
            context = _TOP.union(*incoming) if len(set(incoming)) != 1 else incoming[0]
        if node.op.endswith("Enter"):
            frame = node.attr("frame_name")
            around_frame[frame] = around_frame.get(frame, _TOP) | context
            context |= {("frame", frame)}
        elif node.op.endswith("Exit"):
            context &= _around_innermost(context, around_frame)
        if context:
            found[node.name] = context
            inside.add(node.name)
        if "Switch" in node.op:
            inside.add(node.name)
            predicate = str(node.inputs[1])
            for port in range(2 if node.op != "_SwitchN" else node.attr("num_outs", 2)):
                port_contexts[TensorRef(node.name, port)] = context | {("branch " + predicate, port)}
    return found


def frames(context: Context) -> Context:
    """The loops among branches and loops."""
    return frozenset(part for part in context if part[0] == "frame")


def exclusive(one: Context, other: Context) -> bool:
    """Whether two contexts are in different branches of one conditional, so that at most one of them runs."""
    sides = {kind: side for kind, side in one if kind != "frame"}
    return any(kind in sides and sides[kind] != side for kind, side in other)


def _around_innermost(context: Context, around_frame: dict[object, Context]) -> Context:
    """What surrounds the innermost frame of `context`: that of a loop in a loop lies in one more frame."""
    around = [around_frame[frame] for kind, frame in context if kind == "frame"]
    return max(around, key=lambda outer: sum(kind == "frame" for kind, _ in outer), default=_TOP)


def _forward_inputs(graph: Graph, name: str) -> list[str]:
    node = graph.nodes[name]
    refs = [ref.node for ref in node.inputs if graph.nodes[ref.node].op not in ("NextIteration", "RefNextIteration")]
    return refs or [name]

"""The verifier: twelve numbered invariants of a graph, checked around every pass in every test.

    I1  node names are unique
    I2  every input names an existing node and an existing output port
    I3  the graph is acyclic, but for the back-edges of v1 loops
    I4  the op is known; arity and input types agree with its OpDef
    I5  control inputs come last and are unique
    I6  preserved nodes are present; those that can be read have an unchanged signature; of NoOps that a caller can only
        wait for, one may wait for all that others waited for
    I7  stateful nodes are neither dropped nor duplicated, unless the pass says so
    I8  colocation targets that existed still exist
    I9  called functions exist
    I10 versions and functions are untouched; functions are added only where the pass says so, and are sound themselves
    I11 devices parse
    I12 no fed tensor is bypassed

The idea of checking well-formedness around each pass is TVM's (well_formed.cc).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

import tensorflow as tf
from tensorflow.core.framework import graph_pb2

from graph_passes.errors import GraphError, VerifyError
from graph_passes.ir.functions import control_outputs, function_nodes
from graph_passes.ir.graph import Graph
from graph_passes.ir.node import Node
from graph_passes.ir.op_defs import READERS, input_types, is_stateful, op_def
from graph_passes.ir.text import print_node
from graph_passes.ir.types import FunctionRef


def verify_graph_def(graph_def: graph_pb2.GraphDef) -> None:
    """Checks what only the proto shows: I1 and I5.

    Raises:
        VerifyError: an invariant is broken.
    """
    names = Counter(node.name for node in graph_def.node)
    for node in graph_def.node:
        if names[node.name] > 1:
            raise VerifyError("I1", node.name, f"{names[node.name]} nodes have this name.")
        controls = [text for text in node.input if text.startswith("^")]
        if list(node.input[len(node.input) - len(controls) :]) != controls:
            raise VerifyError("I5", node.name, f"a data input follows a control input in {list(node.input)}.")
        if len(set(controls)) != len(controls):
            raise VerifyError("I5", node.name, f"a control input is repeated in {list(node.input)}.")


def verify(graph: Graph) -> None:
    """Checks one graph by itself: I2, I3, I4, I9, I11.

    Raises:
        VerifyError: an invariant is broken.
    """
    functions = {function.signature.name for function in graph.library.function}
    devices: set[str] = set()
    for node in graph.nodes.values():
        _check_inputs(graph, node)
        _check_op_def(graph, node, functions)
        devices.add(node.device)
    for device in devices:
        _check_device(graph, device)
    try:
        _ = graph.topological
    except GraphError as error:
        raise VerifyError("I3", str(error).split("'")[1], str(error)) from error


def _check_inputs(graph: Graph, node: Node) -> None:
    for ref in node.inputs:
        if ref.node not in graph.nodes:
            raise _error("I2", graph, node, f"its input '{ref}' does not exist.")
        types = graph.output_types(ref.node)
        if types is not None and ref.port >= len(types):
            raise _error("I2", graph, node, f"its input '{ref}' asks for port {ref.port} of {len(types)}.")
    for name in node.controls:
        if name not in graph.nodes:
            raise _error("I2", graph, node, f"its control input '{name}' does not exist.")


def _check_op_def(graph: Graph, node: Node, functions: Collection[str]) -> None:
    if op_def(node.op) is None:
        if node.op not in functions:
            raise _error("I4", graph, node, f"its op '{node.op}' is not registered and is no function of the library.")
        return
    expected = input_types(node)
    if expected is None:
        raise _error("I4", graph, node, "an attribute that gives its arity or types is missing.")
    if len(expected) != len(node.inputs):
        raise _error("I4", graph, node, f"it has {len(node.inputs)} inputs, its OpDef wants {len(expected)}.")
    for index, (ref, want) in enumerate(zip(node.inputs, expected, strict=True)):
        found = graph.dtype_of(ref)
        if found is not None and found.base != want.base:
            raise _error("I4", graph, node, f"input {index} is {found}, its OpDef wants {want}.")
    for key in ("f", "cond", "body", "then_branch", "else_branch", "branches"):
        value = node.attr(key)
        for reference in value if isinstance(value, list) else [value]:
            if isinstance(reference, FunctionRef) and reference.name and reference.name not in functions:
                raise _error("I9", graph, node, f"it calls '{reference.name}', which is not in the library.")


def _check_device(graph: Graph, device: str) -> None:
    try:
        tf.DeviceSpec.from_string(device)
    except ValueError as error:
        node = next(node for node in graph.nodes.values() if node.device == device)
        raise _error("I11", graph, node, f"its device '{device}' does not parse.") from error


def verify_rewrite(before: Graph, after: Graph, may_touch: Collection[str] = (), may_add: Collection[str] = ()) -> None:
    """Checks a graph against the one it was made from: all of `verify`, then I6, I7, I8, I10, I12.

    Args:
        before: the graph that a pass was given.
        after: the graph that it returned.
        may_touch: names of stateful nodes that the pass declares to have dropped or added.
        may_add: names of functions that the pass declares to have added.

    Raises:
        VerifyError: an invariant is broken.
    """
    verify(after)
    _check_waits(before, after)
    for name in sorted(before.kept & after.nodes.keys()):
        old = before.output_types(name)
        new = after.output_types(name)
        if name in before.kept_for_control:
            continue
        if old is not None and new is not None and old != new[: len(old)]:
            raise VerifyError("I6", name, f"its outputs were {old} and are {new}.")
    _check_effects(before, after, may_touch)
    _check_colocation(before, after)
    _check_library(before, after, may_add)
    verify_feeds(before, after)


def _check_waits(before: Graph, after: Graph) -> None:
    """What must be preserved and is gone: TensorFlow may ask for names that it has pruned."""
    gone = (before.kept & before.nodes.keys()) - after.nodes.keys()
    if not gone:
        return
    waited_for = after.mere_waits.union(*(after.nodes[name].controls for name in after.mere_waits))
    for name in sorted(gone):
        if name not in before.mere_waits:
            raise VerifyError("I6", name, "it must be preserved, but it is gone.")
        for control in before.nodes[name].controls:
            if control in after.nodes and control not in waited_for:
                raise VerifyError("I6", name, f"it waited for '{control}', which no control output waits for any more.")


def verify_feeds(before: Graph, after: Graph) -> None:
    """Checks I12 alone, which costs nothing where nothing is fed.

    Raises:
        VerifyError: a fed tensor is bypassed.
    """
    for name in sorted(before.fed):
        if before.uses(name) and not after.uses(name):
            raise VerifyError("I12", name, "it is fed and was read, and nothing reads it any more.")


def _check_library(before: Graph, after: Graph, may_add: Collection[str]) -> None:
    if before.versions != after.versions:
        raise VerifyError("I10", "", "the versions changed.")
    if before.library is after.library:
        return
    for name in sorted(before.functions):
        if name not in after.functions or before.functions[name] != after.functions[name]:
            raise VerifyError("I10", name, "this function was changed or removed.")
    for name in sorted(after.functions.keys() - before.functions.keys()):
        if name not in may_add:
            raise VerifyError("I10", name, "this function was added and the pass does not say so.")
        try:
            nodes = function_nodes(after.functions[name], after.functions)
            verify(Graph(nodes, preserve=control_outputs(after.functions[name]), library=after.library))
        except (GraphError, VerifyError) as error:
            raise VerifyError("I10", name, f"this function was added, but it is not sound: {error}") from error
        for control in control_outputs(after.functions[name]):
            if control not in nodes:
                raise VerifyError(
                    "I10", name, f"this function was added, but its control output '{control}' is missing."
                )


def _check_effects(before: Graph, after: Graph, may_touch: Collection[str]) -> None:
    for one, other, what in ((before, after, "dropped"), (after, before, "added")):
        for name in sorted(one.nodes):
            node, counterpart = one.nodes[name], other.nodes.get(name)
            if counterpart is node or (counterpart is not None and counterpart.op == node.op):
                continue
            if is_stateful(node) and node.op not in READERS and name not in may_touch:
                raise VerifyError("I7", name, f"a stateful {node.op} was {what} and the pass does not say so.")


def _check_colocation(before: Graph, after: Graph) -> None:
    """A target that was there must still be there; inlining leaves targets that never were."""
    gone = before.nodes.keys() - after.nodes.keys()
    for node in after.nodes.values() if gone else ():
        for place in node.attr("_class", []):
            target = place.decode().removeprefix("loc:@")
            if target in gone:
                raise _error("I8", after, node, f"it is colocated with '{target}', which is gone.")


def _error(invariant: str, graph: Graph, node: Node, message: str) -> VerifyError:
    around = [graph.nodes[ref.node] for ref in node.inputs if ref.node in graph.nodes]
    around = [*around[:2], node, *[use.node for use in graph.uses(node.name)][:2]]
    lines = "\n".join("    " + print_node(n)[:200] for n in around)
    return VerifyError(invariant, node.name, f"{message}\n{lines}")

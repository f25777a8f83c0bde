"""Opens calls that XLA compiles as a whole when they look up embeddings, so that the lookups inside can be packed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from graph_passes.analysis.compiled_calls import (
    CALLS,
    MUST_COMPILE,
    OPENED,
    compiled_lookups,
    constant_seed,
    handles_tables,
)
from graph_passes.analysis.tables import variable_of
from graph_passes.analysis.xla_kernels import without_kernel
from graph_passes.compilation.call_config import config_of, for_opened, is_optimized
from graph_passes.ir import Graph, Mutation, Node, called_functions, copy_function, function_ops, reachable
from graph_passes.pipeline.base import Declined, Pass, PassContext, PassReport, PassResult

_CONDITIONALS = ("If", "StatelessIf", "Case", "StatelessCase")
_LOOPS = ("While", "StatelessWhile")
_OF_ROWS = ("GatherV2", "Where")  # what Keras 3 does to gradients of rows within conditionals
_LOWER = "_lower_using_switch_merge"
_MARKER = "picasso_opened"


@dataclass(frozen=True)
class XlaOpen(Pass):
    """A call marked `_XlaMustCompile` becomes an ordinary one when its function looks up or updates embeddings.

    With `jit_compile=True` a whole train step is one call into XLA. Nothing in it can be packed, and XLA is at its worst
    there: it copies whole tables, and its compile time grows with every lookup. The call is given a copy of the function
    without the mark. TensorFlow then optimises that copy like any other function and the plugin sees it, with everything
    that it calls inlined. A NoOp in it carries the attribute `_picasso_opened`, for `xla_close` to hand the dense part
    back to XLA. Conditionals around lookups and updates are lowered, as they are without XLA. Fused ops that only
    TensorFlow's own kernels know are switched off for this function.

    Before:
        graph {feeds = [], fetches = [call], preserve = []}
        table = _Arg() {T = resource, _handle_dtypes = [float32], _handle_shapes = [<10,4>], index = 0}
        ids = _Arg() {T = int32, index = 1}
        call = StatefulPartitionedCall(table, ids) {Tin = [resource, int32], Tout = [float32], _XlaMustCompile = true, config_proto = "R\\x00", f = @step}
        function @step() {_XlaMustCompile = true}
        handle = _Arg() {T = resource, index = 0}
        rows_of = _Arg() {T = int32, index = 1}
        rows = ResourceGather(handle, rows_of) {Tindices = int32, dtype = float32}
        out_RetVal = _Retval(rows) {T = float32, index = 0}
    After:
        graph {feeds = [], fetches = [call], preserve = []}
        table = _Arg() {T = resource, _handle_dtypes = [float32], _handle_shapes = [<10,4>], index = 0}
        ids = _Arg() {T = int32, index = 1}
        call = StatefulPartitionedCall(table, ids) {Tin = [resource, int32], Tout = [float32], _picasso_pass = "xla_open", config_proto = "R\\tR\\x07 \\x01p\\x02\\xe0\\x01\\x01", f = @step_opened}
        function @step() {_XlaMustCompile = true}
        handle = _Arg() {T = resource, index = 0}
        rows_of = _Arg() {T = int32, index = 1}
        rows = ResourceGather(handle, rows_of) {Tindices = int32, dtype = float32}
        out_RetVal = _Retval(rows) {T = float32, index = 0}
        function @step_opened(^picasso_opened)
        handle = _Arg() {T = resource, _handle_dtypes = [float32], _handle_shapes = [<10,4>], index = 0}
        rows_of = _Arg() {T = int32, index = 1}
        picasso_opened = NoOp() {_picasso_opened = true}
        rows = ResourceGather(handle, rows_of) {Tindices = int32, dtype = float32}
        out_RetVal = _Retval(rows) {T = float32, index = 0}
    """  # noqa: E501

    name: ClassVar[str] = "xla_open"

    def run(self, graph: Graph, context: PassContext) -> PassResult:
        report = PassReport(self.name)
        mutation = Mutation(graph)
        for call in compiled_lookups(graph):
            declined = _why_not(graph, call)
            if declined is None and not context.take_fuel():
                declined = Declined("out_of_fuel", call.name)
            if declined is not None:
                report.declined.append(declined)
                continue
            report.functions += _open(graph, mutation, call)
            report.rewritten.append(call.name)
        return PassResult(mutation.apply() if report.rewritten else graph, report)


def _why_not(graph: Graph, call: Node) -> Declined | None:
    """The reason to leave a call to XLA, or None."""
    config = config_of(call)
    if config is None or not is_optimized(config):
        return Declined("not_optimized", call.name)
    for name in reachable(graph.functions, call.attr("f").name):
        if (random := constant_seed(graph, name)) is not None:
            return Declined("constant_seed", call.name, f"'{random.name}' draws random numbers from a constant seed.")
        for node in function_ops(graph.functions[name]):
            if without_kernel(node, graph.functions):
                return Declined("only_compiled", call.name, f"'{node.name}' is a {node.op}, which only XLA can run.")
    return None


def _open(graph: Graph, mutation: Mutation, call: Node) -> list[str]:
    """Stages one opened call; returns the names of the functions that it takes."""
    root = call.attr("f").name
    names = reachable(graph.functions, root)
    renames = {name: mutation.unique_function_name(f"{name}_opened") for name in names}
    for name in names:
        function = graph.functions[name]
        changes = {node.name: attrs for node in function_ops(function) if (attrs := _node_attrs(graph, node))}
        if name == root:
            marker = Node(_MARKER, "NoOp", attrs={OPENED: True})
            handles = _handles(graph, call)
            copied = copy_function(function, renames[name], renames, changes, (MUST_COMPILE,), handles, [marker])
        else:  # a nested function is one part of the opened one, also where it was to be compiled by itself
            copied = copy_function(function, renames[name], renames, changes, (MUST_COMPILE, "_noinline"))
        mutation.add_function(copied)
    config = config_of(call)
    assert config is not None, "a call without a config is declined"
    attrs = {key: value for key, value in call.stored_attrs().items() if key != MUST_COMPILE}
    attrs["f"] = call.attr("f")._replace(name=renames[root])
    attrs |= {"config_proto": for_opened(config), "_picasso_pass": XlaOpen.name}
    mutation.replace(call.replace(attrs=attrs))
    return list(renames.values())


def _handles(graph: Graph, call: Node) -> dict[int, dict[str, Any]]:
    """What is known of the variables behind the handles that a call is given, in the form that an `_Arg` states it."""
    found = {}
    for index, ref in enumerate(call.inputs):
        if graph.dtype_of(ref) == "resource":
            variable = variable_of(graph, ref)
            if variable is not None:
                shape, dtype = variable
                found[index] = {"_handle_shapes": [shape], "_handle_dtypes": [dtype]}
    return found


def _node_attrs(graph: Graph, node: Node) -> Mapping[str, Any]:
    """What a node of an opened function gets (None: loses)."""
    if node.op in CALLS:
        return {MUST_COMPILE: None} if node.attr(MUST_COMPILE) else {}
    if node.op not in _CONDITIONALS and node.op not in _LOOPS:
        return {}
    for called in called_functions(node):
        if handles_tables(graph, called) or (node.op in _CONDITIONALS and _handles_rows(graph, called)):
            return {_LOWER: True}
    return {}


def _handles_rows(graph: Graph, function: str) -> bool:
    names = reachable(graph.functions, function)
    return any(node.op in _OF_ROWS for name in names for node in function_ops(graph.functions[name]))

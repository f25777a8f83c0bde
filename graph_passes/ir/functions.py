"""Functions of a graph's library: shown as nodes, made from nodes, copied with changes. None is ever changed in place.

Inside a FunctionDef an input is written `node:output:number`, in a graph `node:port`. Here a function has the form of a
graph: its arguments are `_Arg` nodes, its results `_Retval` nodes named after the result plus `_RetVal`, as TensorFlow
names them when it runs the function.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from tensorflow.core.framework import function_pb2

from graph_passes.errors import GraphError
from graph_passes.ir import attrs as attrs_lib
from graph_passes.ir.node import Node
from graph_passes.ir.op_defs import is_stateful, op_def, output_layout
from graph_passes.ir.types import DType, FunctionRef, TensorRef

Functions = Mapping[str, function_pb2.FunctionDef]
_RETVAL = "_RetVal"


def called_functions(node: Node) -> list[str]:
    """Names of the functions that a node refers to by attribute, in the order of its attributes."""
    found = []
    for key in node.attr_names():
        value = node.attr(key)
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, FunctionRef) and item.name:
                found.append(item.name)
    return found


def function_ops(function: function_pb2.FunctionDef) -> Iterator[Node]:
    """The nodes of a function with their ops and attributes; their inputs are not resolved, see `function_nodes`."""
    for proto in function.node_def:
        yield Node.from_proto(proto)


def reachable(functions: Functions, root: str) -> list[str]:
    """Names of `root` and of all functions that it calls, directly or not; each comes after one that calls it."""
    found: dict[str, None] = {}
    waiting = [root]
    while waiting:
        name = waiting.pop()
        if name in found or name not in functions:
            continue
        found[name] = None
        for node in function_ops(functions[name]):
            waiting += [*called_functions(node), node.op]
    return list(found)


def function_nodes(function: function_pb2.FunctionDef, functions: Functions) -> dict[str, Node]:
    """The body of a function in the form of a graph.

    Raises:
        GraphError: an input or a type depends on how the function is called, or an op is unknown.
    """
    nodes: dict[str, Node] = {}
    for index, arg in enumerate(function.signature.input_arg):
        if not arg.type:
            raise GraphError(f"The type of argument '{arg.name}' depends on the call.")
        more = function.arg_attr[index].attr if index in function.arg_attr else {}
        attrs = {"T": DType.from_enum(arg.type), "index": index, **{key: more[key] for key in more}}
        nodes[arg.name] = Node(arg.name, "_Arg", attrs=attrs)
    protos = {proto.name: proto for proto in function.node_def}
    layouts = {name: output_layout(Node.from_proto(proto), functions) for name, proto in protos.items()}

    def resolve(text: str) -> TensorRef:
        name, *rest = text.split(":")
        if name in protos and len(rest) == 2:
            layout = layouts[name]
            if layout is None:
                raise GraphError(f"The outputs of '{name}' are not known.")
            port = 0
            for output, count in layout:
                if output == rest[0]:
                    return TensorRef(name, port + int(rest[1]))
                port += count
        elif name in nodes:
            return TensorRef(name)
        raise GraphError(f"Input '{text}' names nothing in function '{function.signature.name}'.")

    for name, proto in protos.items():
        if any(value.placeholder for value in proto.attr.values()):
            raise GraphError(f"An attribute of '{name}' depends on the call.")
        if name in nodes:
            raise GraphError(f"Two nodes of function '{function.signature.name}' are named '{name}'.")
    arguments = dict(nodes)
    for name, proto in protos.items():
        data = [resolve(text) for text in proto.input if not text.startswith("^")]
        controls = [text[1:] for text in proto.input if text.startswith("^")]
        nodes[name] = Node(name, proto.op, data, controls, proto.device, {key: proto.attr[key] for key in proto.attr})
    for index, result in enumerate(function.signature.output_arg):
        name = result.name + _RETVAL
        if name in nodes or name in arguments:
            raise GraphError(f"Two nodes of function '{function.signature.name}' are named '{name}'.")
        attrs = {"T": DType.from_enum(result.type), "index": index}
        nodes[name] = Node(name, "_Retval", [resolve(function.ret[result.name])], attrs=attrs)
    return nodes


def control_outputs(function: function_pb2.FunctionDef) -> list[str]:
    """Names of the nodes that a call of the function waits for, beside what its results need; sorted."""
    return sorted(function.control_ret.values())


def make_function(
    name: str,
    nodes: Iterable[Node],
    functions: Functions,
    attrs: Mapping[str, Any],
    controls: Collection[str] = (),
    named_by_content: bool = False,
) -> function_pb2.FunctionDef:
    """A function from nodes in the form of a graph (see `function_nodes`); its nodes have no device.

    Args:
        name: of the function.
        nodes: its body, with `_Arg` and `_Retval` nodes.
        functions: the library that its nodes may call.
        attrs: attributes of the function.
        controls: names of nodes that a call waits for, beside what the results need.
        named_by_content: put a fingerprint of the function, and of all that it calls, behind `name`.

    Raises:
        GraphError: an input or an output has no counterpart in a FunctionDef.
    """
    by_name = {node.name: node for node in nodes}
    layouts = {node.name: output_layout(node, functions) for node in by_name.values()}
    function = function_pb2.FunctionDef()
    function.signature.name = name

    def written(ref: TensorRef) -> str:
        if ref.node not in by_name:
            raise GraphError(f"Input '{ref}' names nothing in function '{name}'.")
        if by_name[ref.node].op == "_Arg":
            return ref.node
        port = ref.port
        for output, count in layouts[ref.node] or ():
            if port < count:
                return f"{ref.node}:{output}:{port}"
            port -= count
        raise GraphError(f"'{ref.node}' has no output {ref.port}.")

    arguments = sorted((n for n in by_name.values() if n.op == "_Arg"), key=lambda node: node.attr("index"))
    for index, node in enumerate(arguments):
        function.signature.input_arg.add(name=node.name, type=node.attr("T").enum)
        for key in node.attr_names():
            if key.startswith("_"):
                function.arg_attr[index].attr[key].CopyFrom(attrs_lib.to_proto(node.attr(key)))
    for node in sorted((n for n in by_name.values() if n.op == "_Retval"), key=lambda node: node.attr("index")):
        result = node.name.removesuffix(_RETVAL)
        function.signature.output_arg.add(name=result, type=node.attr("T").enum)
        function.ret[result] = written(node.inputs[0])
    for node in by_name.values():
        if node.op in ("_Arg", "_Retval"):
            continue
        proto = function.node_def.add()
        proto.CopyFrom(node.to_proto())
        proto.device = ""
        del proto.input[:]
        proto.input.extend([written(ref) for ref in node.inputs] + ["^" + control for control in node.controls])
        function.signature.is_stateful |= is_stateful(node)
    for control in sorted(controls):
        function.control_ret[control] = control
        function.signature.control_output.append(control)
    for key in sorted(attrs):
        function.attr[key].CopyFrom(attrs_lib.to_proto(attrs[key]))
    if named_by_content:
        function.signature.name = name + _fingerprint(function, functions)
    return function


def _fingerprint(function: function_pb2.FunctionDef, functions: Functions) -> str:
    digest = hashlib.sha256(function.SerializeToString(deterministic=True))
    for node in function_ops(function):
        for called in called_functions(node):
            for name in reachable(functions, called):
                digest.update(functions[name].SerializeToString(deterministic=True))
    return digest.hexdigest()[:24]


def copy_function(
    function: function_pb2.FunctionDef,
    name: str,
    renames: Mapping[str, str],
    node_attrs: Mapping[str, Mapping[str, Any]],
    drop_attrs: Collection[str] = (),
    arg_attrs: Mapping[int, Mapping[str, Any]] | None = None,
    effects: Iterable[Node] = (),
) -> function_pb2.FunctionDef:
    """A copy under another name, with other attributes on its nodes and calls of other functions.

    Args:
        function: what to copy.
        name: of the copy.
        renames: new names of functions that it calls.
        node_attrs: attributes to set, by node; None takes one away.
        drop_attrs: attributes of the function that the copy does not get.
        arg_attrs: attributes to set on arguments, by number.
        effects: nodes without inputs to add, for which a call waits.
    """
    copy = function_pb2.FunctionDef()
    copy.CopyFrom(function)
    copy.signature.name = name
    for key in drop_attrs:
        copy.attr.pop(key, None)
    for node in copy.node_def:
        for key, value in node_attrs.get(node.name, {}).items():
            if value is None:
                node.attr.pop(key, None)
            else:
                node.attr[key].CopyFrom(attrs_lib.to_proto(value))
        node.op = renames.get(node.op, node.op) if op_def(node.op) is None else node.op
        for value in node.attr.values():
            for called in [value.func] if value.HasField("func") else value.list.func:
                called.name = renames.get(called.name, called.name)
    for index, more in (arg_attrs or {}).items():
        for key, value in more.items():
            copy.arg_attr[index].attr[key].CopyFrom(attrs_lib.to_proto(value))
    for effect in effects:
        copy.node_def.append(effect.to_proto())
        copy.control_ret[effect.name] = effect.name
        copy.signature.control_output.append(effect.name)
    return copy

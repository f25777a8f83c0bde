"""The graph that TensorFlow would hand to the plugin for a function, without running the function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import function_pb2, graph_pb2
from tensorflow.core.protobuf import config_pb2, meta_graph_pb2, rewriter_config_pb2
from tensorflow.python.grappler import tf_optimizer

from graph_passes.analysis.compiled_calls import CALLS
from graph_passes.errors import ConfigError
from graph_passes.ir import UNKNOWN_SHAPE, DType, Graph, Node, Shape, control_outputs, function_nodes
from graph_passes.ir.annotations import placeholders_to_args
from graph_passes.ir.attrs import shape_from_proto
from picasso_tf.bridge import callback


def function_graph(function_or_model: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Graph:
    """Traces a function or a model, lets TensorFlow's own optimizers inline and simplify it, and infers shapes.

    Args:
        function_or_model: see `picasso_tf.explain`.
        args: positional arguments or TensorSpecs.
        kwargs: keyword arguments or TensorSpecs.

    Raises:
        ConfigError: it is neither a function nor a compiled model.
    """
    concrete = _concrete(function_or_model, args, kwargs)
    body = concrete.graph
    fetches = [tensor.name for tensor in body.outputs]
    effects = [op.name for op in body.control_outputs]
    graph_def = _inlined(body, fetches + effects)
    handles = {inner.op.name: _variable_of(outer) for outer, inner in body.captures if inner.dtype == tf.resource}
    graph_def = placeholders_to_args(graph_def, handles)
    annotated = callback.annotate_shapes(graph_def.SerializeToString(), (), tuple(fetches))
    return Graph.from_graph_def(graph_pb2.GraphDef.FromString(annotated), fetches, preserve=effects)


def opened_graphs(graph: Graph) -> list[Graph]:
    """The graphs that TensorFlow would hand to the plugin next, for the calls that `xla_open` opened in `graph`."""
    calls = [call for call in graph.of(*CALLS) if call.attr("_picasso_pass")]
    return [_opened_graph(graph, graph.functions[call.attr("f").name]) for call in calls]


def _opened_graph(graph: Graph, function: function_pb2.FunctionDef) -> Graph:
    nodes, handles, fetches = {}, {}, []
    for node in function_nodes(function, graph.functions).values():
        if node.op == "_Retval":
            fetches.append(str(node.inputs[0]))
            continue
        if node.op == "_Arg":
            shapes, dtypes = node.attr("_handle_shapes"), node.attr("_handle_dtypes")
            if shapes and dtypes:
                handles[node.name] = (shapes[0], dtypes[0])
            shape = (node.attr("_output_shapes") or [UNKNOWN_SHAPE])[0]
            node = Node(node.name, "Placeholder", attrs={"dtype": node.attr("T"), "shape": shape})
        nodes[node.name] = node
    effects = control_outputs(function)
    inputs = [node.name for node in nodes.values() if node.op == "Placeholder"]
    graph_def = Graph(nodes, library=graph.library, versions=graph.versions).to_graph_def()
    graph_def = placeholders_to_args(_simplified(graph_def, [*inputs, *fetches, *effects]), handles)
    annotated = callback.annotate_shapes(graph_def.SerializeToString(), (), tuple(fetches))
    return Graph.from_graph_def(graph_pb2.GraphDef.FromString(annotated), fetches, preserve=effects)


def _concrete(target: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if hasattr(target, "captured_inputs") and hasattr(target, "graph"):
        return target
    if hasattr(target, "get_concrete_function"):
        return target.get_concrete_function(*args, **kwargs)
    if hasattr(target, "train_step") and hasattr(target, "predict_step"):
        if kwargs:
            raise ConfigError(f"`explain` takes no keyword arguments for a model. Received: {', '.join(kwargs)}.")
        return _model_step(target, args)
    if not callable(target):
        raise ConfigError(f"`explain` takes a function or a Keras model. Received: {type(target).__name__}.")
    return tf.function(target).get_concrete_function(*args, **kwargs)


def _model_step(model: Any, args: Sequence[Any]) -> Any:
    if not 1 <= len(args) <= 3:
        raise ConfigError(
            "A model is explained by `explain(model, x)`, or `explain(model, x, y)` with sample weights as a third "
            f"argument if there are any. Received: {len(args)} arguments."
        )
    data = tf.nest.map_structure(_as_tensor, tuple(args))
    jit = bool(getattr(model, "jit_compile", None) or getattr(model, "_jit_compile", None))
    if len(args) == 1:
        return _traced(lambda x: model(x, training=False), data, jit)
    if getattr(model, "optimizer", None) is None:
        raise ConfigError("`explain(model, x, y)` looks at a training step: compile the model first.")
    if hasattr(model, "_symbolic_build"):  # Keras 3 makes metrics and optimizer slots before it traces
        model._symbolic_build(data_batch=data)
    return _traced(lambda *batch: model.train_step(batch), data, jit)


def _traced(step: Callable[..., Any], data: Sequence[Any], jit: bool) -> Any:
    """A concrete function of `step`; with `jit` one that calls it as Keras does, compiled by XLA as a whole."""
    if jit:
        compiled = tf.function(step, jit_compile=True)
        return tf.function(lambda *batch: compiled(*batch)).get_concrete_function(*data)
    return tf.function(step).get_concrete_function(*data)


def _as_tensor(value: Any) -> Any:
    return value if isinstance(value, tf.TensorSpec) else tf.convert_to_tensor(value)


def _inlined(body: tf.Graph, fetches: Sequence[str]) -> graph_pb2.GraphDef:
    return _simplified(body.as_graph_def(), [tensor.name for tensor in body.inputs] + list(fetches))


def _simplified(graph_def: graph_pb2.GraphDef, names: Sequence[str]) -> graph_pb2.GraphDef:
    """What TensorFlow's own optimizers make of a graph of which `names` must stay."""
    meta_graph = meta_graph_pb2.MetaGraphDef()
    meta_graph.graph_def.CopyFrom(graph_def)
    meta_graph.collection_def["train_op"].node_list.value.extend(names)
    config = config_pb2.ConfigProto()
    options = config.graph_options.rewrite_options
    options.min_graph_nodes = -1
    options.use_plugin_optimizers = rewriter_config_pb2.RewriterConfig.OFF
    return tf_optimizer.OptimizeGraph(config, meta_graph)


def _variable_of(handle: Any) -> tuple[Shape, DType]:
    """Static shape and dtype of the variable behind a captured handle."""
    data = getattr(handle, "_handle_data", None)
    if data is None or not data.is_set or not data.shape_and_type:
        return Shape(None), DType("float32")
    variable = data.shape_and_type[0]
    return shape_from_proto(variable.shape), DType.from_enum(variable.dtype)

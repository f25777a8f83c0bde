"""How TensorFlow is to optimise the function of one call: the `config_proto` that the call carries."""

from __future__ import annotations

from google.protobuf.message import DecodeError
from tensorflow.core.protobuf import config_pb2, rewriter_config_pb2

from graph_passes.ir import Node

_ON, _OFF = rewriter_config_pb2.RewriterConfig.ON, rewriter_config_pb2.RewriterConfig.OFF


def config_of(call: Node) -> config_pb2.ConfigProto | None:
    """The config of a call; None when it has none that can be read."""
    data = call.attr("config_proto", b"")
    try:
        return config_pb2.ConfigProto.FromString(data) if data else None
    except DecodeError:
        return None


def is_optimized(config: config_pb2.ConfigProto) -> bool:
    """Whether TensorFlow optimises the function, with a second round, in which plugins rewrite."""
    options = config.graph_options.rewrite_options
    rounds = options.meta_optimizer_iterations
    return not options.disable_meta_optimizer and rounds != rewriter_config_pb2.RewriterConfig.ONE


def for_opened(config: config_pb2.ConfigProto) -> bytes:
    """The config for a function that XLA gets a part of.

    The plugin is on. Off is what brings ops in that XLA has no kernels for: fused products of matrices (remapping) and
    sums in temporary variables (memory optimization).
    """
    options = config.graph_options.rewrite_options
    options.use_plugin_optimizers = _ON
    options.remapping = _OFF
    options.memory_optimization = rewriter_config_pb2.RewriterConfig.NO_MEM_OPT
    return config.SerializeToString(deterministic=True)

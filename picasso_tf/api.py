"""The public functions: switch the plugin on and off, see what it did, rewrite a graph by hand."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import graph_pb2

from graph_passes.errors import ConfigError
from picasso_tf.bridge import callback
from picasso_tf.config import Config, make_config
from picasso_tf.report import Report
from picasso_tf.rewriter import Rewriter
from picasso_tf.tracing import function_graph, opened_graphs

_OPTION = "use_plugin_optimizers"
_LOCK = threading.Lock()


class _State:
    """The one rewriter of the process: TensorFlow knows one plugin."""

    rewriter: Rewriter | None = None
    enabled = False


def enable(config: Config | None = None, **options: Any) -> None:
    """Rewrites every graph that TensorFlow runs from now on, functions that were traced before included.

    The switch itself is TensorFlow's: after this call
    `tf.config.optimizer.set_experimental_options({"use_plugin_optimizers": False})` turns everything off at once, and
    `True` turns it on again.

    Args:
        config: all options at once; default: what the environment says (see `picasso_tf.config`).
        **options: single options, which win over `config`: `dump_dir`, `passes`, `max_group_size`, `max_rewrites`,
            `verify`, `reproducer_dir`.

    Raises:
        ConfigError: an option is unknown, has a wrong value, or names a folder that cannot be written.

    Example:
        >>> import picasso_tf
        >>> picasso_tf.enable(dump_dir="graphs")
        >>> model.fit(...)
        >>> print(picasso_tf.report())
    """
    rewriter = Rewriter(make_config(config, options))
    with _LOCK:
        callback.install(rewriter)
        _State.rewriter = rewriter
        _State.enabled = True
        tf.config.optimizer.set_experimental_options({_OPTION: True})


def disable() -> None:
    """Turns the plugin off: every function runs its own, unmodified graph from its next call on. Reports stay readable.

    A second call changes nothing.

    Raises:
        ConfigError: `enable` was never called.
    """
    with _LOCK:
        if _State.rewriter is None:
            raise ConfigError("picasso_tf.disable() was called, but picasso_tf is not enabled: call enable() first.")
        tf.config.optimizer.set_experimental_options({_OPTION: False})
        callback.uninstall()
        _State.enabled = False


def is_enabled() -> bool:
    """Whether `enable` was called, `disable` was not, and TensorFlow's option `use_plugin_optimizers` is on."""
    return _State.enabled and bool(tf.config.optimizer.get_experimental_options().get(_OPTION))


def report() -> Report:
    """What was done to the graphs since the last `enable`; empty before the first one."""
    rewriter = _State.rewriter
    return Report([]) if rewriter is None else rewriter.report()


def explain(function_or_model: Any, *args: Any, config: Config | None = None, **kwargs: Any) -> Report:
    """What picasso-tf does, or would do, with a function or a Keras model. Nothing is run and no variable changes.

    Args:
        function_or_model: a tf.function, a plain function of tensors, a concrete function, or a Keras model.
            `explain(model, x)` looks at the forward pass, `explain(model, x, y)` at a training step of a compiled
            model; arrays or TensorSpecs will do.
        *args: arguments (or TensorSpecs) for the function.
        config: options; default: the environment's.
        **kwargs: keyword arguments for the function.

    Returns:
        A report with one graph. `print(report.details())` lists every lookup, packed or declined with its reason.

    Raises:
        ConfigError: the model is not compiled but a training step was asked for, or the first argument is no function.
    """
    graph = function_graph(function_or_model, args, kwargs)
    rewriter = Rewriter(make_config(config, {}))
    opened = opened_graphs(rewriter.run(graph, always_report=True).after)
    if opened:  # the graph around a compiled step is not what was asked about
        rewriter = Rewriter(make_config(config, {}))
    for body in opened:
        rewriter.run(body, always_report=True)
    return rewriter.report()


def optimize_graph(
    graph_def: graph_pb2.GraphDef,
    fetches: Sequence[str],
    feeds: Sequence[str] = (),
    config: Config | None = None,
) -> graph_pb2.GraphDef:
    """The rewritten form of a graph, without running it and without TensorFlow's own optimizers.

    Args:
        graph_def: the graph; it is not changed.
        fetches: names of the tensors or nodes that are read.
        feeds: names of the tensors that are fed.
        config: options; default: the environment's.

    Returns:
        A new GraphDef. Fetches and feeds keep their names.

    Raises:
        GraphError: a fetch or a feed names no node, or two nodes share a name.
        ConfigError: an option is wrong.
    """
    return Rewriter(make_config(config, {})).run_graph_def(graph_def, fetches, feeds)

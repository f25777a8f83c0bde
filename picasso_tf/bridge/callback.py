"""Hands every graph that TensorFlow optimises to one Python function, and shields TensorFlow from its failures."""

import atexit
import ctypes
import functools
import logging
import os
import signal
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass

from graph_passes.errors import ConfigError, GraphError
from picasso_tf.bridge import library

_LOG = logging.getLogger("picasso_tf")
_CLOSE_TIMEOUT_MS = 10_000  # how long the end of the interpreter waits for graphs that are being rewritten


@dataclass(frozen=True)
class GraphRequest:
    """One graph that TensorFlow is about to run.

    Args:
        graph: a serialised GraphDef; its nodes carry inferred `_output_shapes`, which TensorFlow never gets to see.
        id: what TensorFlow calls the graph: the function's name, or "tf_graph" in a Session.
        device_type: "CPU" or "GPU", the registration that the call came through; the graph is always the whole graph.
        feeds: tensors or nodes that are fed.
        fetches: tensors or nodes that are fetched.
        preserve: nodes that must keep their name and outputs, in order; holds the feeds and fetches too.
        allow_pruning: whether stateful and dataset nodes that nothing uses may go.
        allow_non_differentiable: False when TensorFlow takes a gradient of this graph later, so that only ops with a
            gradient may come in.
    """

    graph: bytes
    id: str
    device_type: str
    feeds: tuple[str, ...]
    fetches: tuple[str, ...]
    preserve: tuple[str, ...]
    allow_pruning: bool = True
    allow_non_differentiable: bool = True


Optimize = Callable[[GraphRequest], bytes | None]


class _ThreadState(threading.local):
    """What one thread remembers between its calls."""

    is_inside = False
    last_failure: tuple[object, ...] | None = None


class _Bridge:
    """Holds the function that rewrites graphs. One per process, as the plugin is."""

    def __init__(self, lib: ctypes.CDLL):
        self._lib = lib
        self._thread = _ThreadState()
        self.optimize: Optimize | None = None
        self.callback = library.Callback(self._call)  # kept for good: TensorFlow may hold it at any time

    def _call(self, request: "ctypes._Pointer[library.Request]", sink: int) -> int:
        """Runs on whichever thread TensorFlow optimises on. Nothing may be raised from here: C++ is the caller."""
        optimize = self.optimize
        if optimize is None or self._thread.is_inside:
            return library.UNCHANGED  # a pass that runs TensorFlow itself must not be asked about its own graphs
        self._thread.is_inside = True
        graph_id = "?"
        try:
            if request.contents.graph is None:
                _warn_of_size(request.contents)
                return library.UNCHANGED
            graph_request = _read(request.contents)
            graph_id = graph_request.id
            result = optimize(graph_request)
            if result is None:
                return library.UNCHANGED
            self._lib.picasso_emit(sink, result, len(result))
            return library.CHANGED
        except Exception as error:
            self._warn(graph_id, error)
            return library.FAILED
        except BaseException as error:  # it cannot travel through C++, but what caused it can be repeated afterwards
            self._warn(graph_id, error)
            return library.FAILED if (number := _signal_behind(error)) is None else library.SIGNAL + number
        finally:
            self._thread.is_inside = False

    def _warn(self, graph_id: str, error: BaseException) -> None:
        """Logs a failure, but not the one that the call for another device type repeats for the same graph."""
        frames = traceback.extract_tb(error.__traceback__)
        place = (frames[-1].filename, frames[-1].lineno) if frames else None
        failure = (graph_id, type(error), place)
        if failure == self._thread.last_failure:
            return
        self._thread.last_failure = failure
        _LOG.warning("Graph '%s' runs as it was (%s: %s).", graph_id, type(error).__name__, error)
        _LOG.debug("The failure in full:", exc_info=error)


def install(optimize: Optimize) -> None:
    """Has `optimize` called for every graph that TensorFlow runs, unless its option `use_plugin_optimizers` is False.

    The plugin is registered with TensorFlow on the first call and stays registered; later calls replace `optimize`.
    Graphs that hold nothing of interest are sorted out before Python is entered. When the interpreter ends, calls that
    are running are waited for and no new one comes in.

    Args:
        optimize: gets a `GraphRequest`, returns a serialised GraphDef, or None to leave the graph as it is. It may be
            called from several threads at once. Whatever it raises is logged as one warning, and the graph runs as it
            was. Graphs that it runs itself do not come back to it.

    Raises:
        BuildError: the library has not been built.
        ConfigError: another plugin holds the place that TensorFlow gives to one plugin only.
        UnsupportedTensorFlowError: the library does not fit the installed TensorFlow.
    """
    _bridge().optimize = optimize


def uninstall() -> None:
    """Ends what `install` began; calls that are running still end. Without an `install` it does nothing."""
    if _bridge_once.cache_info().currsize:
        _bridge().optimize = None


def annotate_shapes(graph: bytes, feeds: tuple[str, ...], fetches: tuple[str, ...]) -> bytes:
    """Infers shapes as the plugin does, for a graph that does not come from TensorFlow's optimizer.

    Args:
        graph: a serialised GraphDef.
        feeds: names of the tensors that will be fed; their shapes are not trusted.
        fetches: names of the tensors that will be fetched.

    Returns:
        The graph with `_output_shapes` on its nodes, or as it came when TensorFlow cannot infer shapes for it.

    Raises:
        GraphError: `graph` is not a serialised GraphDef.
    """
    lib = library.lib()
    sink = lib.picasso_new_sink()
    try:
        result = lib.picasso_annotate_shapes(graph, len(graph), _join(feeds), _join(fetches), sink)
        if result == library.FAILED:
            raise GraphError(f"The graph of {len(graph)} bytes is not a serialised GraphDef.")
        if result == library.UNCHANGED:
            return graph
        return ctypes.string_at(lib.picasso_sink_data(sink), lib.picasso_sink_size(sink))
    finally:
        lib.picasso_free_sink(sink)


_INSTALL_LOCK = threading.Lock()


def _bridge() -> _Bridge:
    with _INSTALL_LOCK:  # the cache alone would let two threads register at once
        return _bridge_once()


@functools.cache
def _bridge_once() -> _Bridge:
    lib = library.lib()
    if lib.picasso_register() != 0:
        raise ConfigError(
            "Another TensorFlow plugin optimizes graphs on the CPU or GPU already, and TensorFlow takes one plugin per "
            "device type: uninstall that plugin, or enable picasso-tf before it is loaded."
        )
    bridge = _Bridge(lib)
    lib.picasso_set_callback(bridge.callback)
    os.register_at_fork(after_in_child=lib.picasso_after_fork)
    atexit.register(lib.picasso_close, _CLOSE_TIMEOUT_MS)
    return bridge


def _signal_behind(error: BaseException) -> int | None:
    """The signal that led to an exception that ends programs, as far as one can tell."""
    if threading.current_thread() is not threading.main_thread():
        return None  # Python handles signals on its main thread only
    if isinstance(error, KeyboardInterrupt):
        return signal.SIGINT
    return signal.SIGTERM if isinstance(error, SystemExit) and callable(signal.getsignal(signal.SIGTERM)) else None


@functools.cache
def _warn_once_of_size(graph_id: str, size: int) -> None:
    _LOG.warning(
        "Graph '%s' runs as it was: its %d bytes are more than a protobuf message holds; large constants belong in "
        "variables.",
        graph_id,
        size,
    )


def _warn_of_size(request: library.Request) -> None:
    _warn_once_of_size(request.id.decode(errors="replace"), request.graph_size)


def _read(request: library.Request) -> GraphRequest:
    return GraphRequest(
        graph=ctypes.string_at(request.graph, request.graph_size),
        id=request.id.decode(errors="replace"),
        device_type=request.device_type.decode(),
        feeds=_split(request.feeds),
        fetches=_split(request.fetches),
        preserve=_split(request.preserve),
        allow_pruning=bool(request.allow_pruning),
        allow_non_differentiable=bool(request.allow_non_differentiable),
    )


def _split(names: bytes) -> tuple[str, ...]:
    return tuple(names.decode().split("\n")) if names else ()


def _join(names: tuple[str, ...]) -> bytes:
    return "\n".join(names).encode()

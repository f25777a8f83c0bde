"""Fixtures for the tests of the bridge."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import tensorflow as tf
from tensorflow.core.framework import graph_pb2

from picasso_tf.bridge import callback

ROOT = Path(__file__).resolve().parents[2]


class Plugin:
    """The plugin with a Python function of the test's choice, and what it was called with."""

    def __init__(self) -> None:
        self.requests: list[callback.GraphRequest] = []
        self.answer: Callable[[callback.GraphRequest], bytes | None] = lambda request: None

    def optimize(self, request: callback.GraphRequest) -> bytes | None:
        self.requests.append(request)
        return self.answer(request)

    def switch(self, on: bool) -> None:
        tf.config.optimizer.set_experimental_options({"use_plugin_optimizers": on})

    def graphs(self) -> list[graph_pb2.GraphDef]:
        return [graph_pb2.GraphDef.FromString(request.graph) for request in self.requests]

    def ops(self) -> set[str]:
        return {node.op for graph in self.graphs() for node in graph.node}


@pytest.fixture
def plugin() -> Iterator[Plugin]:
    """The installed plugin, switched on; afterwards everything is as it was before."""
    plugin = Plugin()
    callback.install(plugin.optimize)
    plugin.switch(True)
    yield plugin
    plugin.switch(False)
    callback.uninstall()


@pytest.fixture
def run_script(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess]:
    """Runs Python source, given in parts, in a process of its own: for what may crash or must end an interpreter."""

    def run(*parts: str) -> subprocess.CompletedProcess:
        script = tmp_path / "script.py"
        script.write_text("".join(textwrap.dedent(part) for part in parts))
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "1"}
        return subprocess.run(
            [sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=120
        )

    return run


def replace_constant(request: callback.GraphRequest, old: float, new: float) -> bytes:
    """A visible rewrite: every scalar constant `old` becomes `new`."""
    graph = graph_pb2.GraphDef.FromString(request.graph)
    for node in graph.node:
        is_float = node.op == "Const" and node.attr["dtype"].type == tf.float32.as_datatype_enum
        if is_float and (tf.make_ndarray(node.attr["value"].tensor) == old).all():
            node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(new, tf.float32, []))
    return graph.SerializeToString()

"""A failure on disk: the graph before the pass, the pipeline, the versions, and the command that replays it."""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Mapping
from pathlib import Path

from google.protobuf.message import DecodeError
from tensorflow.core.framework import graph_pb2

from graph_passes.errors import ConfigError, GraphError
from graph_passes.ir import Graph, print_graph, print_node
from graph_passes.pipeline.base import Pass
from graph_passes.pipeline.manager import Instrument, PassManager, PipelineRun
from graph_passes.pipeline.text import parse_pipeline, print_pipeline

log = logging.getLogger("picasso_tf")
_FACTS, _GRAPH = "reproducer.json", "graph.pb"


class Reproduce(Instrument):
    """Writes a reproducer when a pass fails.

    Args:
        folder: where to put it; a new folder below it is made for each failure.
        by_name: the registry of passes.
        versions: name and version of what took part, for the reader.
    """

    def __init__(self, folder: Path, by_name: Mapping[str, type[Pass]], versions: Mapping[str, str]):
        self._folder = folder
        self._by_name = by_name
        self._versions = versions

    def failed(self, item: Pass, graph: Graph, error: Exception) -> str | None:
        try:
            return str(self._write(item, graph, error))
        except OSError as problem:
            log.warning("No reproducer could be written to '%s': %s.", self._folder, problem)
            return None

    def _write(self, item: Pass, graph: Graph, error: Exception) -> Path:
        path = _new_folder(self._folder, item.name)
        (path / _GRAPH).write_bytes(graph.to_graph_def().SerializeToString(deterministic=True))
        (path / "graph.txt").write_text(_text(graph))
        facts = {
            "pass": item.name,
            "pipeline": print_pipeline([item], self._by_name),
            "error": f"{type(error).__name__}: {error}",
            "traceback": traceback.format_exception(error),
            "feeds": graph.feeds,
            "fetches": graph.fetches,
            "preserve": graph.preserve,
            "versions": dict(self._versions),
            "replay": f"picasso-tf replay {path}",
        }
        (path / _FACTS).write_text(json.dumps(facts, indent=1) + "\n")
        return path


def _text(graph: Graph) -> str:
    try:
        return print_graph(graph)
    except GraphError as error:  # a cycle may be the very failure, and has no topological order to print
        return f"# {error}\n" + "".join(print_node(graph.nodes[name]) + "\n" for name in sorted(graph.nodes))


def _new_folder(parent: Path, name: str) -> Path:
    parent.mkdir(parents=True, exist_ok=True)
    count = 0
    while True:  # another process may take a name at the same time
        path = parent / f"{name}-{count:03d}"
        try:
            path.mkdir()
        except FileExistsError:
            count += 1
        else:
            return path


def load(folder: Path, by_name: Mapping[str, type[Pass]]) -> tuple[Graph, list[Pass]]:
    """The graph and the pipeline of a reproducer.

    Raises:
        ConfigError: the folder is no reproducer.
    """
    try:
        facts = json.loads((folder / _FACTS).read_text())
        graph_def = graph_pb2.GraphDef.FromString((folder / _GRAPH).read_bytes())
        fetches, feeds, preserve, pipeline = (facts[key] for key in ("fetches", "feeds", "preserve", "pipeline"))
    except (OSError, ValueError, DecodeError) as error:
        raise ConfigError(f"'{folder}' is not a reproducer: {error}.") from error
    except (KeyError, TypeError) as error:
        raise ConfigError(f"'{folder}' is not a reproducer: '{_FACTS}' lacks {error}.") from error
    return Graph.from_graph_def(graph_def, fetches, feeds, preserve), parse_pipeline(pipeline, by_name)


def replay(folder: Path, by_name: Mapping[str, type[Pass]]) -> PipelineRun:
    """Runs a reproducer again.

    Raises:
        PassError: the pass fails again, as it should.
        ConfigError: the folder is no reproducer.
    """
    graph, pipeline = load(folder, by_name)
    return PassManager(pipeline, fail_open=False).run(graph)

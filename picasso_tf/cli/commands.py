"""The commands of `picasso-tf`, each with its flags."""

from __future__ import annotations

import dataclasses
import os
import runpy
import sys
from pathlib import Path
from typing import Any, Protocol

import tensorflow as tf
from absl import flags
from google.protobuf import text_format
from google.protobuf.message import DecodeError
from tensorflow.core.framework import graph_pb2

import picasso_tf
from graph_passes.errors import ConfigError, PassError
from graph_passes.pipeline.reproducer import replay
from graph_passes.registry import BY_NAME
from picasso_tf.config import Config, make_config
from picasso_tf.report import Report
from picasso_tf.rewriter import Rewriter


class Command(Protocol):
    """A command: its flags, and what it does with them and with the words after them."""

    def define(self, values: flags.FlagValues) -> None: ...

    def run(self, values: flags.FlagValues, words: list[str]) -> int: ...


def _define_options(values: flags.FlagValues) -> None:
    for name, text in (
        ("dump_dir", "Write each optimised graph below this folder."),
        ("passes", "The pipeline, e.g. 'canonicalize, dead_nodes'."),
        ("reproducer_dir", "Where a failing pass leaves its reproducer."),
    ):
        flags.DEFINE_string(name, None, text, flag_values=values)
    flags.DEFINE_integer("max_group_size", None, "The most lookups or tables in one packed op.", flag_values=values)
    flags.DEFINE_integer("max_rewrites", None, "Stop after this many rewrites per graph.", flag_values=values)
    flags.DEFINE_bool(
        "row_only_updates", None, "Changes results: leave rows alone that no id of a batch names.", flag_values=values
    )
    flags.DEFINE_bool("verify", None, "Run the verifier around every pass.", flag_values=values)


def _options(values: flags.FlagValues) -> dict[str, Any]:
    names = [field.name for field in dataclasses.fields(Config)]
    return {name: values[name].value for name in names if values[name].value is not None}


def _enable(values: flags.FlagValues, script: str | None) -> None:
    """Switches the plugin on, unless an option is wrong or the script to run does not exist."""
    config = make_config(None, _options(values))
    if script is not None and not Path(script).is_file():
        raise ConfigError(f"There is no script '{script}'.")
    picasso_tf.enable(config)


def _run_script(words: list[str]) -> None:
    """Runs `script.py args` as Python would."""
    sys.argv = list(words)
    sys.path.insert(0, str(Path(words[0]).resolve().parent))
    runpy.run_path(words[0], run_name="__main__")


def _run_module(words: list[str]) -> None:
    """Runs `python -m package.module args`."""
    sys.argv = list(words)
    sys.path.insert(0, os.getcwd())
    runpy.run_module(words[0], run_name="__main__", alter_sys=True)


class Run:
    """Runs a training script with the plugin on: picasso-tf run [flags] (train.py | -m package.module) [args]."""

    def define(self, values: flags.FlagValues) -> None:
        _define_options(values)
        flags.DEFINE_bool("report", True, "Print what was done when the script ends.", flag_values=values)
        flags.DEFINE_bool("module", False, "Run a module, as python -m does.", flag_values=values, short_name="m")

    def run(self, values: flags.FlagValues, words: list[str]) -> int:
        if not words:
            raise ConfigError("`picasso-tf run` needs a script: picasso-tf run [flags] train.py [args].")
        _enable(values, None if values.module else words[0])
        try:
            _run_module(words) if values.module else _run_script(words)
        finally:
            if values.report:
                print(picasso_tf.report(), file=sys.stderr)
        return 0


class Explain:
    """Says for each lookup and update whether it is packed, or why not: picasso-tf explain [flags] (script.py [args] | SAVED_MODEL | GRAPH.pb).

    A script is run to its end with the plugin on. A SavedModel folder or a GraphDef file (.pb, .pbtxt) is only looked at.
    """  # noqa: E501

    def define(self, values: flags.FlagValues) -> None:
        _define_options(values)
        flags.DEFINE_string("signature", "serving_default", "Signature of a SavedModel.", flag_values=values)
        flags.DEFINE_list("fetches", [], "Fetches of a GraphDef file.", flag_values=values)
        flags.DEFINE_list("feeds", [], "Feeds of a GraphDef file.", flag_values=values)

    def run(self, values: flags.FlagValues, words: list[str]) -> int:
        if not words:
            raise ConfigError("`picasso-tf explain` needs a script, a SavedModel folder or a GraphDef file.")
        path = Path(words[0])
        if path.suffix == ".py":
            _enable(values, words[0])
            try:
                _run_script(words)
            finally:
                _show(picasso_tf.report())
            return 0
        _show(_explain_saved_model(path, values) if path.is_dir() else _explain_file(path, values))
        return 0


def _show(report: Report) -> None:
    print(report)
    print(report.details())


def _explain_saved_model(path: Path, values: flags.FlagValues) -> Report:
    try:
        signatures = tf.saved_model.load(str(path)).signatures
    except OSError as error:
        raise ConfigError(f"'{path}' is no SavedModel: {error}.") from error
    if values.signature not in signatures:
        raise ConfigError(f"'{path}' has no signature '{values.signature}'. It has: {', '.join(signatures) or 'none'}.")
    return picasso_tf.explain(signatures[values.signature], config=make_config(None, _options(values)))


def _explain_file(path: Path, values: flags.FlagValues) -> Report:
    graph_def = graph_pb2.GraphDef()
    try:
        if path.suffix == ".pbtxt":
            text_format.Parse(path.read_text(), graph_def)
        else:
            graph_def.ParseFromString(path.read_bytes())
    except (OSError, ValueError, DecodeError, text_format.ParseError) as error:
        raise ConfigError(f"'{path}' cannot be read as a GraphDef: {error}.") from error
    rewriter = Rewriter(make_config(None, _options(values)))
    rewriter.run_graph_def(graph_def, values.fetches, values.feeds)
    return rewriter.report()


class Replay:
    """Runs the reproducer of a failed pass again: picasso-tf replay FOLDER. Exit code 0 when it fails as recorded."""

    def define(self, values: flags.FlagValues) -> None:
        """It has no flags of its own."""

    def run(self, values: flags.FlagValues, words: list[str]) -> int:
        if len(words) != 1:
            raise ConfigError("`picasso-tf replay` needs the folder of one reproducer.")
        sys.path.insert(0, os.getcwd())  # a pass outside the registry is imported from where the user stands
        try:
            replay(Path(words[0]), BY_NAME)
        except PassError as error:
            print(f"Reproduced: {error}")
            return 0
        print("Not reproduced: the pass ran without an error.")
        return 1


COMMANDS: dict[str, Command] = {"run": Run(), "explain": Explain(), "replay": Replay()}

"""The text form of a pipeline: `canonicalize, embedding_packing{max_group_size=64}, dead_nodes`.

A pass of the registry is written by its name, any other as `module:Class`.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from graph_passes.errors import ConfigError
from graph_passes.pipeline.base import Pass

_ITEM = re.compile(r"\s*(?P<name>[\w.:]+)\s*(?:\{(?P<options>[^}]*)\})?\s*(?:,|$)")


def print_pipeline(pipeline: Sequence[Pass], by_name: Mapping[str, type[Pass]]) -> str:
    """The text of a pipeline; options that have their default are left out."""
    return ", ".join(_print_pass(item, by_name) for item in pipeline)


def _print_pass(item: Pass, by_name: Mapping[str, type[Pass]]) -> str:
    kind = type(item)
    text = item.name if by_name.get(item.name) is kind else f"{kind.__module__}:{kind.__qualname__}"
    options = item.options()
    if options:
        text += "{" + ", ".join(f"{key}={value!r}" for key, value in sorted(options.items())) + "}"
    return text


def parse_pipeline(text: str, by_name: Mapping[str, type[Pass]]) -> list[Pass]:
    """The pipeline that `text` describes.

    Raises:
        ConfigError: a pass or an option is unknown, or the text cannot be read.
    """
    pipeline: list[Pass] = []
    at = 0
    while at < len(text):
        match = _ITEM.match(text, at)
        if not match:
            raise ConfigError(f"The pipeline cannot be read from {text[at : at + 40]!r} on.")
        pipeline.append(_parse_pass(match["name"], match["options"] or "", by_name))
        at = match.end()
    return pipeline


def _parse_pass(name: str, options: str, by_name: Mapping[str, type[Pass]]) -> Pass:
    kind = _import(name) if ":" in name else by_name.get(name)
    if kind is None:
        raise ConfigError(f"There is no pass '{name}'. Known passes: {', '.join(by_name)}.")
    values = {}
    for part in options.split(","):
        if part.strip():
            key, _, value = part.partition("=")
            values[key.strip()] = _parse_value(name, key.strip(), value.strip())
    try:
        return kind(**values)
    except TypeError as error:
        raise ConfigError(f"Pass '{name}' cannot be made with {values}: {error}.") from error


def _parse_value(name: str, key: str, text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError) as error:
        raise ConfigError(f"Option `{key}` of pass '{name}' has no readable value. Received: '{text}'.") from error


def _import(path: str) -> type[Pass]:
    module, _, name = path.partition(":")
    try:
        kind: type[Pass] = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"There is no pass '{path}': {error}.") from error
    return kind

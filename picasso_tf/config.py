"""The options of picasso-tf: the only schema. A Python argument beats the environment, which beats the default.

| option | environment | default | meaning |
| --- | --- | --- | --- |
| `dump_dir` | `PICASSO_DUMP_DIR` | none | write each optimised graph, before and after every pass, below this folder |
| `passes` | `PICASSO_PASSES` | all | the pipeline in its text form, such as `canonicalize, dead_nodes` |
| `max_group_size` | `PICASSO_MAX_GROUP_SIZE` | no limit | the most lookups or tables in one packed op, >= 2 |
| `max_rewrites` | `PICASSO_MAX_REWRITES` | no limit | stop after this many rewrites per graph, to find a bad one |
| `row_only_updates` | `PICASSO_ROW_ONLY_UPDATES` | false | changes results: see below |
| `verify` | `PICASSO_VERIFY` | false | run the verifier around every pass |
| `reproducer_dir` | `PICASSO_REPRODUCER_DIR` | see below | where a failing pass leaves its reproducer |

`row_only_updates` leaves rows alone that no id of the batch names, also under rules that change every row in every
step, such as Keras 3's Adam, momentum and RMSprop, weight decay and moving averages: their slots then decay only in
steps that use them, and the variable is not moved by what is left in its slots. A step costs as much as the batch is
large, not as the table is; what is learned is no longer what TensorFlow would learn. TensorFlow Addons' LazyAdam and
DeepRec's Adam do the same. A constraint or a clip of the whole table, too, then works on the rows of the batch alone.
Regularizers of a whole table, and tables without ids, are not affected.

Without `reproducer_dir` a reproducer goes to `failures` below `dump_dir`, or to `picasso_tf_failures` in the system's
temporary folder. The knobs of the build (`PICASSO_CUDA` and others) are listed at the top of setup.py.
"""

from __future__ import annotations

import dataclasses
import difflib
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graph_passes.errors import ConfigError
from graph_passes.pipeline.base import Pass
from graph_passes.pipeline.text import parse_pipeline
from graph_passes.registry import BY_NAME, PASSES


@dataclass(frozen=True)
class Config:
    """Options of one `enable` or `optimize_graph`. See the table in `picasso_tf.config`.

    Raises:
        ConfigError: a value is out of range or a folder cannot be written.
    """

    dump_dir: str | None = None
    passes: str | None = None
    max_group_size: int | None = None
    max_rewrites: int | None = None
    row_only_updates: bool = False
    verify: bool = False
    reproducer_dir: str | None = None

    def __post_init__(self) -> None:
        for name in ("max_group_size", "max_rewrites"):
            least = 2 if name == "max_group_size" else 0
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < least):
                raise ConfigError(f"`{name}` must be an int >= {least}. Received: `{name}={value!r}`.")
        for name in ("dump_dir", "reproducer_dir", "passes"):
            value = getattr(self, name)
            if isinstance(value, os.PathLike):
                object.__setattr__(self, name, os.fspath(value))
            elif value is not None and not isinstance(value, str):
                raise ConfigError(f"`{name}` must be a string. Received: `{name}={value!r}`.")
        for name in _SWITCHES:
            if not isinstance(getattr(self, name), bool):
                raise ConfigError(f"`{name}` must be True or False. Received: `{name}={getattr(self, name)!r}`.")
        self.pipeline()
        for name in ("dump_dir", "reproducer_dir"):
            if getattr(self, name):
                _check_writable(name, Path(getattr(self, name)))

    def pipeline(self) -> list[Pass]:
        """The passes to run, in order."""
        pipeline = [kind() for kind in PASSES] if self.passes is None else parse_pipeline(self.passes, BY_NAME)
        options = {"max_group_size": self.max_group_size, "row_only": self.row_only_updates or None}
        for key, value in options.items():
            if value is not None:
                pipeline = [_with_option(item, key, value) for item in pipeline]
        return pipeline

    def reproducers(self) -> Path:
        """The folder for reproducers."""
        if self.reproducer_dir:
            return Path(self.reproducer_dir)
        if self.dump_dir:
            return Path(self.dump_dir) / "failures"
        return Path(tempfile.gettempdir()) / "picasso_tf_failures"


def make_config(config: Config | None, options: Mapping[str, Any]) -> Config:
    """The config that a call asks for: `config` with `options` on top, or the environment's with `options` on top.

    Raises:
        ConfigError: an option is unknown or has a wrong value.
    """
    names = [field.name for field in dataclasses.fields(Config)]
    for name in options:
        if name not in names:
            close = difflib.get_close_matches(name, names, 1)
            hint = f" Did you mean `{close[0]}`?" if close else ""
            raise ConfigError(f"There is no option `{name}`.{hint} Options: {', '.join(names)}.")
    if config is not None:
        if not isinstance(config, Config):
            raise ConfigError(f"`config` must be a picasso_tf.Config. Received: {config!r}.")
        return dataclasses.replace(config, **options)
    return Config(**{**_from_environment(), **options})


def _from_environment() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in dataclasses.fields(Config):
        variable = "PICASSO_" + field.name.upper()
        text = os.environ.get(variable, "")
        if not text:
            continue
        if field.name.startswith("max_"):
            try:
                found[field.name] = int(text)
            except ValueError:
                raise ConfigError(f"{variable} must be a whole number. Received: '{text}'.") from None
        elif field.name in _SWITCHES:
            if text.lower() not in _BOOLEANS:
                raise ConfigError(f"{variable} must be one of {', '.join(_BOOLEANS)}. Received: '{text}'.")
            found[field.name] = _BOOLEANS[text.lower()]
        else:
            found[field.name] = text
    return found


_SWITCHES = ("row_only_updates", "verify")
_BOOLEANS = {"1": True, "true": True, "0": False, "false": False}


def _with_option(item: Pass, key: str, value: Any) -> Pass:
    has_it = any(field.name == key for field in dataclasses.fields(item))  # type: ignore[arg-type]
    return dataclasses.replace(item, **{key: value}) if has_it else item  # type: ignore[type-var]


def _check_writable(name: str, folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ConfigError(f"`{name}` cannot be written: {error.strerror or error} ('{folder}').") from error

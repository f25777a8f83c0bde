"""Entry point of `picasso-tf`. What goes wrong is said in one sentence; a script's own errors keep their traceback."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence

from absl import flags

from graph_passes.errors import PicassoError
from picasso_tf.cli.commands import COMMANDS
from picasso_tf.version import __version__

_USAGE = """usage: picasso-tf COMMAND [flags] ...

{commands}

`picasso-tf COMMAND --help` shows the flags of a command."""


def run(argv: Sequence[str] | None = None) -> None:
    """Runs the command line and ends the process with its exit code: 0, 1 (the command says no) or 2 (wrong use)."""
    sys.exit(main(list(sys.argv[1:] if argv is None else argv)))


def main(argv: list[str]) -> int:
    """The command line `argv` (without the program's name); returns the exit code."""
    if argv[:1] == ["--version"]:
        print(f"picasso-tf {__version__}")
        return 0
    if not argv or argv[0] in ("--help", "-h", "help"):
        print(_usage())
        return 0 if argv else 2
    command = COMMANDS.get(argv[0])
    if command is None:
        return _complain(f"There is no command '{argv[0]}'. Commands: {', '.join(COMMANDS)}.")
    values = flags.FlagValues()  # not absl's global flags: those belong to the user's script
    values.set_gnu_getopt(False)  # what follows the script is the script's
    command.define(values)
    flags.DEFINE_bool("help", False, "Show these flags.", flag_values=values, short_name="h")
    flags.DEFINE_bool("verbose", False, "Log one line per pass.", flag_values=values)
    try:
        rest = values(["picasso-tf " + argv[0], *argv[1:]])[1:]
        if values.help:
            print(f"{command.__doc__}\n{values.get_help()}")
            return 0
        if values.verbose:
            logging.basicConfig(level=logging.INFO, format="%(message)s")
        return command.run(values, rest)
    except (PicassoError, flags.Error) as error:
        return _complain(str(error))


def _usage() -> str:
    lines = [f"  {name:8} {(command.__doc__ or '').splitlines()[0]}" for name, command in COMMANDS.items()]
    return _USAGE.format(commands="\n".join(lines))


def _complain(sentence: str) -> int:
    print("picasso-tf: " + " ".join(sentence.split()), file=sys.stderr)
    return 2


if __name__ == "__main__":
    run()

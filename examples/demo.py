"""Trains one Keras model twice, stock and with picasso_tf, and compares the two.

    python -m examples.demo
    python -m examples.demo --optimizer=sgd --dataset=criteo
    python -m examples.demo --criteo=train.txt --rows=500000

Both runs start from the same seed and see the same batches. They take turns of a few steps, so that a slow phase of the
machine falls on both; every figure printed was measured in this very run.
"""

import collections
import os
import sys

from absl import app, flags
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

if not __package__:  # run as a file: the examples are a package beside, not in, this folder
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from examples import demo_table
from examples.arm_messages import LEARNING_RATES, ArmSettings, Chunk
from examples.arms import Arm, ArmError
from examples.click_data import ClickData, DataError

WARM_UP = 3
"""Steps after the first that are not timed. Stock TensorFlow copies whole tables only once they have been updated, so a
timing that starts sooner makes it look far too fast."""

CHUNK = 10
"""Steps in one turn: long enough to settle after the change of turn, short enough to alternate many times."""

_FLAGS = flags.FLAGS
flags.DEFINE_enum("optimizer", "adagrad", list(LEARNING_RATES), "Keras optimizer.")
flags.DEFINE_enum("dataset", "movielens", ["movielens", "criteo"], "Data to train on.")
flags.DEFINE_string(
    "criteo", None, "File in Criteo's Kaggle format, for --dataset=criteo, which it implies; default: generated."
)
flags.DEFINE_integer("rows", 200_000, "Criteo only: rows to generate, or to read at most.", lower_bound=3)
flags.DEFINE_integer("batch_size", None, "Examples per step; 1024 for movielens and 4096 for criteo.", lower_bound=1)
flags.DEFINE_integer("steps", None, "Train steps of each run; default: as many as --epochs asks for.", lower_bound=1)
flags.DEFINE_integer("epochs", 4, "Passes over the train part, unless --steps is given.", lower_bound=1)
flags.DEFINE_integer("embedding_dim", 16, "Width of the embeddings.", lower_bound=1)
flags.DEFINE_string("dump_dir", os.path.join("picasso_dumps", "demo"), "Where graphs, reports and logs are written.")
flags.DEFINE_integer("seed", 0, "Seed of the split or the generated data, and of the weights.", lower_bound=0)
flags.DEFINE_bool("jit", False, "Compile the train step with XLA.")


def main(argv: list[str]) -> int:
    """Runs the demo; returns the exit status."""
    try:
        if len(argv) > 1:
            raise DataError(f"The demo takes flags only. Received: `{argv[1]}`.")
        data = load()
        settings = _settings(data)
        console = Console(highlight=False)
        console.print(demo_table.heading(data, settings["stock"]))
        with Arm(settings["stock"], data) as stock, Arm(settings["plugin"], data) as plugin:
            arms = {"stock": stock, "plugin": plugin}
            chunks = train_in_turns(arms, settings["stock"].steps, console)
            summaries = {name: arm.finish() for name, arm in arms.items()}
    except (DataError, ArmError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    console.print(demo_table.comparison(chunks, summaries, WARM_UP + 1))
    for line in demo_table.remarks(chunks, summaries, _FLAGS.dump_dir):
        console.print(line)
    return 0


def load() -> ClickData:
    """Loads the data that the flags ask for."""
    if _FLAGS.criteo and _FLAGS["dataset"].present and _FLAGS.dataset != "criteo":
        raise DataError(f"`--criteo` needs `--dataset=criteo`. Received: `--dataset={_FLAGS.dataset}`.")
    # Imported here: each needs packages or time that the other does not.
    if _FLAGS.criteo or _FLAGS.dataset == "criteo":
        from examples.criteo_features import load_criteo

        return load_criteo(_FLAGS.criteo, _FLAGS.rows, _FLAGS.seed)
    from examples.movielens_features import load_movielens

    return load_movielens(_FLAGS.seed)


def _settings(data: ClickData) -> dict[str, ArmSettings]:
    """Returns the settings of both runs, which differ in the plugin alone."""
    batch_size = _FLAGS.batch_size or (1024 if data.wide_fields else 4096)
    per_epoch = data.train.batched(batch_size).labels.shape[0]
    steps = _FLAGS.steps or _FLAGS.epochs * per_epoch
    if steps <= WARM_UP + 1:
        raise DataError(f"At least {WARM_UP + 2} steps are needed to time any. Received: {steps} steps.")
    try:
        os.makedirs(_FLAGS.dump_dir, exist_ok=True)
    except OSError as error:
        raise DataError(f"`--dump_dir={_FLAGS.dump_dir}` cannot be made: {error.strerror}.") from error
    return {
        name: ArmSettings(
            name=name,
            plugin=name == "plugin",
            optimizer=_FLAGS.optimizer,
            jit=_FLAGS.jit,
            batch_size=batch_size,
            steps=steps,
            embedding_dim=_FLAGS.embedding_dim,
            seed=_FLAGS.seed,
            dump_dir=_FLAGS.dump_dir,
        )
        for name in ("stock", "plugin")
    }


def train_in_turns(arms: dict[str, Arm], steps: int, console: Console) -> dict[str, Chunk]:
    """Trains all runs to the end, one chunk at a time.

    Args:
        arms: the runs by name.
        steps: of each run.
        console: where progress is shown.

    Returns:
        All steps of each run, in order: the first, the warm-up, and the timed ones.
    """
    totals = {name: Chunk([], []) for name in arms}
    turns = [1, WARM_UP]
    while (left := steps - sum(turns)) > 0:
        turns.append(min(CHUNK, left))
    columns = (TextColumn("{task.description:7}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("{task.fields[note]}"), console=console) as progress:
        tasks = {name: progress.add_task(name, total=steps, note="tracing") for name in arms}
        order = collections.deque(arms)
        for turn in turns:
            for name in order:
                chunk = arms[name].train(turn)
                totals[name].seconds.extend(chunk.seconds)
                totals[name].losses.extend(chunk.losses)
                progress.update(tasks[name], advance=turn, note=f"{min(chunk.seconds) * 1e3:.1f} ms per step")
            order.reverse()  # neither run is always the one that follows the other
    return totals


def parse_flags(argv: list[str]) -> list[str]:
    """Parses the command line; a bad flag ends the program with one sentence."""
    try:
        return _FLAGS(argv)
    except flags.Error as error:
        print(f"demo: {str(error).splitlines()[0]}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    app.run(main, flags_parser=parse_flags)

"""What passes between the demo and its training processes: plain values that import nothing of TensorFlow."""

import dataclasses
import os

LEARNING_RATES = {
    "sgd": 1.0,
    "adagrad": 0.3,
    "adam": 0.001,
    "adamw": 0.001,
    "rmsprop": 0.001,
    "adadelta": 1.0,
    "adamax": 0.001,
    "nadam": 0.001,
    "ftrl": 0.3,
    "lion": 0.0003,
}
"""Optimizers by their Keras name, each with a rate at which a few hundred steps show that the model learns."""


@dataclasses.dataclass(frozen=True)
class ArmSettings:
    """What a run needs to know.

    Attributes:
        name: for people; also names the log file.
        plugin: whether picasso_tf is switched on.
        optimizer: a key of `LEARNING_RATES`.
        jit: whether XLA compiles the train step.
        batch_size: examples per step.
        steps: steps in total; the train part is repeated as needed.
        embedding_dim: width of the embeddings.
        seed: of the model's initial weights.
        dump_dir: where the plugin writes its dumps, and each run its log.
    """

    name: str
    plugin: bool
    optimizer: str
    jit: bool
    batch_size: int
    steps: int
    embedding_dim: int
    seed: int
    dump_dir: str

    @property
    def log_path(self) -> str:
        """File that receives all that the run's process prints."""
        return os.path.join(self.dump_dir, f"{self.name}.log")


@dataclasses.dataclass(frozen=True)
class Chunk:
    """Some consecutive train steps: seconds and loss of each."""

    seconds: list[float]
    losses: list[float]


@dataclasses.dataclass(frozen=True)
class GraphFigures:
    """What the plugin reports of one graph, reduced to plain values that can leave the process."""

    name: str
    nodes_before: int
    nodes_after: int
    lookups_packed: int
    updates_packed: int
    packed_ops: int
    declined: int
    failures: list[str]


@dataclasses.dataclass(frozen=True)
class Summary:
    """Result of a run: AUC on the test part, peak memory in bytes, and the graphs that the plugin saw."""

    auc: float
    peak_bytes: int
    graphs: list[GraphFigures]

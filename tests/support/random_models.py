"""Random raw TensorFlow models: tables, features, writes in between, conditionals, loops, optimizers."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import tensorflow as tf

from tests.support.raw_optimizers import RAW

COLUMNS = 6
MAX_ID = 5  # smallest number of rows: ids of any feature fit any table


@dataclass(frozen=True)
class Batch:
    """What one step is fed with."""

    matrix: np.ndarray  # ids, [batch, COLUMNS], some of them negative
    vector: np.ndarray  # ids, [batch], in [0, MAX_ID)
    dense: np.ndarray  # [batch, 3]
    flag: bool

    @classmethod
    def of(cls, seed: int, dtype: str, ids_dtype: str) -> Batch:
        generator = np.random.default_rng(seed)
        batch = int(generator.integers(1, 7))
        matrix = generator.integers(-MAX_ID, MAX_ID, (batch, COLUMNS))
        dense = tf.cast(generator.normal(size=(batch, 3)), dtype).numpy()
        vector = generator.integers(0, MAX_ID, batch)
        return cls(matrix.astype(ids_dtype), vector.astype("int32"), dense, bool(generator.integers(2)))

    def tensors(self) -> tuple[tf.Tensor, ...]:
        return tuple(tf.constant(value) for value in (self.matrix, self.vector, self.dense, self.flag))


@dataclass
class Model:
    """One random model. Everything about it follows from the seed.

    Attributes:
        seed: of the model and of its batches.
        story: what was generated, one line each; filled while the function is traced.
    """

    seed: int
    story: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        choose, choose_apart = random.Random(self.seed), random.Random(self.seed + 2)
        self.dtype = choose.choice(["float32"] * 4 + ["float64", "float16", "bfloat16"])
        self.ids_dtype = choose.choice(["int32", "int64"])
        generator = np.random.default_rng(self.seed)
        self.tables = []
        for number in range(choose.randint(2, 5)):
            rows, row = choose.randint(MAX_ID, 30), choose.choice([(1,), (2,), (3,), (4,), (8,), (), (2, 3)])
            initial = tf.cast(generator.normal(size=(rows, *row)), self.dtype)
            self.tables.append(tf.Variable(initial, name=f"t{number}"))
        self.rule = choose_apart.choice(sorted(RAW))
        self.optimizer = RAW[self.rule](self.tables)
        known_batch = choose.random() < 0.15
        self._batches = [
            Batch.of(1000 * self.seed + i * (not known_batch), self.dtype, self.ids_dtype) for i in range(3)
        ]
        self._step = tf.function(self._traced, reduce_retracing=not known_batch)
        if not known_batch:
            specs = [
                tf.TensorSpec([None, COLUMNS], self.ids_dtype),
                tf.TensorSpec([None], tf.int32),
                tf.TensorSpec([None, 3], self.dtype),
                tf.TensorSpec([], tf.bool),
            ]
            self._step = tf.function(self._traced, input_signature=specs)

    def train(self) -> dict[str, np.ndarray]:
        """Three steps; every output of every step, and every table and slot in the end."""
        found = {}
        for number, batch in enumerate(self._batches):
            for name, value in self._step(*batch.tensors()).items():
                found[f"step {number} {name}"] = value.numpy()
        found |= {f"slot {i}": slot.numpy() for i, slot in enumerate(self.optimizer.variables)}
        return found | {table.name: table.numpy() for table in self.tables}

    def function_and_arguments(self) -> tuple[Callable[..., dict[str, tf.Tensor]], tuple[tf.Tensor, ...]]:
        """The traced function, and arguments for it."""
        return self._step, self._batches[0].tensors()

    def _traced(self, matrix: tf.Tensor, vector: tf.Tensor, dense: tf.Tensor, flag: tf.Tensor) -> dict[str, tf.Tensor]:
        return _Trace(self, random.Random(self.seed + 1), matrix, vector, dense, flag).step()


class _Trace:
    """Makes up one step of a model while TensorFlow traces it."""

    def __init__(self, model: Model, choose: random.Random, *inputs: tf.Tensor):
        self.model = model
        self.choose = choose
        self.matrix, self.vector, self.dense, self.flag = inputs
        self.story = model.story
        self.story[:] = [f"{model.dtype} rows, {model.ids_dtype} matrix"]
        self.story += [f"t{i} = {table.shape}" for i, table in enumerate(model.tables)]
        self.outputs: dict[str, tf.Tensor] = {}

    def step(self) -> dict[str, tf.Tensor]:
        with tf.GradientTape(persistent=True) as tape:
            losses = [self._block() for _ in range(self.choose.randint(1, 4))]
            loss = tf.add_n(losses)
        if self.choose.random() < 0.7:
            self._train(tape, loss)
        self.outputs["loss"] = loss
        return self.outputs

    def _block(self) -> tf.Tensor:
        """Some lookups and what is done with them, perhaps a write before or after; gives a scalar."""
        kinds: list[Callable[[], tf.Tensor]] = [self._concat] * 4 + [
            self._stack,
            self._separate,
            self._cond,
            self._loop,
        ]
        if self.choose.random() < 0.3:
            self._write()
        value = self.choose.choice(kinds)()
        if self.choose.random() < 0.3:
            self._write()
        return value

    # ---- lookups -------------------------------------------------------------------------------------------------

    def _table(self) -> tuple[int, tf.Variable]:
        number = self.choose.randrange(len(self.model.tables))
        return number, self.model.tables[number]

    def _rows(self, number: int, ids: tf.Tensor, text: str) -> tf.Tensor:
        table = self.model.tables[number]
        form = self.choose.choice(["sparse_read", "read", "read", "lookup"])
        self.story.append(f"{form} t{number}[{text}]")
        if form == "read":
            return tf.gather(tf.convert_to_tensor(table), ids)
        return tf.nn.embedding_lookup(table, ids) if form == "lookup" else table.sparse_read(ids)

    def _ids(self, number: int) -> tuple[tf.Tensor, str]:
        """Ids for one table, all in range."""
        rows = int(self.model.tables[number].shape[0])
        kind = self.choose.choice(
            ["vector", "column", "column", "columns", "split", "unstack", "shifted", "from_table"]
        )
        first = self.choose.randrange(COLUMNS)
        last = self.choose.randint(first + 1, COLUMNS)
        if kind == "vector":
            return self._recast(self.vector, "vector")
        if kind == "shifted":
            return self._recast((self.vector * 3 + first) % rows, f"(vector * 3 + {first}) % {rows}")
        if kind == "from_table":
            source, _ = self._table()
            found = self._rows(source, *self._recast(self.vector, "vector"))
            flat = tf.reshape(found, [tf.shape(self.vector)[0], -1])[:, 0]
            return tf.cast(tf.abs(flat) * 7, tf.int32) % rows, "int(abs(those) * 7) % rows"
        ids, text = {
            "column": (self.matrix[:, first], f"matrix[:, {first}]"),
            "columns": (self.matrix[..., first - COLUMNS : last or None], f"matrix[..., {first - COLUMNS}:{last}]"),
            "split": (tf.split(self.matrix, 3, axis=1)[first % 3], f"split(matrix, 3)[{first % 3}]"),
            "unstack": (tf.unstack(self.matrix, axis=1)[first], f"unstack(matrix)[{first}]"),
        }[kind]
        ids, text = self._recast(ids, text)
        wrapped = tf.where(ids < 0, ids + tf.constant(rows, ids.dtype), ids)
        return self._reshaped(wrapped, f"wrap({text}, {rows})")

    def _recast(self, ids: tf.Tensor, text: str) -> tuple[tf.Tensor, str]:
        dtype = self.choose.choice([None, "int32", "int64"])
        return (ids, text) if dtype is None else (tf.cast(ids, dtype), f"{dtype}({text})")

    def _reshaped(self, ids: tf.Tensor, text: str) -> tuple[tf.Tensor, str]:
        if self.choose.random() < 0.3:
            return tf.expand_dims(ids, -1), f"expand_dims({text})"
        return ids, text

    def _lookup(self) -> tf.Tensor:
        """Rows as a matrix [batch, k], through one reshape or another."""
        number, _ = self._table()
        rows = self._rows(number, *self._ids(number))
        self._maybe_watch(rows)
        width = int(np.prod(rows.shape[1:]))
        if rows.shape.rank == 2 and self.choose.random() < 0.7:
            return rows
        return tf.reshape(rows, [-1, width])

    def _maybe_watch(self, rows: tf.Tensor) -> None:
        """Sometimes a lookup has a reader of its own."""
        kind = self.choose.choice(["no"] * 6 + ["output", "shape", "shape64"])
        if kind == "no":
            return
        self.story.append(f"  {kind} of it")
        name = f"{kind} {len(self.outputs)}"
        self.outputs[name] = rows if kind == "output" else tf.shape(rows, tf.int64 if kind == "shape64" else tf.int32)

    # ---- what is done with lookups -------------------------------------------------------------------------------

    def _concat(self) -> tf.Tensor:
        parts = [self._lookup() for _ in range(self.choose.randint(1, 5))]
        if self.choose.random() < 0.5:
            parts.insert(self.choose.randrange(len(parts) + 1), self.dense)
        self.story.append(f"concat of {len(parts)}")
        return self._done(tf.concat(parts, axis=self.choose.choice([1, -1])))

    def _stack(self) -> tf.Tensor:
        number, _ = self._table()
        axis = self.choose.choice([0, 1, -1])
        parts = [self._rows(number, *self._recast(self.vector, "vector")) for _ in range(self.choose.randint(1, 3))]
        parts.append(self._rows(number, (self.vector + 1) % MAX_ID, "(vector + 1) % rows"))
        self.story.append(f"stack of {len(parts)} on axis {axis}")
        return self._done(tf.stack(parts, axis=axis))

    def _separate(self) -> tf.Tensor:
        parts = [self._done(self._lookup()) for _ in range(self.choose.randint(1, 3))]
        return tf.add_n(parts)

    def _cond(self) -> tf.Tensor:
        kinds = [self._concat, self._separate, self._stack]

        def branch(name: str) -> tf.Tensor:
            self.story.append(f"{name}:")
            kept, self.outputs = self.outputs, {}
            if self.choose.random() < 0.3:
                self._write()
            value = self.choose.choice(kinds)()
            if self.choose.random() < 0.3:
                self._write()
            self.outputs = kept
            return value

        def nothing() -> tf.Tensor:
            return tf.zeros([], self.model.dtype)

        both = self.choose.random() < 0.6
        value = tf.cond(self.flag, lambda: branch("if"), (lambda: branch("else")) if both else nothing)
        self.story.append("end of if")
        return value

    def _loop(self) -> tf.Tensor:
        writes_before, writes_after = (self.choose.random() < 0.4 for _ in range(2))
        number, _ = self._table()
        kept, self.outputs = self.outputs, {}

        def body(i: tf.Tensor, total: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            self.story.append("while:")
            if writes_before:
                self._write()
            rows = self._rows(number, (self.vector + i) % MAX_ID, "(vector + i) % rows")
            value = self._mean(rows) + self._concat()
            if writes_after:
                self._write()
            return i + 1, total + value

        _, total = tf.while_loop(lambda i, total: i < 3, body, [0, tf.zeros([], self.model.dtype)])
        self.story.append("end of while")
        self.outputs = kept
        return total

    def _done(self, value: tf.Tensor) -> tf.Tensor:
        if self.choose.random() < 0.5:
            self.outputs[f"joined {len(self.outputs)}"] = value
        return self._mean(value)

    def _mean(self, value: tf.Tensor) -> tf.Tensor:
        return tf.reduce_mean(value * value)

    # ---- writes --------------------------------------------------------------------------------------------------

    def _write(self) -> None:
        number, table = self._table()
        kind = self.choose.choice(["assign_sub", "scatter_sub", "scatter_update"])
        self.story.append(f"{kind} t{number}")
        if kind == "assign_sub":
            table.assign_sub(tf.cast(tf.fill(table.shape, 0.25), table.dtype))
            return
        ids = tf.constant([self.choose.randrange(MAX_ID), 0])
        rows = tf.cast(tf.fill([2, *table.shape[1:]], 0.5), table.dtype)
        getattr(table, kind)(tf.IndexedSlices(rows, ids))

    def _train(self, tape: tf.GradientTape, loss: tf.Tensor) -> None:
        tables = self.model.tables
        self.story.append(f"train with {self.model.rule}")
        gradients = zip(tape.gradient(loss, tables), tables, strict=True)
        self.model.optimizer.apply_gradients([pair for pair in gradients if pair[0] is not None])

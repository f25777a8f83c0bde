"""What an optimizer does to the rows of its variables, as expressions, and the programs that packed updates run.

An expression is a number in an `Expressions` store; equal expressions have equal numbers. Its level says how many
values it has: one (`SCALAR`), one per table row (`ROW`) or one per id (`ID`), each as wide as a row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from graph_passes.ir import TensorRef

SCALAR, ROW, ID = range(3)

STATE, GRADIENT, TABLE, PARAMETER = "state", "gradient", "table", "parameter"
_LEAF_LEVELS = {STATE: ROW, GRADIENT: ID, TABLE: ROW, PARAMETER: SCALAR}
COMMUTATIVE = frozenset({"add", "mul"})
REDUCTIONS = frozenset({"segment_sum", "scatter_add", "scatter_sub", "scatter_update"})
TOUCHED = frozenset({"touched_add", "touched_sub", "touched_update"})


class Expression(NamedTuple):
    """One expression.

    Attributes:
        op: an instruction of packed updates, or STATE, GRADIENT, TABLE, PARAMETER for what comes from outside.
        args: numbers of its operands.
        data: what a leaf stands for: (table root, name of the read or None) of a state, the sources of a gradient, the
            tensor of a table gradient or a parameter.
        level: SCALAR, ROW or ID.
    """

    op: str
    args: tuple[int, ...]
    data: Any
    level: int


class Expressions:
    """All expressions of one graph."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._all: list[Expression] = []
        self._forms: list[bytes] = []

    def __getitem__(self, number: int) -> Expression:
        return self._all[number]

    def leaf(self, op: str, data: Hashable) -> int:
        return self._number(op, (), data, _LEAF_LEVELS[op])

    def make(self, op: str, *args: int) -> int:
        """The expression that applies an instruction; operands of commutative ones come in the order of their form."""
        if op == "mul" and args[0] == args[1]:
            op, args = "square", args[:1]  # the same multiplication
        if op in COMMUTATIVE and self._forms[args[0]] > self._forms[args[1]]:
            args = args[::-1]
        reduces = op in REDUCTIONS or op in TOUCHED
        level = ROW if reduces else max(self._all[arg].level for arg in args)
        return self._number(op, args, None, level)

    def form(self, number: int) -> bytes:
        """What two expressions share when they differ in nothing but what their leaves stand for.

        A digest, so that the order of forms depends on nothing else either.
        """
        return self._forms[number]

    def leaves(self, numbers: Iterable[int], op: str) -> list[int]:
        """The leaves of one kind below some expressions, each once, in the order in which they are met."""
        found: dict[int, None] = {}
        seen: set[int] = set()
        waiting = list(numbers)[::-1]
        while waiting:
            number = waiting.pop()
            if number in seen:
                continue
            seen.add(number)
            if self._all[number].op == op:
                found[number] = None
            waiting += self._all[number].args[::-1]
        return list(found)

    def _number(self, op: str, args: tuple[int, ...], data: Hashable, level: int) -> int:
        key = (op, args, data)
        if key not in self._numbers:
            self._numbers[key] = len(self._all)
            self._all.append(Expression(op, args, data, level))
            form = b" ".join([op.encode(), *[self._forms[arg] for arg in args]])
            self._forms.append(hashlib.blake2b(form, digest_size=8).digest())
        return self._numbers[key]


class Write(NamedTuple):
    """One effect on a variable.

    Attributes:
        root: the variable, see `graph_passes.analysis.tables.Table`.
        op: "assign", "add" or "sub" of every row, or an instruction scatter_* or touched_*.
        value: the expression that is assigned, added, ...
    """

    root: str
    op: str
    value: int


@dataclass(frozen=True)
class Program:
    """What one packed update does with each row. Two tables can share an op when their programs are equal.

    Attributes:
        instructions: such as "mul g0 p0"; s, g, t, p are states, gradients per id, gradients per row and parameters, v0
            is the result of the first instruction. See cc/ops/packed_update.cc.
        results: what each state holds afterwards; its own name where it is not written.
        sparse: whether only rows that some id names can change.
    """

    instructions: tuple[str, ...]
    results: tuple[str, ...]
    sparse: bool

    def __str__(self) -> str:
        writes = [f"s{i} = {value}" for i, value in enumerate(self.results) if value != f"s{i}"]
        steps = [f"v{i} = {step}" for i, step in enumerate(self.instructions)]
        return "; ".join(steps + writes)


class Binding(NamedTuple):
    """What the names in a program stand for, for one table."""

    states: tuple[str, ...]
    gradients: tuple[Hashable, ...]
    tables: tuple[TensorRef, ...]
    parameters: tuple[TensorRef, ...]


class ProgramBuilder:
    """Turns writes, in order, into a program and its binding.

    Args:
        expressions: the store of the writes' values.
    """

    def __init__(self, expressions: Expressions):
        self._expressions = expressions
        self._names: dict[str, dict[Hashable, str]] = {"s": {}, "g": {}, "t": {}, "p": {}}
        self._instructions: dict[str, str] = {}
        self._versions: dict[str, list[str]] = {}
        self._sparse = True

    def add(self, write: Write, versions: dict[tuple[str, str], int]) -> None:
        """Appends one write.

        Args:
            write: the write.
            versions: for each (root, read) in its value how many writes of the program come before that read.
        """
        value = self._value(write.value, versions)
        history = self._history(write.root)
        history.append(value if write.op == "assign" else self._emit(write.op, history[-1], value))
        self._sparse &= write.op in REDUCTIONS or write.op in TOUCHED

    def _history(self, root: str) -> list[str]:
        """All versions of a variable so far, the first one before any write."""
        if root not in self._versions:
            self._versions[root] = [self._name("s", root)]
        return self._versions[root]

    def _value(self, number: int, versions: dict[tuple[str, str], int]) -> str:
        """The name of the value of an expression."""

        @cache
        def of(number: int) -> str:
            expression = self._expressions[number]
            if expression.op == STATE:
                root, read = expression.data
                history = self._history(root)
                return history[-1] if read is None else history[versions[(root, read)]]
            if expression.op in (GRADIENT, TABLE, PARAMETER):
                return self._name(expression.op[0], expression.data)
            return self._emit(expression.op, *[of(arg) for arg in expression.args])

        return of(number)

    def finish(self) -> tuple[Program, Binding]:
        states = self._names["s"]
        results = tuple(self._versions[str(root)][-1] for root in states)
        names = {kind: tuple(found) for kind, found in self._names.items()}
        binding = Binding(names["s"], names["g"], names["t"], names["p"])  # type: ignore[arg-type]
        return Program(tuple(self._instructions), results, self._sparse), binding

    def _name(self, kind: str, key: Hashable) -> str:
        names = self._names[kind]
        return names.setdefault(key, f"{kind}{len(names)}")

    def _emit(self, op: str, *operands: str) -> str:
        text = " ".join((op, *operands))
        return self._instructions.setdefault(text, f"v{len(self._instructions)}")

"""Calls of `Picasso>PackedTransforms` that are compared with its oracle; hash tables; random features and programs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from hypothesis import strategies as st

from picasso_tf.ops import Program, packed_transforms
from tests.support import packed_transforms_oracle as oracle
from tests.support.packed_transforms_oracle import as_array, dtype_of

WORDS = (b"", b"a", b"b", b"cat", b"0", b"-1", b"17", "\u00e9".encode(), b"a\0b", b"a" * 70)
LOWEST = {"int32": -(2**31), "int64": -(2**63)}


class HashTable(NamedTuple):
    """A hash table and what is in it."""

    table: Any
    contents: dict
    keys: str
    values: str

    @classmethod
    def of(cls, contents, keys="string", values="int64", mutable=False):
        """A StaticHashTable or a MutableHashTable."""
        given = tf.constant(list(contents), keys), tf.constant(list(contents.values()), values)
        if mutable:
            table = tf.lookup.experimental.MutableHashTable(keys, values, -1)
            table.insert(*given)
        else:
            table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(*given), -1)
        return cls(table, contents, keys, values)


def random_values(dtype, shape, seed=0):
    """An array with the values at which arithmetic changes among others."""
    random = np.random.default_rng(seed)
    if dtype == "string":
        return as_array((WORDS[i] for i in random.integers(0, len(WORDS), int(np.prod(shape)))), dtype, shape)
    if dtype == "bool":
        return random.integers(0, 2, shape).astype(bool)
    if dtype in LOWEST:
        rare = [LOWEST[dtype], LOWEST[dtype] + 1, -LOWEST[dtype] - 1, 0, -1]
        values = random.integers(-20, 20, shape)
    else:
        rare = [np.nan, np.inf, -np.inf, -0.0, 0.1, 2.0**31, -1e30]
        values = np.round(random.normal(size=shape) * 20, 1)
    return np.where(random.random(shape) < 0.1, random.choice(rare, shape), values).astype(dtype)


def assert_same(found, wanted):
    """The same dtype, shape and bits."""
    found = np.asarray(found)
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    np.testing.assert_array_equal(found, wanted)  # tells where they differ
    assert found.tobytes() == wanted.tobytes()


def check(features, programs, scalars=(), tables=(), boundaries=(), others=(), texts=()):
    """Asserts that op and oracle give the same bits. Returns the op's outputs."""
    handles = [table.table.resource_handle for table in tables]
    more = {"boundaries": boundaries, "others": others, "texts": texts}
    found = packed_transforms(features, programs, scalars=scalars, tables=handles, **more)
    contents = [table.contents for table in tables]
    wanted = oracle.packed_transforms(features, programs, scalars, contents, **more)
    for of_feature, wanted_of_feature in zip(found, wanted, strict=True):
        for one, one_wanted in zip(of_feature, wanted_of_feature, strict=True):
            assert_same(one, one_wanted)
    return found


def one(feature, *instructions, scalars=(), tables=(), boundaries=(), dtype=None):
    """The last value of a program over one feature, as op and oracle compute it."""
    feature = np.asarray(feature, dtype and (object if dtype == "string" else dtype))
    handles = [table.contents for table in tables]
    values = oracle.run_program(feature, instructions, [np.asarray(s) for s in scalars], handles, boundaries)
    last = f"v{len(instructions) - 1}"
    program = Program(instructions, [(last, dtype_of(values[last]))])
    return check([feature], [program], scalars, tables, boundaries)[0][0].numpy()


TABLES = {
    ("string", "int64"): {b"a": 0, b"cat": 2**40, b"17": -1, b"": 5},
    ("string", "int32"): {b"b": 2**31 - 1, b"0": 3},
    ("int64", "int64"): {0: 1, -1: -(2**63), 3: 2, 2**63 - 1: 9},
    ("int32", "int32"): {1: 1, 2: -2, -(2**31): 7},
    ("int64", "float32"): {2: 0.1, 5: -0.0, 0: 2.5},
}
SCALARS = ("", "a", 0, 3, -7, LOWEST["int64"], np.int32(0), np.int32(5), np.int32(-1), True, False)
SCALARS = tuple(
    np.array(s.encode() if isinstance(s, str) else s, object if isinstance(s, str) else None) for s in SCALARS
)
SCALARS += tuple(np.array(x, dtype) for dtype in ("float32", "float64") for x in (0.0, -3.5, np.nan))
TEXTS = (b"", b"_X_", b"\0")
OTHERS = ("string", "int64")
BOUNDARIES = (-10.0, -2.5, 0.0, 0.1, 0.1, 7.0)


_INTEGERS = ("int32", "int64")
_NUMBERS = (*_INTEGERS, "float32", "float64")
OPCODES = {  # the dtypes of their first operands
    **dict.fromkeys(("add", "sub", "mul", "max", "min", "floor_mod", "trunc_mod", "as_string"), _INTEGERS),
    **dict.fromkeys(("less", "less_equal", "greater", "greater_equal", "bucketize"), _NUMBERS),
    **dict.fromkeys(("equal", "not_equal", "select", "zeros_like", "take"), oracle.DTYPES),
    **dict.fromkeys(("cast", "ones_like"), oracle.DTYPES[:-1]),
    **dict.fromkeys(("and", "or", "not"), ("bool",)),
    **dict.fromkeys(("hash_legacy", "hash_fast", "hash_strong", "join"), ("string",)),
    "find": ("string", "int32", "int64"),
}


class _Writer:
    """Draws a program whose instructions fit each other; the oracle says whether it divides by zero."""

    def __init__(self, draw, dtype, others):
        self.draw = draw
        self.values = [("x", dtype, "all")]  # name, dtype, level
        self.values += [(f"c{i}", dtype_of(scalar), "one") for i, scalar in enumerate(SCALARS)]
        self.values += [(f"z{i}", "int64", "one") for i in range(len(TABLES))]
        self.values += [(f"y{i}", other, "all") for i, other in enumerate(others)]
        self.instructions = []
        self.mask = None

    def add(self):
        opcode = self.draw(st.sampled_from(sorted(OPCODES)))
        found = self._pick(lambda value: value[2] != "one" and value[1] in OPCODES[opcode])
        if found is None or (opcode == "take" and found[2] == "taken"):
            return
        operand, dtype, level = found
        words, result = self._words(opcode, operand, dtype, level)
        if words is not None:
            self.values.append((f"v{len(self.instructions)}", result, "taken" if opcode == "take" else level))
            self.instructions.append(" ".join([opcode, *words]))

    def _pick(self, fits):
        fitting = [value for value in self.values if fits(value)]
        return self.draw(st.sampled_from(fitting)) if fitting else None

    def _like(self, dtype, level):
        found = self._pick(lambda value: value[1] == dtype and value[2] in ("one", level))
        return found and found[0]

    def _words(self, opcode, operand, dtype, level):
        """The words after the opcode and the dtype of the result; (None, _): nothing fits."""
        number = st.integers(1, 2**63 - 1)
        if opcode == "cast":
            result = self.draw(st.sampled_from(oracle.DTYPES[:-1]))
            return [operand, result], result
        if opcode in ("hash_legacy", "hash_fast"):
            return [operand, str(self.draw(number))], "int64"
        if opcode == "hash_strong":
            return [operand, *(str(self.draw(number)) for _ in range(3))], "int64"
        if opcode == "bucketize":
            begin = self.draw(st.integers(0, len(BOUNDARIES)))
            return [operand, str(begin), str(self.draw(st.integers(begin, len(BOUNDARIES))))], "int32"
        if opcode == "find":
            return self._find(operand, dtype)
        if opcode == "take":
            mask = self.mask or self._pick(lambda value: value[1:] == ("bool", "all"))
            self.mask = mask
            return (None, None) if mask is None else ([operand, mask[0]], dtype)
        if opcode == "select":
            condition, other = self._like("bool", level), self._like(dtype, level)
            return [condition, operand, other], dtype
        if opcode in ("zeros_like", "ones_like", "as_string", "not"):
            return [operand], "string" if opcode == "as_string" else dtype
        pair = [operand, self._like(dtype, level)]
        if opcode == "join":
            text = str(self.draw(st.integers(0, len(TEXTS) - 1)))
            return [*(pair if self.draw(st.booleans()) else pair[::-1]), text], dtype
        result = dtype if OPCODES[opcode] == _INTEGERS else "bool"
        return pair if self.draw(st.booleans()) else pair[::-1], result

    def _find(self, operand, dtype):
        fitting = [(i, values) for i, (keys, values) in enumerate(TABLES) if keys == dtype]
        table, result = self.draw(st.sampled_from(fitting))
        default = self._pick(lambda value: value[1:] == (result, "one"))
        return [operand, default[0], str(table), result], result


@st.composite
def random_programs(draw, max_instructions=25, others=()):
    """A feature's dtype and a program whose outputs are all that can be outputs; `others` are dtypes of y0, y1, ..."""
    dtype = draw(st.sampled_from(oracle.DTYPES))
    writer = _Writer(draw, dtype, others)
    for _ in range(draw(st.integers(0, max_instructions))):
        writer.add()
    outputs = [(name, of) for name, of, level in writer.values if level != "one" and of != "string"]
    if writer.mask is not None:
        outputs.append(("indices", "int64"))
    return dtype, Program(writer.instructions, outputs)

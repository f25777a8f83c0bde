"""A slow, readable oracle of `Picasso>PackedTransforms`: programs run over one element after the other."""

import operator

import numpy as np
import tensorflow as tf

DTYPES = ("bool", "int32", "int64", "float32", "float64", "string")


def packed_transforms(features, programs, scalars=(), tables=(), boundaries=(), others=(), texts=()):
    """What the op returns, for inputs that it accepts.

    Args:
        features: arrays; strings are arrays of objects that are bytes.
        programs: one `Program` for each.
        scalars: arrays of rank 0.
        tables: dicts from keys to values.
        boundaries: of all bucketize instructions.
        others: arrays of the shape of each feature whose program reads them.
        texts: of all join instructions, bytes.
    """
    scalars = [np.asarray(scalar) for scalar in scalars]
    results = []
    for feature, program in zip(features, programs, strict=True):
        values = run_program(np.asarray(feature), program.instructions, scalars, tables, boundaries, others, texts)
        results.append([values[value] for value, _ in program.outputs])
    return results


def run_program(feature, instructions, scalars=(), tables=(), boundaries=(), others=(), texts=()):
    """All values of a program by name, "indices" among them where there is a mask."""
    values = {"x": feature}
    values |= {f"c{i}": scalar for i, scalar in enumerate(scalars)}
    values |= {f"z{i}": np.array(len(table), np.int64) for i, table in enumerate(tables)}
    values |= {f"y{i}": np.asarray(other) for i, other in enumerate(others)}
    for number, text in enumerate(instructions):
        opcode, *words = text.split()
        if opcode == "take":
            values["indices"] = np.argwhere(values[words[1]])
        values[f"v{number}"] = _result(opcode, words, values, tables, boundaries, texts)
    return values


def as_array(values, dtype, shape=None):
    """Python values as an array of a TensorFlow dtype. Integers wrap around."""
    values = list(values)
    if dtype in ("int32", "int64"):
        bits = int(dtype[3:])
        values = [(int(value) + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1) for value in values]
    array = np.empty(len(values), object if dtype == "string" else dtype)
    array[:] = values
    return array if shape is None else array.reshape(shape)


def dtype_of(array):
    return "string" if array.dtype == object or array.dtype.kind in "SU" else array.dtype.name


def floor_mod(a, b):
    return a % b


def trunc_mod(a, b):
    return abs(a) % abs(b) * (-1 if a < 0 else 1)


def cast(value, dtype):
    """One element. A float that an integer cannot hold becomes its lowest value, as on x86."""
    if dtype in ("int32", "int64") and isinstance(value, np.floating):
        limit = 2 ** (int(dtype[3:]) - 1)
        return int(value) if -limit - 1 < float(value) < limit else -limit
    with np.errstate(over="ignore"):
        return np.dtype(dtype).type(value) if dtype.startswith("float") else value


def bucket(value, boundaries):
    """How many boundaries a value is not below; integers are compared as float32, NaN is below none."""
    value = value if isinstance(value, np.float64) else np.float32(value)
    return sum(not value < np.float32(boundary) for boundary in boundaries)


_OF_INTEGERS = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "max": max,
    "min": min,
    "floor_mod": floor_mod,
    "trunc_mod": trunc_mod,
}
_TESTS = {
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "not": lambda a: not a,
}


def _result(opcode, words, values, tables, boundaries, texts):
    if opcode == "take":
        return values[words[0]][values[words[1]]]
    operands = [values[word] for word in words if word in values]
    size = max((operand.shape for operand in operands), key=len)
    columns = [np.broadcast_to(operand, size).ravel() for operand in operands]
    own = dtype_of(operands[0])
    if opcode in _OF_INTEGERS:
        found, dtype = [_OF_INTEGERS[opcode](int(a), int(b)) for a, b in zip(*columns, strict=True)], own
    elif opcode in _TESTS:
        found, dtype = [_TESTS[opcode](*row) for row in zip(*columns, strict=True)], "bool"
    elif opcode == "select":
        found, dtype = [a if chosen else b for chosen, a, b in zip(*columns, strict=True)], dtype_of(operands[1])
    elif opcode in ("zeros_like", "ones_like"):
        zero = b"" if own == "string" else 0
        found, dtype = [1 if opcode == "ones_like" else zero for _ in columns[0]], own
    elif opcode == "cast":
        found, dtype = [cast(value, words[1]) for value in columns[0]], words[1]
    elif opcode == "as_string":
        found, dtype = [str(int(value)).encode() for value in columns[0]], "string"
    elif opcode == "join":
        found, dtype = [a + texts[int(words[2])] + b for a, b in zip(*columns, strict=True)], "string"
    elif opcode in ("hash_legacy", "hash_fast", "hash_strong"):
        found, dtype = _hashed(opcode, columns[0], [int(word) for word in words[1:]]), "int64"
    elif opcode == "bucketize":
        found, dtype = [bucket(value, boundaries[int(words[1]) : int(words[2])]) for value in columns[0]], "int32"
    else:
        table = tables[int(words[2])]
        found, dtype = [table.get(key, default) for key, default in zip(*columns, strict=True)], words[3]
    return as_array(found, dtype, size)


def _hashed(opcode, texts, numbers):
    """TensorFlow's own: what a hash is, its kernels say."""
    if not len(texts):
        return []
    if opcode == "hash_legacy":
        return tf.raw_ops.StringToHashBucket(string_tensor=texts, num_buckets=numbers[0]).numpy()
    if opcode == "hash_fast":
        return tf.strings.to_hash_bucket_fast(texts, numbers[0]).numpy()
    return tf.strings.to_hash_bucket_strong(texts, numbers[0], numbers[1:]).numpy()

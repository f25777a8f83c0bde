"""A slow, readable oracle of `Picasso>PackedCrosses`: one combination of features after the other."""

import itertools
from typing import NamedTuple

import numpy as np
import tensorflow as tf

_MUL, _MASK = 0xC6A4A7935BD1E995, 2**64 - 1


class Rows(NamedTuple):
    """A column: the features of each row, bytes or ints, sparse or as a matrix."""

    rows: list
    dtype: str
    is_sparse: bool

    def tensor(self):
        flat = [feature for row in self.rows for feature in row]
        values = tf.constant(flat, self.dtype)
        if not self.is_sparse:
            return tf.reshape(values, [len(self.rows), len(self.rows[0]) if self.rows else 1])
        indices = [[row, position] for row, found in enumerate(self.rows) for position in range(len(found))]
        shape = [len(self.rows), max(map(len, self.rows), default=0)]
        return tf.SparseTensor(np.array(indices, np.int64).reshape(-1, 2), values, shape)


def packed_crosses(columns, num_buckets, hash_key):
    """The outputs of one cross by name."""
    hashes = [[_hash(combination, num_buckets, hash_key) for combination in itertools.product(*row)]
              for row in zip(*(column.rows for column in columns), strict=True)]  # fmt: skip
    most = max(map(len, hashes), default=0)
    dense = np.zeros([len(hashes), most], np.int64)
    for row, found in enumerate(hashes):
        dense[row, : len(found)] = found
    indices = [[row, position] for row, found in enumerate(hashes) for position in range(len(found))]
    return {
        "indices": np.array(indices, np.int64).reshape(-1, 2),
        "values": np.array([value for found in hashes for value in found], np.int64),
        "shape": np.array([len(hashes), most], np.int64),
        "dense": dense,
    }


def _hash(features, num_buckets, hash_key):
    found = hash_key & _MASK
    for feature in features:
        found = _concatenated(found, _fingerprint(feature))
    return found % (num_buckets or 2**63 - 1)


def _fingerprint(feature):
    """TensorFlow's own of strings: what it is, its kernel says."""
    if isinstance(feature, int):
        return feature & _MASK
    return int.from_bytes(tf.raw_ops.Fingerprint(data=[feature], method="farmhash64").numpy().tobytes(), "little")


def _concatenated(first, second):
    found = (first ^ _MUL) ^ (_mixed(second * _MUL & _MASK) * _MUL & _MASK)
    return _mixed(_mixed(found * _MUL & _MASK) * _MUL & _MASK)


def _mixed(value):
    return value ^ (value >> 47)

"""Criteo: 26 categorical fields and 13 dense columns, read from the Kaggle file or generated in its shape.

A line of the Kaggle file holds 40 tab-separated values: the label, 13 integers and 26 hexadecimal categories; any but
the label may be blank. Lines are in order of time, so the last fifth is the test part. The tables are as large as the
Kaggle data needs them, but at least a thousand and at most a million rows: a few huge fields and many small ones.
"""

import itertools
import os

import numpy as np

from examples.click_data import ClickData, DataError, Features, split_rows

INTEGERS = 13
# Distinct values of each categorical field in the Kaggle data, which DLRM's own log of a run on it lists.
CARDINALITIES = (1460, 583, 10131227, 2202608, 305, 24, 12517, 633, 3, 93145, 5683, 8351593, 3194, 27, 14992, 5461306)
CARDINALITIES += (10, 5652, 2173, 4, 7046547, 18, 15, 286181, 105, 142572)
CATEGORIES = len(CARDINALITIES)
TEST_FRACTION = 0.2
TABLE_ROWS = {f"c{i + 1}": min(max(count, 1_000), 1_000_000) for i, count in enumerate(CARDINALITIES)}

_SCATTER = 1_000_003  # a prime above every table size, so that multiplying by it permutes the ids of each table


def load_criteo(path: str | None, rows: int, seed: int = 0) -> ClickData:
    """Reads the Kaggle file, or generates data of its shape.

    The model's linear part gets the dense columns only: the tables are these 26 and no others.

    Args:
        path: the tab-separated file, or None to generate.
        rows: how many rows to generate, or to read at most; at least 2.
        seed: of the generated data; a file is read as it is.

    Returns:
        The data.

    Raises:
        DataError: if the file is missing, too short or malformed.
    """
    features, labels = read_kaggle(path, rows) if path else generate(rows, seed)
    in_train = np.arange(len(labels)) < round((1 - TEST_FRACTION) * len(labels))
    train, test = split_rows(features, labels, in_train)
    if not train.rows or not test.rows:
        raise DataError(f"At least 3 rows are needed for a train and a test part. Received: {len(labels)} rows.")
    source = os.path.basename(path) if path else "generated data"
    return ClickData(f"Criteo shape, {source}, split by position", TABLE_ROWS, (), train, test)


def read_kaggle(path: str, rows: int) -> tuple[Features, np.ndarray]:
    """Reads up to `rows` lines.

    Args:
        path: the tab-separated file.
        rows: the most lines to read.

    Returns:
        (features, labels): int32 ids [rows] per field, where 0 is a blank and other categories are hashed to
        [1, table rows); float32 "dense" [rows, 13], `log(1 + x)` with blanks and negatives as 0; float32 labels [rows].

    Raises:
        DataError: if the file cannot be opened, or a line is malformed; the message has the line's number.
    """
    labels, dense, ids = [], [], []
    try:
        with open(path, encoding="ascii", errors="replace") as lines:
            for number, line in enumerate(itertools.islice(lines, rows), start=1):
                try:
                    label, integers, categories = _parse(line)
                except ValueError as error:
                    raise DataError(f"Line {number} of `{path}` is malformed: {error}.") from error
                labels.append(label)
                dense.append(integers)
                ids.append(categories)
    except OSError as error:
        raise DataError(f"The Criteo file `{path}` cannot be read: {error.strerror}.") from error
    if not labels:
        raise DataError(f"The Criteo file `{path}` has no lines.")

    features = dict(zip(TABLE_ROWS, np.array(ids, np.int32).T.copy(), strict=True))
    features["dense"] = np.log1p(np.maximum(np.array(dense, np.float32), 0))
    return features, np.array(labels, np.float32)


def _parse(line: str) -> tuple[int, list[int], list[int]]:
    """Returns (label, 13 integers, 26 ids) of one line; raises ValueError that says what is wrong with it."""
    values = line.rstrip("\r\n").split("\t")
    if len(values) != 1 + INTEGERS + CATEGORIES:
        raise ValueError(f"it has {len(values)} tab-separated values where 40 are expected")
    if values[0] not in ("0", "1"):
        raise ValueError(f"the label must be 0 or 1, not {values[0]!r}")
    integers = [_number(value, 10) if value else 0 for value in values[1 : 1 + INTEGERS]]
    ids = [
        _number(value, 16) % (rows - 1) + 1 if value else 0
        for value, rows in zip(values[1 + INTEGERS :], TABLE_ROWS.values(), strict=True)
    ]
    return int(values[0]), integers, ids


def _number(text: str, base: int) -> int:
    try:
        return int(text, base)
    except ValueError:
        kind = "an integer" if base == 10 else "a hexadecimal category"
        raise ValueError(f"{text!r} is not {kind}") from None


def generate(rows: int, seed: int) -> tuple[Features, np.ndarray]:
    """Draws rows from a hidden logistic model, so that there is something to learn and an AUC has a meaning.

    Ids follow Zipf's law with exponent 1: rank r of n has a probability near 1 / (r log n), drawn by inverting the
    distribution in closed form. Ranks are then scattered over the table, for real hot rows are not neighbours.

    Args:
        rows: how many rows.
        seed: of everything drawn.

    Returns:
        (features, labels): as `read_kaggle`.
    """
    random = np.random.default_rng(seed)
    features = {}
    dense = random.normal(size=(rows, INTEGERS)).astype(np.float32)
    logits = dense @ random.normal(scale=0.2, size=INTEGERS).astype(np.float32) - 1
    for name, table_rows in TABLE_ROWS.items():
        rank = np.floor(np.exp(random.random(rows) * np.log(table_rows + 1))).astype(np.int64) - 1
        features[name] = (np.minimum(rank, table_rows - 1) * _SCATTER % table_rows).astype(np.int32)
        logits += random.normal(scale=0.4, size=table_rows).astype(np.float32)[features[name]]
    features["dense"] = dense
    labels = random.random(rows) < 1 / (1 + np.exp(-logits))
    return features, labels.astype(np.float32)

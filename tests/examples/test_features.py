"""The example data: its size, bounds, determinism, and what a bad file is told."""

import numpy as np
import pandas as pd
import pytest

from examples import criteo_features
from examples.click_data import ClickData, DataError
from examples.criteo_features import TABLE_ROWS, load_criteo
from examples.movielens_features import index_values, load_movielens

BLANK = "1" + "\t" * 39
FULL = "\t".join(["0", *(str(i) for i in range(13)), *(f"{i:08x}" for i in range(26))])


@pytest.fixture(scope="module")
def movielens() -> ClickData:
    return load_movielens()


def assert_consistent(data: ClickData) -> None:
    """Every part has all fields, with ids inside their table and finite dense columns."""
    for part in (data.train, data.test):
        assert set(part.features) == {*data.table_rows, "dense"}
        assert part.labels.dtype == np.float32
        assert set(np.unique(part.labels)) <= {0.0, 1.0}
        assert part.features["dense"].dtype == np.float32
        assert np.isfinite(part.features["dense"]).all()
        for name, rows in data.table_rows.items():
            ids = part.features[name]
            assert (ids.shape, ids.dtype) == ((part.rows,), np.int32), name
            assert 0 <= ids.min() <= ids.max() < rows, name


def assert_equal(first: ClickData, second: ClickData) -> None:
    assert first.table_rows == second.table_rows
    for a, b in ((first.train, second.train), (first.test, second.test)):
        np.testing.assert_array_equal(a.labels, b.labels)
        for name in a.features:
            np.testing.assert_array_equal(a.features[name], b.features[name], err_msg=name)


def test_movielens_has_every_rating_and_over_thirty_fields(movielens):
    assert movielens.train.rows + movielens.test.rows == 100_004
    assert movielens.test.rows == 20_001
    assert len(movielens.table_rows) == 35
    assert set(movielens.wide_fields) <= set(movielens.table_rows)
    assert movielens.dense_columns == 5
    assert_consistent(movielens)


def test_movielens_vocabularies_have_no_unused_row(movielens):
    for name, rows in movielens.table_rows.items():
        used = np.unique(movielens.train.features[name])
        assert used[used > 0].tolist() == list(range(1, rows)), name


def test_movielens_labels_are_not_one_sided(movielens):
    assert 0.4 < movielens.train.labels.mean() < 0.6
    assert 0.4 < movielens.test.labels.mean() < 0.6


def test_movielens_dense_columns_are_standardised(movielens):
    dense = movielens.train.features["dense"]
    np.testing.assert_allclose(dense.mean(axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(dense.std(axis=0), 1, atol=1e-2)


def test_movielens_is_deterministic_and_split_by_the_seed(movielens):
    assert_equal(movielens, load_movielens())
    assert not np.array_equal(movielens.train.labels, load_movielens(seed=1).train.labels)


def test_index_values_keeps_zero_for_absent_and_unseen():
    values = pd.Series(["b", None, "a", "b", "c"])
    ids, rows = index_values(values, np.array([True, True, True, True, False]))
    assert ids.tolist() == [2, 0, 1, 2, 0]
    assert rows == 3


def test_batched_drops_the_remainder_and_refuses_less_than_a_batch(movielens):
    batches = movielens.test.batched(1000)
    assert batches.labels.shape == (20, 1000)
    assert batches.features["dense"].shape == (20, 1000, 5)
    np.testing.assert_array_equal(batches.features["user"].ravel(), movielens.test.features["user"][:20_000])
    with pytest.raises(DataError, match="`batch_size=20002`"):
        movielens.test.batched(20_002)


def test_generated_criteo_has_its_shape_and_is_deterministic():
    data = load_criteo(None, 5000)
    assert (data.train.rows, data.test.rows, data.dense_columns) == (4000, 1000, 13)
    rows = list(data.table_rows.values())
    assert (len(rows), min(rows), max(rows), sum(rows)) == (26, 1_000, 1_000_000, 5_578_569)
    assert rows[:3] == [1_460, 1_000, 1_000_000]
    assert data.wide_fields == ()
    assert_consistent(data)
    assert_equal(data, load_criteo(None, 5000))
    assert not np.array_equal(data.train.labels, load_criteo(None, 5000, seed=1).train.labels)


def test_generated_criteo_ids_are_skewed_and_scattered():
    ids = load_criteo(None, 5000).train.features["c3"]
    counts = np.sort(np.unique(ids, return_counts=True)[1])[::-1]
    assert counts[0] > 0.03 * len(ids)  # Zipf over a million ids: the hottest has about one in twenty
    assert len(counts) > 0.3 * len(ids)
    assert ids.max() > 900_000


def write(tmp_path, *lines: str) -> str:
    path = tmp_path / "criteo.txt"
    path.write_text("".join(line + "\n" for line in lines))
    return str(path)


def test_criteo_file_is_read_with_blanks_and_row_limit(tmp_path):
    path = write(tmp_path, FULL, BLANK, FULL.replace("\t12\t", "\t-2\t"), FULL, BLANK, "not read")
    data = load_criteo(path, 5)
    assert (data.train.rows, data.test.rows) == (4, 1)
    assert_consistent(data)
    assert data.train.labels.tolist() == [0, 1, 0, 0]
    np.testing.assert_allclose(data.train.features["dense"][0], np.log1p(np.arange(13)), rtol=1e-6)
    assert data.train.features["dense"][1].tolist() == [0] * 13
    assert data.train.features["dense"][2, 12] == 0  # negatives count as 0
    first = [int(data.train.features[name][0]) for name in TABLE_ROWS]
    assert first == [i + 1 for i in range(26)]  # a category of value i, past the row for blanks
    assert all(data.train.features[name][1] == 0 for name in TABLE_ROWS)


def test_criteo_categories_are_hashed_into_the_table(tmp_path):
    path = write(tmp_path, *[FULL.replace("00000000", "ffffffff")] * 3)
    features, _ = criteo_features.read_kaggle(path, 10)
    assert features["c1"].tolist() == [0xFFFFFFFF % 1459 + 1] * 3


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("1\t2\t3", "it has 3 tab-separated values where 40 are expected"),
        ("2" + BLANK[1:], "the label must be 0 or 1, not '2'"),
        (FULL.replace("\t12\t", "\tx\t"), "'x' is not an integer"),
        (FULL.replace("00000007", "0000000g"), "'0000000g' is not a hexadecimal category"),
    ],
)
def test_malformed_criteo_line_is_named(tmp_path, line, reason):
    path = write(tmp_path, FULL, BLANK, line)
    with pytest.raises(DataError) as caught:
        load_criteo(path, 10)
    assert str(caught.value) == f"Line 3 of `{path}` is malformed: {reason}."


def test_criteo_file_that_is_missing_empty_or_short(tmp_path):
    with pytest.raises(DataError, match="cannot be read: No such file or directory"):
        load_criteo(str(tmp_path / "missing"), 10)
    with pytest.raises(DataError, match="has no lines"):
        load_criteo(write(tmp_path), 10)
    with pytest.raises(DataError, match="At least 3 rows"):
        load_criteo(write(tmp_path, FULL), 10)

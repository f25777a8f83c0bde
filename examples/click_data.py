"""The form in which the example data sets reach the example model: numpy arrays, already split into train and test."""

import dataclasses

import numpy as np

Features = dict[str, np.ndarray]


class DataError(ValueError):
    """The data cannot be used as asked; the message is one full sentence for the person who asked."""


@dataclasses.dataclass(frozen=True)
class Part:
    """One side of the split.

    Attributes:
        features: one int32 array of ids, shape [rows], for each categorical field, and under "dense" one float32 array,
            shape [rows, dense columns].
        labels: float32, shape [rows]; 1 for a positive example, else 0.
    """

    features: Features
    labels: np.ndarray

    @property
    def rows(self) -> int:
        """Number of examples."""
        return len(self.labels)

    def batched(self, batch_size: int) -> "Part":
        """Returns the part with a leading batch axis: [rows // batch_size, batch_size, ...]; the remainder is dropped.

        Batching once, ahead of time, keeps the input pipeline out of the step time: a batch is then one contiguous copy
        per field and not `batch_size` single elements.

        Args:
            batch_size: examples per batch, at least 1.

        Raises:
            DataError: if there is not one full batch.
        """
        batches = self.rows // batch_size
        if not batches:
            raise DataError(
                f"`batch_size` must not exceed the {self.rows} rows at hand. Received: `batch_size={batch_size}`."
            )
        kept = batches * batch_size

        def split(array: np.ndarray) -> np.ndarray:
            return array[:kept].reshape(batches, batch_size, *array.shape[1:])

        return Part({name: split(array) for name, array in self.features.items()}, split(self.labels))


@dataclasses.dataclass(frozen=True)
class ClickData:
    """A data set for click-through or preference models.

    Attributes:
        name: what the data is and how it was split, for people.
        table_rows: rows of the embedding table of each categorical field, in the order of the model's inputs. Ids of
            the field lie in [0, rows).
        wide_fields: the fields that also enter the linear part of the model; may be empty.
        train: the part to train on.
        test: the part that is held out.
    """

    name: str
    table_rows: dict[str, int]
    wide_fields: tuple[str, ...]
    train: Part
    test: Part

    @property
    def dense_columns(self) -> int:
        """Width of the "dense" feature."""
        return self.train.features["dense"].shape[1]


def split_rows(features: Features, labels: np.ndarray, in_train: np.ndarray) -> tuple[Part, Part]:
    """Splits a feature dict in two.

    Args:
        features: arrays with a leading row axis.
        labels: float32, shape [rows].
        in_train: bool, shape [rows]; True sends the row to the train part.

    Returns:
        (train, test), each in the order of the rows given.
    """

    def part(mask: np.ndarray) -> Part:
        return Part({name: array[mask] for name, array in features.items()}, labels[mask])

    return part(in_train), part(~in_train)

"""The table that a method's encoder begins with, if it names a file of one."""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from xsoftmax.data.dataset import Dataset
from xsoftmax.data.pretrained import aligned, read_vectors
from xsoftmax.data.transform import Transform
from xsoftmax.internal.errors import InputError
from xsoftmax.methods import Method


class Pretrained(NamedTuple):
    """Rows of a table, (n_features, dimension), NaN where none is known; None: no row is. And a hash of them."""

    rows: np.ndarray | None = None
    digest: str = ""

    def without_rows(self) -> "Pretrained":
        """Forget the rows, which take memory, once they have been loaded."""
        return self._replace(rows=None)


def pretrained_table(method: Method, data: Dataset) -> Pretrained:
    """Read the table of a method's encoder, by the names of the data's features where it is of words.

    Raises
    ------
    InputError
        If it can't be read, or does not fit the method or the data.
    """
    if method.encoder is None or not method.encoder.table:
        return Pretrained()
    path = method.encoder.table
    rows = aligned(read_vectors(path), names_of_features(data.transform), data.n_features, path)
    if rows.shape[1] != method.encoder.dimension:
        raise InputError(
            f"method {method.name}: encoder has dimension {method.encoder.dimension}, its table {path} has "
            f"{rows.shape[1]} columns; set dimension: {rows.shape[1]}"
        )
    return Pretrained(rows, hashlib.sha256(rows.tobytes()).hexdigest())


def names_of_features(transform: Transform | None) -> Sequence[str]:
    """Name the features that a transform makes: words, or columns; empty where they have no names."""
    if transform is None or any(step.kind == "pca" for step in transform.steps):
        return ()
    if transform.parts:
        places = zip(transform.parts, transform.places, strict=True)
        named = (part.words if part.counts_words else transform.feature_names[place] for part, (_, place) in places)
        return [name for names in named for name in names]
    names = transform.words or transform.feature_names
    if transform.columns is None or not names or transform.words:
        return names
    return [names[column] for column in transform.columns]

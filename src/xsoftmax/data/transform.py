"""From a raw row to features: everything prepare learned, kept so that new rows go the same way."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array, hstack, issparse

from xsoftmax.data.normalization import Matrix, Step
from xsoftmax.data.rows import Columns, Form, Rows, Texts, row_not_finite
from xsoftmax.data.vocabulary import CELLS, Cut, known_words_counter
from xsoftmax.internal.errors import InputError


@dataclass(frozen=True)
class Transform(Form):
    """The way from raw rows of a form to features.

    Attributes
    ----------
    columns : ndarray of int64, or None
        Raw columns that are kept; None for all.
    words : tuple of str
        The vocabulary, of texts.
    token, weighting : str
        How texts are cut into words, and how counts are weighed: ``tfidf``, ``counts`` or ``binary``.
    idf : ndarray of shape (n_words,), float32, or None
    steps : tuple of Step
        Normalisation, in order.
    analyzer : str
    ngram_range : tuple of two int
    sublinear_tf : bool
        More of how texts are cut and weighed; see ``TextOptions``.
    parts : tuple of Transform
        Of a table, one for each part of its columns; their features stand one after the other, sparse.
    """

    columns: np.ndarray | None = None
    words: tuple[str, ...] = ()
    token: str = ""
    weighting: str = "counts"
    idf: np.ndarray | None = None
    steps: tuple[Step, ...] = ()
    analyzer: str = "word"
    ngram_range: tuple[int, ...] = (1, 1)
    sublinear_tf: bool = False
    parts: tuple["Transform", ...] = ()

    @property
    def n_raw(self) -> int:
        """Count the columns that ``finish`` takes."""
        if self.parts:
            return sum(part.n_raw for part in self.parts)
        if self.counts_words:
            return len(self.words)
        return self.n_columns if self.columns is None else len(self.columns)

    @property
    def counts_words(self) -> bool:
        """Whether features are words, or categories."""
        return self.kind in ("texts", "categories")

    @property
    def cut(self) -> Cut:
        """How a row is cut into words."""
        return Cut(self.token, CELLS if self.kind == "categories" else self.analyzer, self.ngram_range)

    @property
    def sha256(self) -> str:
        """What tells features apart: the same for transforms that make the same features of the same raw rows.

        Whether these are stored as sparse or dense rows makes no difference.
        """
        arrays = [("columns", self.columns), ("idf", self.idf)]
        for number, step in enumerate(self.steps):
            arrays.extend((f"{number} {step.kind} {name}", array) for name, array in sorted(step.arrays.items()))
        there = [(name, np.ascontiguousarray(array)) for name, array in arrays if array is not None]
        said = [self.n_columns, self.words, self.feature_names, self.token, self.weighting]
        more = (self.analyzer, self.ngram_range, self.sublinear_tf, tuple(part.sha256 for part in self.parts))
        said += [more] if more != ("word", (1, 1), False, ()) else []
        shapes = [(name, array.dtype.str, array.shape) for name, array in there]
        found = hashlib.sha256(json.dumps([said, [step.kind for step in self.steps], shapes]).encode())
        for _, array in there:
            found.update(array.tobytes())
        return found.hexdigest()

    def apply(self, rows: Texts | Iterable[str] | Matrix) -> Matrix:
        """Turn raw rows into features, float32.

        Parameters
        ----------
        rows : texts, csr_array or ndarray of shape (n_samples, n_columns); of a table Columns, or sequences of cells
            Narrower sparse rows are widened: their last columns were empty. Cells are texts, numbers, and categories
            as texts, in the order of ``feature_names``.

        Raises
        ------
        InputError
            If vectors are given where texts are needed or the other way round, or have more columns.
        """
        if self.parts:
            return self._normalized(beside(self._each_applied(rows)))
        if self.counts_words:
            return self.finish(self._counted(_texts(rows)))
        if not issparse(rows) and not isinstance(rows, np.ndarray):
            raise InputError("texts given, but the data were prepared from vectors; give rows of numbers")
        return self.finish(self._raw(rows))

    @cached_property
    def _counted(self) -> Callable[[Iterable[str]], csr_array]:
        """What counts the words of texts; kept, for to make it takes as long as many a text."""
        return known_words_counter(self.cut, self.words)

    def _each_applied(self, rows: Any) -> Iterator[csr_array]:
        """Turn each part of rows of a table into features."""
        if issparse(rows) or isinstance(rows, np.ndarray | Texts | str):
            raise InputError(
                f"the data were prepared from a table with {self.said_columns}; give rows with these columns"
            )
        columns = rows if isinstance(rows, Columns) else Columns.of_rows(list(rows), self)
        for part, features in zip(self.parts, columns.parts, strict=True):
            yield part.apply(features)

    def finish(self, X: Matrix) -> Matrix:
        """Weigh counts and normalise; the columns are those that are kept.

        Raises
        ------
        InputError
            If numbers become too large for float32.
        """
        if self.parts:
            ends = np.cumsum([part.n_raw for part in self.parts])
            raw = ((part, X[:, end - part.n_raw : end]) for part, end in zip(self.parts, ends, strict=True))
            return self._normalized(beside(part.finish(part.stored(each)) for part, each in raw))
        with np.errstate(over="ignore", invalid="ignore"):  # said below, with the row
            X = self._weighed(X)
        return self._normalized(X)

    def stored(self, X: Matrix) -> Matrix:
        """Store rows as their kind is: dense, or sparse."""
        return X.toarray() if self.kind == "dense" and issparse(X) else X

    def _normalized(self, X: Matrix) -> Matrix:
        with np.errstate(over="ignore", invalid="ignore"):  # said below, with the row
            for step in self.steps:
                X = step.apply(X)
        if (row := row_not_finite(X)) is not None:
            raise InputError(f"row {row}: its features are too large for float32 once normalised; scale them down")
        return X

    def rows_of(self, file: str | Path) -> Any:
        """Read new rows from a file, as ``apply`` takes them.

        Texts: ``.csv``, ``.tsv``, ``.parquet``, ``.jsonl`` (column as in the training data), ``.txt`` (one per line).
        Vectors: ``.csv``, ``.tsv``, ``.parquet``, ``.jsonl`` (columns by the names of the training data, where they
        had some), ``.npy``, ``.npz``, Extreme Classification text or svmlight.
        """
        # by name, so that the fingerprint of training does not contain the readers
        return import_module("xsoftmax.data.new_rows").read_new_rows(Path(file), self)

    def labelled_rows_of(self, file: str | Path) -> Rows:
        """Read new rows from a file together with their labels."""
        return import_module("xsoftmax.data.new_rows").read_labelled_rows(Path(file), self)

    def features_of(self, file: str | Path) -> Matrix:
        """Read new rows from a file and turn them into features; see ``rows_of``."""
        return self.apply(self.rows_of(file))

    def _weighed(self, X: Matrix) -> Matrix:
        if not issparse(X) or (self.weighting == "counts" and not self.sublinear_tf):
            return X
        counts = np.log(X.data) + 1 if self.sublinear_tf else X.data
        weights = np.ones(X.shape[1], dtype=np.float32) if self.idf is None else self.idf
        data = weights[X.indices] if self.weighting == "binary" else counts * weights[X.indices]
        return csr_array((data, X.indices, X.indptr), shape=X.shape)

    def _raw(self, X: Matrix) -> Matrix:
        """Bring raw vectors to the storage, width and columns of the training data."""
        X = csr_array(X, dtype=np.float32) if issparse(X) else np.asarray(X, dtype=np.float32)
        if X.shape[1] > self.n_columns or (X.shape[1] < self.n_columns and not issparse(X)):
            raise InputError(f"rows have {X.shape[1]} columns, the prepared data had {self.n_columns}")
        if issparse(X) and self.kind == "dense":
            X = X.toarray()
        elif self.kind == "sparse":
            X = csr_array(X)
        if X.shape[1] < self.n_columns:
            X = widened(X, self.n_columns)
        return X if self.columns is None else X[:, self.columns]


def widened(X: csr_array, n_columns: int) -> csr_array:
    """Add empty columns on the right."""
    return csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], n_columns))


def beside(parts: Iterable[Matrix]) -> csr_array:
    """Put features of the same rows beside each other."""
    return csr_array(hstack([csr_array(part) for part in parts], format="csr", dtype=np.float32))


def _texts(rows: Any) -> Texts:
    if isinstance(rows, Texts):
        return rows
    if issparse(rows) or (isinstance(rows, np.ndarray) and rows.dtype.kind not in "OU"):
        raise InputError("vectors given, but the data were prepared from texts; give one text per row")
    return Texts.of(list(rows))

"""From a raw row to features: everything prepare learned, kept so that new rows go the same way."""

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array, issparse

from xsoftmax.data.encoding import word_pattern
from xsoftmax.data.names import Names
from xsoftmax.data.normalization import Matrix, Step
from xsoftmax.data.rows import Form, Rows, Texts, row_not_finite
from xsoftmax.data.vocabulary import known_words_counter
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.hdf5 import attributes, put, put_text, text_of
from xsoftmax.internal.hdf5_checks import ContentError, check_array, check_below

if TYPE_CHECKING:
    import h5py

KINDS = ("texts", "sparse", "dense")
WEIGHTINGS = ("tfidf", "counts", "binary")


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
    """

    columns: np.ndarray | None = None
    words: tuple[str, ...] = ()
    token: str = ""
    weighting: str = "counts"
    idf: np.ndarray | None = None
    steps: tuple[Step, ...] = ()

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
        shapes = [(name, array.dtype.str, array.shape) for name, array in there]
        found = hashlib.sha256(json.dumps([said, [step.kind for step in self.steps], shapes]).encode())
        for _, array in there:
            found.update(array.tobytes())
        return found.hexdigest()

    def apply(self, rows: Texts | Iterable[str] | Matrix) -> Matrix:
        """Turn raw rows into features, float32.

        Parameters
        ----------
        rows : texts, csr_array or ndarray of shape (n_samples, n_columns)
            Narrower sparse rows are widened: their last columns were empty.

        Raises
        ------
        InputError
            If vectors are given where texts are needed or the other way round, or have more columns.
        """
        if self.kind == "texts":
            return self.finish(self._counted(_texts(rows)))
        if not issparse(rows) and not isinstance(rows, np.ndarray):
            raise InputError("texts given, but the data were prepared from vectors; give rows of numbers")
        return self.finish(self._raw(rows))

    @cached_property
    def _counted(self) -> Callable[[Iterable[str]], csr_array]:
        """What counts the words of texts; kept, for to make it takes as long as many a text."""
        return known_words_counter(self.token, self.words)

    def finish(self, X: Matrix) -> Matrix:
        """Weigh counts and normalise; the columns are those that are kept.

        Raises
        ------
        InputError
            If numbers become too large for float32.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # said below, with the row
            X = self._weighed(X)
            for step in self.steps:
                X = step.apply(X)
        if (row := row_not_finite(X)) is not None:
            raise InputError(f"row {row}: its features are too large for float32 once normalised; scale them down")
        return X

    def rows_of(self, file: str | Path) -> Any:
        """Read new rows from a file, as ``apply`` takes them.

        Texts: ``.csv``, ``.tsv``, ``.parquet`` (column as in the training data) or ``.txt`` (one per line).
        Vectors: ``.csv``, ``.tsv``, ``.parquet`` (columns by the names of the training data, where they had some),
        ``.npy``, ``.npz``, Extreme Classification text or svmlight.
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
        if not issparse(X) or self.weighting == "counts":
            return X
        weights = np.ones(X.shape[1], dtype=np.float32) if self.idf is None else self.idf
        data = weights[X.indices] if self.weighting == "binary" else X.data * weights[X.indices]
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

    def to_group(self, group: "h5py.Group") -> None:
        """Store in an HDF5 group."""
        put(group, kind=self.kind, n_columns=self.n_columns, weighting=self.weighting)
        put(group, steps=" ".join(step.kind for step in self.steps))
        put_text(group, "token", self.token)
        put_text(group, "source", json.dumps(self.source, sort_keys=True))
        if self.kind == "texts":
            Names(self.words).to_group(group.create_group("words"))
        if self.feature_names:
            Names(self.feature_names).to_group(group.create_group("feature_names"))
        for name, array in (("columns", self.columns), ("idf", self.idf)):
            if array is not None:
                group.create_dataset(name, data=array)
        for number, step in enumerate(self.steps):
            for name, array in sorted(step.arrays.items()):
                group.create_dataset(f"step-{number}/{name}", data=array)

    @classmethod
    def from_group(cls, group: "h5py.Group", n_features: int) -> "Transform":
        """Load what ``to_group`` stored of a transform to so many features.

        Raises
        ------
        ContentError
            If it is none.
        """
        found, names = attributes(group), {}
        for name in ("words", "feature_names"):
            names[name] = Names.from_group(group[name]) if name in group else Names()
            if (twice := names[name].repeated()) is not None:
                raise ContentError(f"{group.name}: {twice[:40]!r} comes twice in {name}")
        words, feature_names = tuple(names["words"]), tuple(names["feature_names"])
        kind, n_columns, weighting = str(found["kind"]), int(found["n_columns"]), str(found["weighting"])
        if kind not in KINDS or weighting not in WEIGHTINGS or n_columns < 0:
            raise ContentError(f"transform of {kind} with {n_columns} columns, {weighting}")
        if feature_names and len(feature_names) != n_columns:
            raise ContentError(f"transform of {n_columns} columns with {len(feature_names)} names")
        n = len(words) if kind == "texts" else n_columns
        if "columns" in group:
            check_array(group["columns"], np.int64, None)
            check_below(group["columns"], n_columns)
            n = len(group["columns"])
        if "idf" in group:
            check_array(group["idf"], np.float32, n)
            if not np.isfinite(group["idf"][()]).all():
                raise ContentError("weights of words that are NaN or infinite")
        steps = []
        for number, name in enumerate(str(found["steps"]).split()):
            arrays = group.get(f"step-{number}", {})
            step, n = Step.restored(name, {key: values[()] for key, values in arrays.items()}, n)
            steps.append(step)
        if n != n_features:
            raise ContentError(f"transform to {n} features, expected {n_features}")
        return cls(
            kind=kind,
            n_columns=n_columns,
            columns=group["columns"][()] if "columns" in group else None,
            words=words,
            token=word_pattern(text_of(group["token"]), "token", groups=1).pattern,
            weighting=weighting,
            idf=group["idf"][()] if "idf" in group else None,
            steps=tuple(steps),
            source=_source(json.loads(text_of(group["source"]))),
            feature_names=feature_names,
        )


def _source(found: Any) -> dict[str, Any]:
    """Check what a file says of the reader of its training rows, whose ``read_new`` takes options from it.

    Raises
    ------
    ContentError
        If it is nothing that a reader takes.
    """
    told = isinstance(found, dict) and isinstance(found.get("options", {}), dict)
    if not told or ("options" in found) > isinstance(found.get("format"), str):
        raise ContentError(f"source: {str(found)[:60]!r}, expected a format and its options")
    # by name, so that the fingerprint of training does not contain the readers
    import_module("xsoftmax.data.reading").check_options(found.get("format", ""), found.get("options", {}))
    return found


def widened(X: csr_array, n_columns: int) -> csr_array:
    """Add empty columns on the right."""
    return csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], n_columns))


def _texts(rows: Any) -> Texts:
    if isinstance(rows, Texts):
        return rows
    if issparse(rows) or (isinstance(rows, np.ndarray) and rows.dtype.kind not in "OU"):
        raise InputError("vectors given, but the data were prepared from texts; give one text per row")
    return Texts.of(list(rows))

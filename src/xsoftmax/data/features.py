"""Raw features of all parts in one shape: the same columns, before weights and normalisation."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

import numpy as np
from scipy.sparse import issparse

from xsoftmax.data import vocabulary
from xsoftmax.data.config import DatasetConfig, TextOptions
from xsoftmax.data.normalization import Matrix
from xsoftmax.data.rows import Columns, Rows, Texts
from xsoftmax.data.transform import Transform, widened
from xsoftmax.internal.errors import InputError


@dataclass(frozen=True)
class RawFeatures:
    """Matrices by part, and what their columns are.

    Attributes
    ----------
    matrices : dict of str to csr_array or ndarray, float32
    kind : str
        ``texts``, ``sparse`` or ``dense``.
    n_columns : int
        Columns of the raw vectors; 0 for texts.
    columns : ndarray or None
        Which raw columns are kept.
    words : list of str
        The word of each column, for texts.
    options : TextOptions
    max_features : int or None
    feature_names : tuple of str
        Names of the raw columns; empty where they have none.
    reader_options : mapping
        Options of the reader that new rows are read with.
    """

    matrices: dict[str, Matrix]
    kind: str
    n_columns: int
    columns: np.ndarray | None
    words: list[str]
    options: TextOptions
    max_features: int | None
    feature_names: tuple[str, ...]
    reader_options: Mapping[str, Any]

    @classmethod
    def of(cls, parts: Mapping[str, Rows], config: DatasetConfig) -> "RawFeatures":
        """Count words or align columns; truncate to the first ``max_features`` columns.

        Of texts, all words are kept here unless all rows decide on the vocabulary.
        """
        kind = kind_of(parts, config.name)
        if kind == "texts":
            return _of_texts(parts, config)
        aligned = {part: _shortened(rows) for part, rows in parts.items()}
        n_columns = max(X.shape[1] for X in aligned.values())
        aligned = {part: _aligned(X, n_columns, config.name) for part, X in aligned.items()}
        columns = None
        if config.max_features is not None and config.max_features < n_columns:
            columns = np.arange(config.max_features, dtype=np.int64)
            aligned = {part: X[:, : config.max_features] for part, X in aligned.items()}
        names, options = feature_names_of(parts, config.name), reader_options_of(parts, config)
        return cls(aligned, kind, n_columns, columns, [], config.text, config.max_features, names, options)

    def empty(self, part: str) -> np.ndarray:
        """Tell which rows have no feature; none counts as empty where there are no features at all."""
        X = self.matrices[part]
        if self.kind != "texts" and self.n_columns == 0:
            return np.zeros(X.shape[0], dtype=bool)
        return np.diff(X.indptr) == 0 if issparse(X) else ~X.any(axis=1)

    def with_words_of(self, part: str, rows: np.ndarray) -> "RawFeatures":
        """Keep the words that the given rows, which train, decide on; nothing to do for vectors."""
        if self.kind != "texts" or self.options.vocabulary == "all":
            return self
        return self._with_columns(
            vocabulary.kept_words(self.matrices[part][rows], self.options.min_df, self.max_features)
        )

    def _with_columns(self, kept: np.ndarray) -> "RawFeatures":
        matrices = {part: X[:, kept] for part, X in self.matrices.items()}
        return replace(self, matrices=matrices, words=[self.words[i] for i in kept])

    @property
    def n_raw(self) -> int:
        """Count the columns of the matrices."""
        return len(self.words) if self.kind == "texts" else self.n_columns

    def without_rows(self) -> "RawFeatures":
        """Forget the matrices."""
        return replace(self, matrices={})

    def transform(self, X: Matrix, config: DatasetConfig) -> Transform:
        """Make the transform, without normalisation; ``X`` are the training rows."""
        texts = self.kind == "texts"
        tfidf = texts and self.options.weighting == "tfidf"
        return Transform(
            kind=self.kind,
            n_columns=self.n_columns,
            columns=self.columns,
            words=tuple(self.words),
            token=self.options.token if texts else "",
            weighting=self.options.weighting if texts else "counts",
            idf=vocabulary.inverse_document_frequency(X) if tfidf else None,
            source={"format": config.format, "options": self.reader_options},
            feature_names=self.feature_names,
            analyzer=self.options.analyzer if texts else "word",
            ngram_range=self.options.ngram_range if texts else (1, 1),
            sublinear_tf=texts and self.options.sublinear_tf,
        )


def kind_of(parts: Mapping[str, Rows], name: str) -> str:
    """Tell the kind of rows that all parts have.

    Raises
    ------
    InputError
        If they have several.
    """
    kinds = {part: _kind(rows) for part, rows in parts.items()}
    if len(set(kinds.values())) > 1:
        raise InputError(f"{name}: parts are of different kinds: {kinds}")
    return next(iter(kinds.values()))


def _of_texts(parts: Mapping[str, Rows], config: DatasetConfig) -> RawFeatures:
    counts, words = vocabulary.count_words(_joined(parts), config.text.cut)
    ends = np.cumsum([rows.n_samples for rows in parts.values()])
    starts = ends - [rows.n_samples for rows in parts.values()]
    matrices = {part: counts[a:b] for part, a, b in zip(parts, starts, ends, strict=True)}
    options = reader_options_of(parts, config)
    features = RawFeatures(matrices, "texts", 0, None, words, config.text, config.max_features, (), options)
    if config.text.vocabulary == "train":
        return features
    return features._with_columns(vocabulary.kept_words(counts, config.text.min_df, config.max_features))


def feature_names_of(parts: Mapping[str, Rows], name: str) -> tuple[str, ...]:
    """Give the names of columns, which all parts have in the same order."""
    found = {part: rows.feature_names for part, rows in parts.items()}
    first, names = next(iter(found.items()))
    for part, others in found.items():
        if len(others) == len(names) and others != names:
            own, other = next(pair for pair in zip(names, others, strict=True) if pair[0] != pair[1])
            raise InputError(
                f"{name}: where {first} has the column {own!r}, {part} has {other!r}; give both the same columns in"
                " the same order"
            )
    return names


def reader_options_of(parts: Mapping[str, Rows], config: DatasetConfig) -> dict[str, Any]:
    """Give the options that new rows are read with: those of the description, as the first part has them."""
    return {**config.options, **next(iter(parts.values())).options}


def _joined(parts: Mapping[str, Rows]) -> Texts:
    """Walk through the texts of all parts, as many of each as there are labelled rows."""

    def walk() -> Iterator[str]:
        return chain.from_iterable(islice(iter(rows.features), rows.n_samples) for rows in parts.values())

    return Texts(walk, sum(rows.n_samples for rows in parts.values()))


def _kind(rows: Rows) -> str:
    if isinstance(rows.features, Texts | Columns):
        return "texts" if isinstance(rows.features, Texts) else "table"
    return "sparse" if issparse(rows.features) else "dense"


def _shortened(rows: Rows) -> Matrix:
    """Cut to the rows that have labels entries, and drop stored zeros."""
    X = rows.features
    if X.shape[0] != rows.n_samples:
        X = X[: rows.n_samples]
    if issparse(X) and not X.data.all():
        X.eliminate_zeros()
    return X


def _aligned(X: Matrix, n_columns: int, name: str) -> Matrix:
    if X.shape[1] == n_columns:
        return X
    if not issparse(X):
        raise InputError(f"{name}: parts have {X.shape[1]} and {n_columns} columns; they must agree")
    return widened(X, n_columns)

"""What a reader returns: rows of features or texts, each with its labels."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain
from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import csr_array, issparse

from xsoftmax.internal.errors import InputError

CHECKED_AT_ONCE = 2**16
SHOWN = 5  # names of columns
NOT_TEXT = re.compile(r"[\0\ud800-\udfff]")


def csr_of(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, n_features: int) -> csr_array:
    """Make a CSR array; scipy keeps 4-byte indices only if ``indptr`` has them too."""
    if indptr[-1] < 2**31:
        indptr = indptr.astype(np.int32)
    return csr_array((data, indices, indptr), shape=(indptr.size - 1, n_features))


def row_not_finite(X: Any) -> int | None:
    """Find the first row of a table, dense or CSR, with a number that is NaN or infinite."""
    values = X.data if issparse(X) else X
    for start in range(0, len(values) if values.size else 0, CHECKED_AT_ONCE):
        block = np.isfinite(values[start : start + CHECKED_AT_ONCE])
        if not block.all():
            at = start + int(np.argwhere(~block)[0][0])
            return int(np.searchsorted(X.indptr, at, side="right")) - 1 if issparse(X) else at
    return None


def not_text(names: Iterable[str] | None) -> str | None:
    """Find a name that HDF5 cannot hold, with a NUL or a lone half of a surrogate pair in it."""
    return next((name for name in names or () if NOT_TEXT.search(name)), None)


@dataclass(frozen=True)
class Texts:
    """Texts that can be walked through more than once without lying in memory together.

    Attributes
    ----------
    walk : callable
        Begin a new walk over all texts.
    n_samples : int
        How many texts one walk yields.
    """

    walk: Callable[[], Iterator[str]]
    n_samples: int

    def __iter__(self) -> Iterator[str]:
        return self.walk()

    def __len__(self) -> int:
        return self.n_samples

    @classmethod
    def of(cls, texts: Sequence[str]) -> "Texts":
        """Wrap texts that are in memory anyway."""
        return cls(lambda: iter(texts), len(texts))


@dataclass(frozen=True)
class Columns:
    """Columns of a table that are of several kinds.

    Attributes
    ----------
    forms : tuple of Form
        As ``Form.parts`` has them.
    parts : tuple
        Of each form: Texts, of texts or of sequences of categories; or ndarray of shape (n_samples, n_columns).
    """

    forms: tuple["Form", ...]
    parts: tuple[Any, ...]

    def __len__(self) -> int:
        return len(self.parts[0])

    @classmethod
    def of_rows(cls, rows: Sequence[Sequence[Any]], form: "Form") -> "Columns":
        """Take rows of cells, in the order of a form's columns: texts, numbers, and categories as texts.

        Raises
        ------
        InputError
            If a row has other cells.
        """
        for place, row in enumerate(rows):
            if isinstance(row, str) or len(row) != form.n_columns:
                raise InputError(f"row {place} is {row!r:.40}; give {form.n_columns} cells, {form.said_columns}")
        return cls(form.parts, tuple(_part(rows, *each) for each in form.places))


Features: TypeAlias = Any  # csr_array or ndarray, float32, Texts, or Columns; scipy is untyped


@dataclass(frozen=True)
class Form:
    """What raw rows look like, and how they were read: by this, new rows are read.

    Attributes
    ----------
    kind : str
        Raw rows are ``texts``, ``sparse`` vectors or ``dense`` vectors; or rows of a ``table`` with several kinds of
        columns, each part of which is ``texts``, ``dense`` or ``categories``.
    n_columns : int
        Raw columns of vectors, or of a table; 0 for texts that are no part of one.
    source : mapping
        ``format`` and ``options`` of the reader that the training rows came from.
    feature_names : tuple of str
        Names of the raw columns, by which new tables are read; empty where they had none.
    parts : tuple of Form
        Of a table: of what kinds its columns are, and how many of each, one after the other.
    """

    kind: str
    n_columns: int = 0
    source: Mapping[str, Any] = field(default_factory=dict)
    feature_names: tuple[str, ...] = ()
    parts: tuple["Form", ...] = ()

    @property
    def places(self) -> list[tuple[str, slice]]:
        """Give the kind of each part of a table, and where its columns are among all."""
        ends = list(accumulate(part.n_columns for part in self.parts))
        return [(part.kind, slice(end - part.n_columns, end)) for part, end in zip(self.parts, ends, strict=True)]

    @property
    def said_columns(self) -> str:
        """Name the columns in a few words."""
        names = ", ".join(repr(name)[:40] for name in self.feature_names[:SHOWN])
        return f"the columns {names}{', ...' if len(self.feature_names) > SHOWN else ''}"


def _part(rows: Sequence[Sequence[Any]], kind: str, columns: slice) -> Any:
    """Take the cells of some columns."""
    cells: list[Any] = [row[columns] for row in rows]
    if kind != "dense":
        return Texts.of([row[0] for row in cells] if kind == "texts" else cells)
    try:
        return np.array(cells, np.float32).reshape(len(cells), columns.stop - columns.start)
    except (ValueError, TypeError) as error:
        raise InputError(f"a cell for a number is none ({error}); give numbers") from None


@dataclass(frozen=True)
class Rows:
    """Rows as a reader found them, in file order.

    Attributes
    ----------
    features : csr_array or ndarray of shape (n_samples, n_features), float32; or Texts or Columns
    label_starts : ndarray of shape (n_samples + 1,), int64
        Labels of row i are ``labels[label_starts[i]:label_starts[i + 1]]``, in file order.
    labels : ndarray, int64
        Label ids.
    label_names : tuple of str, or None
        Names by id; None if the ids are the names.
    feature_names : tuple of str
        Names of the columns of vectors, by which new rows are read; empty where columns have none.
    options : mapping
        Options of the reader that new rows are read with, where they differ from those of these rows.
    weight : ndarray of shape (n_samples,), float32, or None
        What each row counts; None: all the same.
    filtered : ndarray of shape (n_pairs, 2), int64, or None
        Pairs of a row and a label id that never count; None: there are none.
    """

    features: Features
    label_starts: np.ndarray
    labels: np.ndarray
    label_names: tuple[str, ...] | None = None
    feature_names: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    weight: np.ndarray | None = None
    filtered: np.ndarray | None = None

    @property
    def n_samples(self) -> int:
        """Count the rows."""
        return self.label_starts.size - 1

    @classmethod
    def with_names(cls, features: Features, names: Sequence[str], feature_names: Sequence[str] = ()) -> "Rows":
        """Make rows with one named label each; ids follow the order of the names."""
        distinct, ids = np.unique(np.asarray(names, dtype=object), return_inverse=True)
        rows = cls.with_ids(features, ids, tuple(str(name) for name in distinct))
        return replace(rows, feature_names=tuple(feature_names))

    @classmethod
    def with_several_names(cls, features: Features, names: Sequence[Sequence[str]]) -> "Rows":
        """Make rows with any number of named labels each; ids follow the order of the names."""
        distinct = tuple(sorted(set(chain.from_iterable(names))))
        ids = {name: number for number, name in enumerate(distinct)}
        starts = np.cumsum([0, *map(len, names)], dtype=np.int64)
        labels = np.fromiter((ids[name] for name in chain.from_iterable(names)), np.int64, int(starts[-1]))
        return cls(features, starts, labels, distinct)

    @classmethod
    def with_ids(cls, features: Features, ids: np.ndarray, label_names: tuple[str, ...] | None = None) -> "Rows":
        """Make rows with exactly one label each."""
        starts = np.arange(len(ids) + 1, dtype=np.int64)
        return cls(features, starts, np.asarray(ids, dtype=np.int64), label_names)

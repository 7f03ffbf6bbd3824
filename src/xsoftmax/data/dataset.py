"""What training needs of data: three splits of rows with a class each, from a file or from arrays in memory."""

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import csr_array, issparse

from xsoftmax.data import given_labels
from xsoftmax.data.config import PROPENSITY
from xsoftmax.data.label_sets import LabelSets
from xsoftmax.data.names import Names
from xsoftmax.data.normalization import Step
from xsoftmax.data.rows import csr_of, row_not_finite
from xsoftmax.data.transform import Transform
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.free_memory import check_free

SPLITS = ("train", "validation", "test")
Labelled: TypeAlias = tuple[Any, Any]  # X and y


@dataclass(frozen=True)
class Split:
    """Rows and their classes.

    Attributes
    ----------
    X : csr_array or C-ordered ndarray of shape (n_samples, n_features), float32
    y : ndarray of shape (n_samples,), int32
        Class of each row; of several labels the first.
    weight : ndarray of shape (n_samples,), float32, or None
        What each row counts; None: all the same.
    label_sets : LabelSets or None
        All labels of each row; None: ``y`` is all there is.
    filtered : LabelSets or None
        Of each row the classes that never count, of which it may have none: neither right nor wrong where rows are
        evaluated; None: there are none.
    """

    X: csr_array | np.ndarray
    y: np.ndarray
    weight: np.ndarray | None = None
    label_sets: LabelSets | None = None
    filtered: LabelSets | None = None

    @property
    def label_arrays(self) -> dict[str, np.ndarray]:
        """Give all arrays but the features, by the names that a prepared file has for them."""
        found = {"y": self.y} | ({} if self.weight is None else {"weight": self.weight})
        found |= {} if self.label_sets is None else self.label_sets.arrays
        if self.filtered is not None:
            found |= {"filter_starts": self.filtered.starts, "filter_classes": self.filtered.classes}
        return found

    def with_labels_of(self, X: Any, chosen: np.ndarray | slice) -> "Split":
        """Give the features of some rows, given by number, what else these rows have."""
        weight = None if self.weight is None else self.weight[chosen]
        label_sets = None if self.label_sets is None else self.label_sets.of_rows(chosen)
        filtered = None if self.filtered is None else self.filtered.of_rows(chosen)
        return Split(X, self.y[chosen], weight, label_sets, filtered)

    @property
    def pairs(self) -> "Split":
        """Give each row as often as it has labels, with one of them each time: a copy, where rows have several."""
        if self.label_sets is None:
            return self
        rows = self.label_sets.rows
        return Split(self.X[rows], self.label_sets.classes, None if self.weight is None else self.weight[rows])

    def class_counts(self, n_classes: int) -> np.ndarray:
        """Rows of each class, int64 of shape (n_classes,); a row with several labels counts for each."""
        return np.bincount(self.y if self.label_sets is None else self.label_sets.classes, minlength=n_classes)

    @property
    def n_samples(self) -> int:
        """Count the rows."""
        return len(self.y)

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        X = [self.X] if isinstance(self.X, np.ndarray) else [self.X.data, self.X.indices, self.X.indptr]
        return sum(each.nbytes for each in [*X, *self.label_arrays.values()])


class Dataset(ABC):
    """Training, validation and test rows, and what the classes are.

    ``Dataset.from_arrays`` makes one of arrays, ``open_prepared`` of a prepared file. Training never asks which.

    Attributes
    ----------
    name : str
        What messages and models call it.
    n_features, n_classes : int
    sparse : bool
        Whether rows are CSR, else they are dense.
    in_memory : bool
        Whether rows are in memory before they are asked for; others may be streamed from their file.
    weighted : frozenset of str
        Splits whose rows count differently; none, if it is empty.
    multilabel : bool
        Whether rows may have several labels.
    propensity : tuple of float
        A and B of the propensities of labels (Jain et al., KDD 2016).
    """

    name: str
    n_features: int
    n_classes: int
    sparse: bool
    in_memory: bool
    weighted: frozenset[str] = frozenset()
    multilabel: bool = False
    propensity: tuple[float, float] = PROPENSITY

    @staticmethod
    def from_arrays(
        X: Any,
        y: Any,
        *,
        validation: Labelled | None = None,
        test: Labelled | None = None,
        classes: Sequence[Any] | None = None,
        sample_weight: Any = None,
        feature_names: Sequence[str] = (),
        steps: Sequence[Step] = (),
        propensity: Sequence[float] = PROPENSITY,
        name: str = "arrays",
    ) -> "ArrayDataset":
        """Take rows that are in memory.

        Float32 rows, C-ordered or CSR with sorted indices, are used where they are, memory maps too: do not change
        them until the fit is done. Others are copied.

        Parameters
        ----------
        X : array or sparse array of shape (n_samples, n_features)
            Training rows: real, finite numbers.
        y : array of shape (n_samples,); array or sparse array of shape (n_samples, n_classes); or list of lists
            Label of each row: numbers, strings, or what else compares. Of rows with several labels an indicator
            matrix, 0 or 1 for each class, or a list, tuple or set of labels for each row, at least one.
        validation, test : tuple of array and array, optional
            X and y of other rows, of classes that are known.
        classes : sequence, optional
            All labels, in the order in which classes are numbered; default: those of ``y``, sorted, or the numbers of
            the indicator's columns.
        sample_weight : array of shape (n_samples,), optional
            What each training row counts, 0 or more; not all are 0.
        feature_names : sequence of str
            Names of the columns.
        steps : sequence of Step
            What has made these rows of raw ones, and is to be done to new ones.
        propensity : sequence of two float
            See ``Dataset``.
        name : str
            What messages and models call it.

        Raises
        ------
        InputError
            If shapes differ, a number is none, a label is unknown, or a row has none.
        """
        several, kind = given_labels.are_several(y), issparse(X)
        if classes is None:
            known = given_labels.distinct(y, f"{name}: y")
        else:
            known = given_labels.one_axis(classes, f"{name}: classes")
        rows = {"train": _split(X, y, known, f"{name}: training rows", kind, several, sample_weight)}
        for split, given in (("validation", validation), ("test", test)):
            others, labels = (rows["train"].X[:0], known[:0]) if given is None else given
            rows[split] = _split(others, labels, known, f"{name}: {split} rows", kind, several)
            width, asked = rows[split].X.shape[1], rows["train"].X.shape[1]
            if width != asked:
                raise InputError(f"{name}: {split} rows have {width} features, training rows {asked}; give the same")
        if len(feature_names) not in (0, rows["train"].X.shape[1]):
            raise InputError(f"{name}: {len(feature_names)} feature_names for {rows['train'].X.shape[1]} features")
        found = ArrayDataset(name, rows, known, tuple(feature_names), tuple(steps))
        found.propensity = _two(propensity, name)
        return found

    @property
    @abstractmethod
    def class_names(self) -> Names:
        """Names of classes 0..n_classes-1."""

    @property
    @abstractmethod
    def transform(self) -> Transform:
        """What makes features of new raw rows."""

    @property
    @abstractmethod
    def identity(self) -> str:
        """Digest of all rows, labels, weights and class names: what a fit was trained on, in hexadecimal digits.

        All labels of a row count, where it has several.
        """

    @property
    def dropped(self) -> dict[str, int]:
        """How many rows, labels of rows, or pairs of a filter were left out on the way here, by reason."""
        return {}

    @abstractmethod
    def n_samples(self, split: str) -> int:
        """Count the rows of a split."""

    @abstractmethod
    def n_entries(self, split: str) -> int:
        """Count the stored numbers of a split's features: of dense rows, all."""

    @abstractmethod
    def nbytes(self, split: str) -> int:
        """Bytes that a whole split takes in memory."""

    @abstractmethod
    def label_bytes(self, split: str) -> int:
        """Bytes of these that are not features: classes, 4 each, and where a row has several, 8 more for the row."""

    @abstractmethod
    def labels(self, split: str) -> np.ndarray:
        """Classes of all rows of a split, int32; of several labels the first."""

    @abstractmethod
    def rows(self, split: str, start: int, stop: int) -> Split:
        """Take rows start..stop-1 of a split; like a slice, the range is clipped to what is there."""

    @abstractmethod
    def split(self, split: str) -> Split:
        """Take a whole split; an InputError says if memory does not hold it."""

    @property
    @abstractmethod
    def class_counts(self) -> np.ndarray:
        """Training rows of each class, int64; a row with several labels counts for each."""

    def fits_in(self, n_bytes: int, splits: Iterable[str] = SPLITS) -> bool:
        """Tell whether these splits together take at most so much memory."""
        return sum(self.nbytes(split) for split in splits) <= n_bytes


class ArrayDataset(Dataset):
    """Rows in memory; made by ``Dataset.from_arrays``, which checks them.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        The labels as they were given, by class.
    """

    in_memory = True

    def __init__(
        self,
        name: str,
        splits: Mapping[str, Split],
        classes: np.ndarray,
        feature_names: tuple[str, ...] = (),
        steps: tuple[Step, ...] = (),
    ) -> None:
        self.name, self.classes, self._splits, self._feature_names = name, classes, dict(splits), feature_names
        self._steps = steps
        X = splits["train"].X
        self.n_features, self.n_classes, self.sparse = int(X.shape[1]), len(classes), issparse(X)
        self.weighted = frozenset(name for name, split in splits.items() if split.weight is not None)
        self.multilabel = any(split.label_sets is not None for split in splits.values())

    @cached_property
    def class_names(self) -> Names:  # type: ignore[override]
        """See ``Dataset``."""
        names = Names(str(label) for label in self.classes.tolist())
        if (twice := names.repeated()) is not None:
            raise InputError(f"{self.name}: two classes are written {twice!r}; give labels of one type")
        return names

    @property
    def transform(self) -> Transform:
        """See ``Dataset``: features are what was given, but for the steps that were said to have made them."""
        kind, names = "sparse" if self.sparse else "dense", self._feature_names
        return Transform(kind, n_columns=self.n_features, feature_names=names, steps=self._steps)

    @cached_property
    def identity(self) -> str:  # type: ignore[override]
        """See ``Dataset``; about a second per GB, when it is first asked for."""
        digest = hashlib.sha256(repr((list(self.class_names), self._feature_names, self.n_features)).encode())
        for split in self._splits.values():
            X = split.X
            parts = [X] if isinstance(X, np.ndarray) else [X.data, X.indices, X.indptr.astype(np.int64)]
            for name, part in [*(("X", part) for part in parts), *split.label_arrays.items()]:
                digest.update(f"{name}{part.dtype.str}{part.shape}".encode())
                if part.size:
                    digest.update(np.ascontiguousarray(part).view(np.uint8).data)
        return digest.hexdigest()

    @property
    def class_counts(self) -> np.ndarray:
        """See ``Dataset``."""
        return self.split("train").class_counts(self.n_classes)

    def n_samples(self, split: str) -> int:
        """See ``Dataset``."""
        return self.split(split).n_samples

    def n_entries(self, split: str) -> int:
        """See ``Dataset``."""
        X = self.split(split).X
        return int(X.size if isinstance(X, np.ndarray) else X.nnz)

    def nbytes(self, split: str) -> int:
        """See ``Dataset``."""
        return self.split(split).nbytes

    def label_bytes(self, split: str) -> int:
        """See ``Dataset``."""
        return sum(array.nbytes for array in self.split(split).label_arrays.values())

    def labels(self, split: str) -> np.ndarray:
        """See ``Dataset``; not a copy."""
        return self.split(split).y

    def rows(self, split: str, start: int, stop: int) -> Split:
        """See ``Dataset``."""
        found, chosen = self.split(split), slice(max(start, 0), max(stop, 0))
        return found.with_labels_of(found.X[chosen], chosen)

    def split(self, split: str) -> Split:
        """See ``Dataset``; not a copy."""
        return known_split(self._splits, split)


def check_plain(data: Dataset, who: str) -> None:
    """Make sure that rows have one label each, for those who take no others yet.

    Parameters
    ----------
    data : Dataset
    who : str
        Begins the message: "no method trains with", say.

    Raises
    ------
    InputError
        If not.
    """
    if data.multilabel:
        raise InputError(
            f"{data.name}: {who} several labels per row yet; prepare it with labels: pairs (a row for each label) or "
            "labels: first"
        )


def known_split(splits: Mapping[str, Any], name: str) -> Any:
    """Look up a split.

    Raises
    ------
    InputError
        If there is no such split.
    """
    if name not in SPLITS:
        raise InputError(f"unknown split {name!r}; known: {', '.join(SPLITS)}")
    return splits[name]


def _split(X: Any, y: Any, classes: np.ndarray, what: str, sparse: bool, several: bool, weight: Any = None) -> Split:
    label_sets = _label_sets(y, classes, what) if several else None
    labels = _one_each(y, classes, what) if label_sets is None else label_sets.classes[label_sets.starts[:-1]]
    features = features_of(X, what, sparse)
    if features.shape[0] != len(labels):
        raise InputError(f"{what}: X has {features.shape[0]} rows, y {len(labels)}; give a label for each row")
    weights = None if weight is None else _weights(weight, len(labels), what)
    return Split(features, labels, weights, label_sets)


def _one_each(y: Any, classes: np.ndarray, what: str) -> np.ndarray:
    if given_labels.are_several(y):
        raise InputError(f"{what}: several labels for each row, training rows have one; give these in the same way")
    return given_labels.places(given_labels.one_axis(y, f"{what}, labels"), classes, None, what)


def _label_sets(y: Any, classes: np.ndarray, what: str) -> LabelSets:
    found = given_labels.pairs_of(y, len(classes), f"{what}, labels")
    labels = found.labels if found.numbered else given_labels.places(found.labels, classes, found.rows, what)
    return LabelSets.of_pairs(found.rows, labels, found.n_samples)


def features_of(X: Any, what: str, sparse: bool) -> Any:
    """Bring features to float32, dense in C order or CSR with sorted indices; without a copy if they are that.

    Raises
    ------
    InputError
        If they are something else, or a number is none; ``what`` begins the message.
    """
    if issparse(X) != sparse:
        raise InputError(f"{what}: X is {'sparse' if issparse(X) else 'dense'}, training rows are not; give the same")
    try:
        X = csr_array(X) if sparse else np.asarray(X)
        if sparse:
            X.check_format(full_check=True)  # compiled code does not look whether a place is one
    except (TypeError, ValueError) as error:
        raise InputError(f"{what}: X is no array of numbers ({error})") from None
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise InputError(f"{what}: X has {X.ndim} axes of {X.dtype}; give a table of numbers, a row each")
    check_free(_copied(X), f"{what}: a copy of X as float32")
    with np.errstate(over="ignore"):  # told below, with the row
        features = _canonical(X) if sparse else np.ascontiguousarray(X, np.float32)
    if (row := row_not_finite(features)) is not None:
        raise InputError(f"{what}: row {row} of X has a number that is NaN, infinite, or too large; mend it")
    return features if sparse else plain(features)


def _copied(X: Any) -> int:
    """Bytes of what has to be copied to be as kernels read it."""
    if not issparse(X):
        return 0 if X.dtype == np.float32 and X.flags.c_contiguous else 4 * X.size
    sorts = 0 if X.has_canonical_format else X.data.nbytes + X.indices.nbytes
    return sorts + 4 * X.nnz * ((X.dtype != np.float32) + (X.indices.dtype != np.int32))


def _canonical(X: csr_array) -> csr_array:
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    indices = plain(X.indices.astype(np.int32, copy=False))
    found = csr_of(plain(X.data.astype(np.float32, copy=False)), indices, plain(X.indptr), X.shape[1])
    found.has_canonical_format = True
    return found


def _weights(weight: Any, n_samples: int, what: str) -> np.ndarray:
    found = np.asarray(weight, np.float32)
    if found.shape != (n_samples,):
        raise InputError(f"{what}: sample_weight has shape {found.shape}; give a number for each of {n_samples} rows")
    if not (np.isfinite(found) & (found >= 0)).all():
        raise InputError(f"{what}: sample_weight has numbers below 0, or that are none")
    if n_samples and not found.any():
        raise InputError(f"{what}: sample_weight is 0 for every row; give some of them more")
    return found


def _two(propensity: Sequence[float], name: str) -> tuple[float, float]:
    found = tuple(float(number) for number in propensity)
    if len(found) != 2 or not all(0 < number < math.inf for number in found):
        raise InputError(f"{name}: propensity is {found}; give two numbers above 0, such as {PROPENSITY}")
    return found


class _Writable:
    """Memory of another array, said to be writable."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array  # keeps the memory
        self.__array_interface__ = array.__array_interface__ | {"data": (array.ctypes.data, False)}


def plain(array: np.ndarray) -> np.ndarray:
    """Show an array, such as a read-only memory map, as one that may be written to, which nobody does.

    Kernels are compiled for the type of arrays in memory, and would be once more for arrays that may only be read.
    """
    return array if array.flags.writeable and type(array) is np.ndarray else np.asarray(_Writable(array))

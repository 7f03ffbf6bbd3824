"""Labels that are given as arrays or lists: one for each row, or several, as an indicator matrix or lists."""

from collections.abc import Iterable
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse

from xsoftmax.data.rows import row_not_finite
from xsoftmax.internal.errors import InputError

SETS = (list, set, frozenset)


class Pairs(NamedTuple):
    """Pairs of a row, of so many, and a label of it; a label is what was given, or with ``numbered`` its class."""

    rows: np.ndarray
    labels: np.ndarray
    n_samples: int
    numbered: bool


def are_several(y: Any) -> bool:
    """Tell whether rows may have several labels: of a table of more than one column, and of lists or sets."""
    if issparse(y) or _are_lists(y):
        return True
    found = np.asarray(y)
    if found.ndim == 2:
        return found.shape[1] != 1
    return found.dtype == object and any(isinstance(labels, SETS) for labels in found)


def distinct(y: Any, what: str) -> np.ndarray:
    """List the labels there are, in order; of an indicator matrix the numbers of its columns.

    Raises
    ------
    InputError
        If they do not compare, or are no labels.
    """
    if not are_several(y):
        return _sorted(one_axis(y, what), what)
    if _is_indicator(y):
        return np.arange(y.shape[1] if issparse(y) else np.asarray(y).shape[1])
    return _sorted(_of_lists(y, what).labels, what)


def one_axis(labels: Any, what: str) -> np.ndarray:
    """Bring labels, one for each row, to an array of one axis.

    Raises
    ------
    InputError
        If there are several, or one is no number.
    """
    found = np.asarray(labels)
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if found.ndim != 1:
        raise InputError(f"{what}: {found.ndim} axes; give one label for each row")
    if found.dtype.kind == "f" and (row := row_not_finite(found)) is not None:
        raise InputError(f"{what}: row {row} has label {found[row]}; leave it out")
    return found


def pairs_of(y: Any, n_classes: int, what: str) -> Pairs:
    """Take rows with all of their labels; labels that are given one to a row are sets of one.

    Parameters
    ----------
    y : array or sparse array of shape (n_samples, n_classes), or sequence
        0 or 1 for each class; or a list, tuple or set of labels for each row; or a label for each row.

    Raises
    ------
    InputError
        If a row has no label, or something is no indicator or no list of labels.
    """
    if not are_several(y):
        labels = one_axis(y, what)
        return Pairs(np.arange(len(labels)), labels, len(labels), False)
    found = _of_indicator(y, n_classes, what) if _is_indicator(y) else _of_lists(y, what)
    counts = np.bincount(found.rows, minlength=found.n_samples)
    if not counts.all():
        raise InputError(f"{what}: row {np.argmin(counts)} has no label; leave it out")
    return found


def places(labels: np.ndarray, classes: np.ndarray, rows: np.ndarray | None, what: str) -> np.ndarray:
    """Number each label by its class, int32; ``rows`` says which row each is of, None: one each.

    Raises
    ------
    InputError
        If one is of no class.
    """
    kinds = f"labels are {labels.dtype}, classes {classes.dtype}"
    if {labels.dtype.kind in "US", classes.dtype.kind in "US"} == {True, False}:  # NumPy would turn numbers into text
        raise InputError(f"{what}: {kinds}; give labels of one type")
    try:
        order = np.argsort(classes, kind="stable")
        at = np.minimum(np.searchsorted(classes, labels, sorter=order), max(0, len(classes) - 1))
    except TypeError:
        raise InputError(f"{what}: {kinds}; give labels of one type") from None
    found = order[at].astype(np.int32) if len(classes) else np.zeros(len(labels), np.int32)
    wrong = np.flatnonzero(classes[found] != labels) if len(classes) else np.arange(len(labels))
    if wrong.size:
        label = labels[wrong[0]].item() if isinstance(labels[wrong[0]], np.generic) else labels[wrong[0]]
        row = wrong[0] if rows is None else rows[wrong[0]]
        raise InputError(f"{what}: row {row} has label {label!r}, which no training row has; leave it out")
    return found


def _sorted(labels: np.ndarray, what: str) -> np.ndarray:
    try:
        return np.unique(labels)
    except TypeError as error:
        raise InputError(f"{what}: labels do not compare ({error}); give labels of one type") from None


def _is_indicator(y: Any) -> bool:
    return issparse(y) or (not _are_lists(y) and np.asarray(y).ndim == 2)


def _are_lists(y: Any) -> bool:
    """Tell whether this is a list of lists; one of arrays, if these are of different lengths."""
    if not isinstance(y, list | tuple):
        return False
    lengths = {labels.shape for labels in y if isinstance(labels, np.ndarray)}
    return len(lengths) > 1 or any(isinstance(labels, (*SETS, tuple)) for labels in y)


def _of_indicator(y: Any, n_classes: int, what: str) -> Pairs:
    found: Any = csr_array(y) if issparse(y) else np.asarray(y)
    if found.dtype.kind not in "fiub":
        raise InputError(f"{what}: a table of {found.dtype}; give 0 or 1 for each class, or a list for each row")
    if found.shape[1] != n_classes:
        raise InputError(f"{what}: {found.shape[1]} columns for {n_classes} classes; give one for each")
    if issparse(found):
        found = found.copy()
        found.sum_duplicates()
        rows, columns, values = np.repeat(np.arange(found.shape[0]), np.diff(found.indptr)), found.indices, found.data
    else:
        rows, columns = np.nonzero(found)
        values = found[rows, columns]
    wrong = np.flatnonzero((values != 1) & (values != 0))
    if wrong.size:
        where = f"row {rows[wrong[0]]}, column {columns[wrong[0]]}"
        raise InputError(f"{what}: {where} is {values[wrong[0]]}; give 0 or 1 for each class, or a list for each row")
    kept = values != 0
    return Pairs(rows[kept], columns[kept].astype(np.int32), found.shape[0], True)


def _of_lists(y: Iterable[Any], what: str) -> Pairs:
    lists = list(y)
    for row, labels in enumerate(lists):
        if not isinstance(labels, (*SETS, tuple, np.ndarray)):
            raise InputError(f"{what}: row {row} is {labels!r:.40}; give a list of labels for each row")
    if _looks_like_indicator(lists):
        raise InputError(f"{what}: lists of 0 and 1; give np.array(y) if these say which labels a row has")
    rows = np.repeat(np.arange(len(lists)), np.array([len(labels) for labels in lists], np.int64))
    try:
        labels = np.asarray(list(chain.from_iterable(lists)))
        one_axis(labels, what)
    except (ValueError, InputError):
        raise InputError(f"{what}: something in the lists is no label; give numbers or strings") from None
    return Pairs(rows, labels, len(lists), False)


def _looks_like_indicator(lists: list[Any]) -> bool:
    """Tell whether these are rather lists of 0 and 1 for each class, some more than once."""
    alike = len({len(labels) for labels in lists}) == 1 and all(isinstance(labels, list | tuple) for labels in lists)
    try:
        return alike and set(chain.from_iterable(lists)) <= {0, 1} and any(len(set(row)) < len(row) for row in lists)
    except TypeError:
        return False

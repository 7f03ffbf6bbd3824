"""Extreme Classification Repository, features and labels apart: ``trn_X_Xf.txt`` and ``trn_X_Y.txt``.

Each has a header, ``rows features`` or ``rows labels``, and for each row a line ``number:value ...``, from 0.
"""

from pathlib import Path

from xsoftmax.data.rows import Features, Form, Rows
from xsoftmax.data.sparse_matrix import check_together, read_labels, read_matrix
from xsoftmax.data.transform import widened
from xsoftmax.internal.errors import InputError

NEW_ROWS = ()


def read(*, features: Path, labels: Path) -> Rows:
    """Read features and labels; a row may have no label or several, which count in order of their numbers.

    Parameters
    ----------
    features, labels : Path
        Text, perhaps compressed, with as many rows.
    """
    X, found = _features(features), read_labels(labels)
    check_together(labels, found.n_samples, features, X.shape[0])
    if not X.shape[0]:
        raise InputError(f"{features}: no row in it")
    return Rows(X, found.starts, found.labels)


def read_new(path: Path, form: Form) -> Features:
    """Read features, with a header."""
    X = _features(path)
    if X.shape[1] > form.n_columns:
        raise InputError(f"{path}: {X.shape[1]} features, the training data had {form.n_columns}; give the same")
    return widened(X, form.n_columns)


def _features(path: Path) -> Features:
    return read_matrix(path, "feature number", "rows features")

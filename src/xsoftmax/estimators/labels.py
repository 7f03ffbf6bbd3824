"""Labels as users give them."""

from typing import Any

import numpy as np

from xsoftmax.internal.errors import InputError


def check_none_missing(name: str, y: np.ndarray) -> None:
    """Make sure that each row has a label, where labels are objects.

    Parameters
    ----------
    name : str
        Of the estimator that asks.
    y : ndarray of shape (n_samples,)

    Raises
    ------
    InputError
        If one is None, NaN or pandas' NA; names the first such row.
    """
    if y.dtype != object:
        return
    for row, label in enumerate(y.tolist(), 1):
        if _is_missing(label):
            raise InputError(f"{name}: row {row} has {label!r} for a label; leave the row out, or give it one")


def _is_missing(label: Any) -> bool:
    try:
        return label is None or not bool(label == label)
    except TypeError:  # pandas' NA is neither true nor false
        return True

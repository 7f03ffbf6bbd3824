"""Where weights begin; one file each.

A file holds its parameters, a NamedTuple named ``MEMBER`` with ``directions(X, y, n_classes)``: the weights as they
begin, but for their scale, one row per class, (n_classes, n_features), float32, an array or a ``csr_array``; None for
zeros. A parameter ``scale`` of 0 leaves the scale to validation rows. Biases begin where ``bias_start`` says.
"""

import hashlib
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

# Weights that are written at a time: what says where they go takes memory, too.
_WRITTEN_AT_ONCE = 2**22


class Start(NamedTuple):
    """Where a fit begins.

    Attributes
    ----------
    W : ndarray or csr_array of shape (n_classes, n_features), float32
    n_alike : float
        How many equally likely classes are as uncertain as these weights, on validation rows, or where there are none
        on training rows: what variables per sample begin at, which at zero weights is the number of classes.
    b : ndarray of shape (n_classes,), float32, or None
        Biases, of a model that is trained on; None: they begin where ``bias_start`` says.
    """

    W: Any
    n_alike: float
    b: np.ndarray | None = None


def load_start(start: Start, weights: np.ndarray) -> None:
    """Write weights as they begin to a view of those of a layout, (n_classes, n_features + 1)."""
    W = start.W
    if start.b is not None:
        weights[:, -1] = start.b
    if not issparse(W):
        weights[:, :-1] = W
        return
    step = max(1, _WRITTEN_AT_ONCE * W.shape[0] // max(1, W.nnz))
    for first in range(0, W.shape[0], step):
        rows = W[first : first + step]
        classes = first + np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        weights[classes, rows.indices] = rows.data


def digest_of(start: Start) -> str:
    """Hash where weights begin, in hexadecimal digits."""
    W = (start.W.data, start.W.indices, start.W.indptr) if issparse(start.W) else (start.W,)
    digest = hashlib.sha256(repr((start.W.shape, start.n_alike)).encode())
    for array in (*W, np.empty(0) if start.b is None else start.b):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()

"""Generated: the non-parametric toy of one-vs-each and augment-and-reduce, labels without features.

``p_k`` is proportional to ``u_k^2`` with ``u_k`` uniform on (0, 1); a model has only biases to learn.
"""

import numpy as np
from scipy.sparse import csr_array

from xsoftmax.data.parts import check_sizes
from xsoftmax.data.rows import Rows
from xsoftmax.internal.errors import InputError


def read(*, n_samples: int = 1_000_000, n_classes: int = 10_000, seed: int = 0) -> Rows:
    """Draw ``n_samples`` labels; features are a matrix without columns.

    Parameters
    ----------
    n_samples, n_classes : int
        How many there are.
    seed : int
        Of the draws.
    """
    if min(n_samples, n_classes) < 1:
        raise InputError(f"zipf: {n_samples} rows of {n_classes} classes; sizes must be positive")
    check_sizes("zipf", n_samples, n_classes, bytes_a_row=32)
    rng = np.random.default_rng(seed)
    weights = rng.random(n_classes) ** 2
    bounds = np.cumsum(weights)
    labels = np.searchsorted(bounds, rng.random(n_samples) * bounds[-1], side="right")
    X = csr_array((n_samples, 0), dtype=np.float32)
    return Rows.with_ids(X, np.minimum(labels, n_classes - 1))

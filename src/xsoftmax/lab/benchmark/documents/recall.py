"""Recall of shortlists: which of the classes that score highest where weights begin they hold, by all scores."""

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from xsoftmax.data.dataset import Split
from xsoftmax.kernels.shortlist import nearest_classes

# Scores that differ by less, relatively, are sums of the same numbers in another order.
TOLERANCE = 1e-4
# Scores that are held at a time.
_SCORES_AT_ONCE = 2**24


def recall_of(rows: Split, W: Any, n: int) -> float:
    """Search the weights for some rows as a fit does: the share that is found of the ``n`` highest classes.

    A row's own class does not count, nor do classes that score 0.

    Parameters
    ----------
    rows : Split
        Sparse training rows.
    W : sparse array of shape (n_classes, n_features), float32
        Where weights begin; their scale changes nothing.
    n : int
        Classes of a shortlist.
    """
    n = min(n, W.shape[0] - 1)
    found = nearest_classes(rows.X, rows.y, W, n)
    by_feature, step = csr_array(W.T), max(1, _SCORES_AT_ONCE // W.shape[0])
    n_found = n_wanted = 0
    for first in range(0, rows.n_samples, step):
        part = slice(first, first + step)
        scores = (rows.X[part] @ by_feature).toarray()
        scores[np.arange(len(scores)), rows.y[part]] = 0
        lowest = np.partition(scores, -n, axis=1)[:, -n]
        of_found = np.where(found[part] >= 0, np.take_along_axis(scores, found[part], axis=1), 0)
        n_found += int(np.sum((of_found > 0) & (of_found >= (1 - TOLERANCE) * lowest[:, None])))
        n_wanted += int(np.sum(np.minimum(n, np.count_nonzero(scores > 0, axis=1))))
    return n_found / max(1, n_wanted)

"""Class means: each class's weights begin along the mean of its rows.

    w_k  =  scale m_k / ||m_k||,    m_k the mean of the training rows of class k

It is the classifier of the nearest mean direction (Rocchio), from where few steps are left to be taken where classes
have few rows, of words above all. One pass over the rows; as sparse as they are. What stands for a class without rows
is 0. On rows of unit length, ``scale`` is a temperature: the one under which validation rows are likeliest.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse

# Rows that are added up at a time, and classes that are made as long as 1.
_ROWS = 2**16


class ClassMeans(NamedTuple):
    """Parameters: ``scale``, the length of a class's weights times that of rows; 0: chosen by validation rows."""

    scale: float = 0.0

    def directions(self, X: Any, y: np.ndarray, n_classes: int) -> Any:
        """Give the mean of each class's rows, of length 1; see ``xsoftmax.starts``."""
        total: Any = 0
        for first in range(0, len(y), _ROWS):
            labels = y[first : first + _ROWS]
            ones, starts = np.ones(len(labels), np.float32), np.arange(len(labels) + 1, dtype=np.int32)
            of_class = csr_array((ones, labels, starts), shape=(len(labels), n_classes)).T.tocsr()
            total = total + of_class @ X[first : first + _ROWS]
        if not issparse(total):
            total = np.asarray(total, np.float32)
            return total / np.maximum(np.linalg.norm(total, axis=1, keepdims=True), np.finfo(np.float32).tiny)
        total = csr_array(total, dtype=np.float32)
        for first in range(0, n_classes, _ROWS):
            starts = total.indptr[first : first + _ROWS + 1]
            _divide_by_lengths(total.data[starts[0] : starts[-1]], starts - starts[0])
        return total


def _divide_by_lengths(values: np.ndarray, starts: np.ndarray) -> None:
    """Divide entries of sparse rows, in place, by the rows' lengths."""
    n_entries = np.diff(starts)
    squares = np.add.reduceat(np.append(values.astype(float) ** 2, 0.0), starts[:-1])
    lengths = np.sqrt(np.where(n_entries > 0, squares, 1.0))
    values /= np.repeat(np.maximum(lengths, np.finfo(np.float32).tiny), n_entries).astype(np.float32)


MEMBER = ClassMeans

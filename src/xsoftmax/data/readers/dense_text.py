"""Dense text, as the program Slice reads it: a header ``rows columns``, then a row of numbers per line.

Labels are in a file of their own: a header ``rows labels``, then ``l:1 l:1 ...``, numbered from 0.
"""

from pathlib import Path

import numpy as np

from xsoftmax.data import checksum, parsing
from xsoftmax.data.rows import Rows
from xsoftmax.data.sparse_matrix import check_together, header, read_labels
from xsoftmax.data.sparse_text import fail
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.free_memory import check_free


def read(*, features: Path, labels: Path) -> Rows:
    """Read features and labels; a row may have no label or several, which count in order of their numbers.

    Parameters
    ----------
    features, labels : Path
        Text, perhaps compressed, with as many rows.
    """
    X, found = _features(features), read_labels(labels)
    check_together(labels, found.n_samples, features, len(X))
    return Rows(X, found.starts, found.labels)


def _features(path: Path) -> np.ndarray:
    (n_rows, n_features), blocks = header(path, "rows columns")
    if 2 * n_rows * n_features - 1 > checksum.most_content(path):  # a digit and what parts it from the next
        size = f"{n_rows} rows of {n_features} numbers"
        raise InputError(f"{path}, line 1: the header says {size}, more than the file can hold; fetch it again")
    check_free(4 * n_rows * n_features, f"{path}: {n_rows} rows of {n_features} numbers")
    X = np.empty((n_rows, n_features), dtype=np.float32)
    status = np.zeros(parsing.STATUS_SIZE, dtype=np.int64)
    row = 0
    for block in blocks:
        n_lines = block.text.count(b"\n")
        if row + n_lines <= n_rows:
            text = np.frombuffer(block.text, dtype=np.uint8)
            parsing.parse_dense(text, X[row : row + n_lines], status)
            if status[parsing.CODE] != parsing.OK:
                fail(path, block, status, {parsing.BAD_COUNT: f"expected {n_features} numbers"})
        row += n_lines
    if row != n_rows:
        raise InputError(f"{path}, line 1: the header says {n_rows} rows, the file has {row}; fetch it again")
    return X

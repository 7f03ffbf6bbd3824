"""Pairs of a row and a label that never count: ``filter_labels_test.txt`` of the Extreme Classification Repository.

Where documents are also labels, a document finds itself: such pairs are neither right nor wrong. A line is
``row label``, both numbered from 0.
"""

from pathlib import Path

import numpy as np

from xsoftmax.data.sparse_text import LARGEST_SIZE, line_blocks, shortened
from xsoftmax.internal.errors import InputError


def read_pairs(path: Path, n_samples: int) -> np.ndarray:
    """Read pairs of a row, of so many, and a label, in the order of the file.

    Returns
    -------
    ndarray of shape (n_pairs, 2), int64

    Raises
    ------
    InputError
        If the file is empty, a line is no such pair, or there is no such row.
    """
    found = []
    for block in line_blocks(path):
        lines = block.text.split(b"\n")
        for number, words in enumerate(map(bytes.split, lines), block.first_line):
            if words:
                found.append(_pair(words, n_samples, f"{path}, line {number}"))
    return np.array(found, np.int64).reshape(-1, 2)


def _pair(words: list[bytes], n_samples: int, where: str) -> tuple[int, int]:
    if len(words) != 2 or not all(word.isdigit() and len(word) <= 10 for word in words):
        line = shortened(b" ".join(words))
        raise InputError(f"{where}: expected 'row label', two numbers from 0, found {line!r}; fetch it again")
    row, label = map(int, words)
    if row >= n_samples:
        raise InputError(f"{where}: row {row} of {n_samples}, counted from 0; is it the filter of these rows?")
    if label > LARGEST_SIZE:
        raise InputError(f"{where}: label {label} is more than {LARGEST_SIZE}; fetch it again")
    return row, label

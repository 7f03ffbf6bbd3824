"""Sparse matrices as text: a header ``rows columns``, then ``column:value ...`` for each row, numbered from 0.

The Extreme Classification Repository has features (``trn_X_Xf.txt``) and labels (``trn_X_Y.txt``) in such files.
"""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from xsoftmax.data import parsing
from xsoftmax.data.sparse_text import LineBlock, SparseRows, header_sizes, line_blocks
from xsoftmax.internal.errors import InputError


class RowLabels(NamedTuple):
    """Labels of rows, as ``Rows`` has them."""

    starts: np.ndarray
    labels: np.ndarray

    @property
    def n_samples(self) -> int:
        """Count the rows."""
        return self.starts.size - 1


def read_matrix(path: Path, what: str, words: str) -> csr_array:
    """Read a matrix, float32; entries of one column are added up.

    Parameters
    ----------
    path : Path
    what : str
        What a column is, for messages: "feature number" or "label".
    words : str
        What the header says: "rows features".

    Raises
    ------
    InputError
        If a line is none of these, or the header says how many rows there are, and there are others.
    """
    (n_rows, n_columns), blocks = header(path, words)
    pair = f"expected '{words.split()[1].removesuffix('s')}:value'"
    codes = (parsing.BAD_INDEX, parsing.NO_COLON, parsing.BAD_LABEL, parsing.LABEL_RANGE)
    range_of = f"the {what} is out of range (the header says {n_columns}, from 0)"
    collected = SparseRows(path, {parsing.INDEX_RANGE: range_of, **dict.fromkeys(codes, pair)})
    for block in blocks:
        collected.add(block, parsing.parse_labelled, 0, n_columns, 0, False, False, True)
    found = collected.rows(n_columns).features
    if found.shape[0] != n_rows:
        raise InputError(
            f"{path}, line 1: the header says {n_rows} rows, the file has {found.shape[0]}; fetch it again"
        )
    return found


def read_labels(path: Path) -> RowLabels:
    """Read labels: those of a row in the order of their numbers, without those whose value is 0."""
    found = read_matrix(path, "label", "rows labels")
    found.eliminate_zeros()
    return RowLabels(found.indptr.astype(np.int64), found.indices.astype(np.int64))


def check_together(labels: Path, n_labelled: int, features: Path, n_samples: int) -> None:
    """Make sure that two files have as many rows.

    Raises
    ------
    InputError
        If not.
    """
    if n_labelled != n_samples:
        raise InputError(f"{labels}: {n_labelled} rows, and {features} has {n_samples}; do they belong together?")


def header(path: Path, expected: str) -> tuple[list[int], Iterator[LineBlock]]:
    """Read the numbers of the first line; give them, and the lines below it."""
    blocks = line_blocks(path)
    line, _, rest = next(blocks).text.partition(b"\n")
    return header_sizes(path, line, expected), chain([LineBlock(rest, 2)] if rest else [], blocks)

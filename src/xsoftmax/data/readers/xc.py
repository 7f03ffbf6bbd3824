"""Extreme Classification Repository text: a header ``N D L``, then ``l1,l2 f:v f:v ...``, numbered from 0."""

from itertools import chain
from pathlib import Path

from xsoftmax.data import checksum, parsing
from xsoftmax.data.rows import Features, Form, Rows
from xsoftmax.data.sparse_text import LineBlock, SparseRows, header_sizes, line_blocks
from xsoftmax.internal.errors import InputError

NEW_ROWS = ()


def read(*, data: Path, require_labels: bool = True) -> Rows:
    """Read rows; a line that begins with a space has no label.

    Parameters
    ----------
    data : Path
        Text, perhaps compressed.
    require_labels : bool
        A line that begins with a feature is an error, rather than a row without labels.
    """
    blocks = line_blocks(data)
    head = next(blocks)
    header, _, rest = head.text.partition(b"\n")
    n_rows, n_features, n_labels = header_sizes(data, header, "rows features labels")
    hints = {
        parsing.INDEX_RANGE: f"the feature number is out of range (the header says {n_features}, from 0)",
        parsing.LABEL_RANGE: f"the label is out of range (the header says {n_labels}, from 0)",
        parsing.NO_LABEL: "the labels are missing; a row that has none begins with a space",
    }
    collected = SparseRows(data, hints)
    for block in chain([LineBlock(rest, 2)] if rest else [], blocks):
        collected.add(block, parsing.parse_labelled, 0, n_features, n_labels, False, require_labels, True)
    rows = collected.rows(n_features)
    if rows.n_samples != n_rows:
        raise InputError(
            f"{data}, line 1: the header says {n_rows} rows, the file has {rows.n_samples}; fetch it again"
        )
    return rows


def read_new(path: Path, form: Form) -> Features:
    """Read rows with labels or without; a header may be missing.

    A blank line is a row without features; without a header, which says how many rows there are, those at the end of
    the file are none.
    """
    if has_header(path):
        return read(data=path, require_labels=False).features
    collected = _collector(path, form.n_columns)
    collected.add_new(0, form.n_columns, svmlight=False)
    return collected.rows(form.n_columns).features


def read_labelled(path: Path, form: Form) -> Rows:
    """Read new rows with their labels; a header may be missing."""
    if has_header(path):
        return read(data=path)
    collected = _collector(path, form.n_columns)
    for block in line_blocks(path):
        collected.add(block, parsing.parse_labelled, 0, form.n_columns, -1, False, True, True)
    return collected.rows(form.n_columns)


def _collector(path: Path, n_features: int) -> SparseRows:
    return SparseRows(path, {parsing.INDEX_RANGE: f"the feature number is out of range of {n_features} (from 0)"})


def has_header(path: Path) -> bool:
    """Tell whether the first line is three whole numbers."""
    words = next(checksum.blocks(path, 200), b"").partition(b"\n")[0].split()
    return len(words) == 3 and all(word.isdigit() for word in words)

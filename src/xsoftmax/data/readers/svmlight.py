"""svmlight (libsvm) text: ``label feature:value ...  # comment``, features numbered from 1; ``l1,l2`` too."""

from pathlib import Path

from xsoftmax.data import parsing
from xsoftmax.data.readers import xc
from xsoftmax.data.rows import Features, Form, Rows
from xsoftmax.data.sparse_text import SparseRows, line_blocks
from xsoftmax.internal.errors import InputError

NEW_ROWS = ()


def read(*, data: Path, zero_based: bool = False, n_features: int | None = None, require_labels: bool = True) -> Rows:
    """Read rows.

    Parameters
    ----------
    data : Path
        Text, perhaps compressed.
    zero_based : bool
        Features are numbered from 0.
    n_features : int, optional
        The limit; otherwise the largest number found counts.
    require_labels : bool
        A line that begins with a feature is an error, rather than a row without labels.
    """
    base, limit = 0 if zero_based else 1, -1 if n_features is None else n_features
    collected = SparseRows(data, _hints(zero_based, n_features))
    for block in line_blocks(data):
        collected.add(block, parsing.parse_labelled, base, limit, -1, True, require_labels, False)
    if collected.n_rows == 0:
        raise InputError(f"{data}: no row in it")
    return collected.rows(collected.max_index + 1 if n_features is None else n_features)


def read_new(path: Path, form: Form) -> Features:
    """Read rows with labels or without; with a header as Extreme Classification text.

    A blank line is a row without features, but for those at the end of the file; a line with a comment alone is none.
    """
    if xc.has_header(path):
        return xc.read_new(path, form)
    zero_based = _zero_based(form)
    collected = SparseRows(path, _hints(zero_based, form.n_columns))
    collected.add_new(0 if zero_based else 1, form.n_columns, svmlight=True)
    return collected.rows(form.n_columns).features


def read_labelled(path: Path, form: Form) -> Rows:
    """Read new rows with their labels; with a header as Extreme Classification text."""
    if xc.has_header(path):
        return xc.read_labelled(path, form)
    return read(data=path, zero_based=_zero_based(form), n_features=form.n_columns)


def _zero_based(form: Form) -> bool:
    return bool(form.source.get("options", {}).get("zero_based", False))


def _hints(zero_based: bool, n_features: int | None) -> dict[int, str]:
    of = "" if n_features is None else f" of {n_features}"
    first = "from 0" if zero_based else "from 1; set options.zero_based in a data set's file if rows count from 0"
    return {
        parsing.INDEX_RANGE: f"the feature number is out of range{of} ({first})",
        parsing.NO_LABEL: "the label is missing; give one, or set options.require_labels: false in a data set's file",
    }

"""Cells of labels: one to a cell, or several with a separator between two."""

import re
from pathlib import Path

import numpy as np

from xsoftmax.data.rows import Features, Rows, not_text
from xsoftmax.internal.errors import InputError


def checked_separator(separator: str | None, path: Path) -> str | None:
    """Make sure that a separator, if there is one, is a character.

    Raises
    ------
    InputError
        If it is none.
    """
    if separator is not None and (len(separator) != 1 or separator == "\\"):
        raise InputError(
            f"{path}: options.label_separator is {separator!r}; give one character, such as ';', no backslash"
        )
    return separator


def split_labels(cell: str, separator: str) -> list[str]:
    """Split a cell into labels, in order; see ``label_separator`` of ``read``."""
    if "\\" not in cell:
        found = [label.strip() for label in cell.split(separator)]
    else:
        escaped = re.compile(rf"\\([\\{re.escape(separator)}])")
        parts = re.findall(rf"(?:\\[\\{re.escape(separator)}]|[^{re.escape(separator)}])+", cell)
        found = [escaped.sub(r"\1", part.strip()) for part in parts]
    return list(dict.fromkeys(label for label in found if label))


def labelled(features: Features, names: list[str], path: Path, separator: str | None) -> Rows:
    """Make rows of features and their cells of labels; an empty cell is no label.

    Raises
    ------
    InputError
        If there is no row, or a label that HDF5 cannot hold.
    """
    if not names:
        raise InputError(f"{path}: no row in it")
    if separator is None:
        rows = Rows.with_names(features, names)
    else:
        rows = Rows.with_several_names(features, [split_labels(cell, separator) for cell in names])
    odd = not_text(rows.label_names)
    if odd is not None:
        row = next(row for row, cell in enumerate(names, 1) if not_text([cell]) is not None)
        where = f"{path}, row {row}"
        raise InputError(f"{where}: the label has a character that is no text: {odd[:40]!r}")
    if rows.label_names and rows.label_names[0] == "":
        kept = rows.labels > 0
        starts = np.concatenate([[0], np.cumsum(kept)])
        rows = Rows(features, starts, rows.labels[kept] - 1, rows.label_names[1:])
    return rows

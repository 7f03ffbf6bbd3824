"""Tables (CSV, TSV, Parquet): a column of texts and one of labels; without texts, columns of numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from xsoftmax.data.label_cells import checked_separator, labelled
from xsoftmax.data.rows import Features, Form, Rows, Texts
from xsoftmax.data.table_file import Table, number
from xsoftmax.internal.errors import InputError

NEW_ROWS = (".csv", ".tsv", ".parquet")


def read(
    *,
    data: Path,
    label: str | int = "label",
    text: str | int | None = None,
    weight: str | int | None = None,
    header: bool = True,
    delimiter: str | None = None,
    encoding: str = "utf-8",
    label_separator: str | None = None,
) -> Rows:
    """Read a table; rows with an empty label count as unlabelled.

    Parameters
    ----------
    data : Path
        ``.parquet``, or text with one row per line, perhaps compressed.
    label, text, weight : str or int
        Column by name or number (from 0; negative from the right). Without ``text`` all others are numbers; with
        ``weight`` rows count what it says, 0 or more.
    header : bool
        The first line names the columns (CSV).
    delimiter : str, optional
        Otherwise a tab for ``.tsv`` and a comma for all else.
    label_separator : str, optional
        Stands between the labels of a row, such as ``;``. Spaces around a label are no part of it, an empty one is
        none, and one that comes twice counts once; after a backslash, separator and backslash are part of a label.
    """
    separator = checked_separator(label_separator, data)
    table = Table(data, header, delimiter, encoding)
    features = None if text is not None else table.other_columns(label, weight)
    rows = _read(table, label, text, features, separator)
    if weight is not None:
        rows = replace(rows, weight=_weights(table, weight))
    if not table.named:
        return rows
    given = {"label": label, "text": text, "weight": weight}
    numbered = {key: value for key, value in given.items() if isinstance(value, int)}
    options = dict(zip(numbered, table.names_of(list(numbered.values())), strict=True))
    return replace(rows, feature_names=tuple(table.names_of(features or [])), options=options)


def read_new(path: Path, form: Form) -> Features:
    """Read the column of texts, or columns of numbers; those of labels and weights may be there or not.

    Columns of numbers are those with the names that the training rows' had, in any order; others are passed over.
    Where those had no names, all columns count, in their order.
    """
    options = form.source.get("options", {})
    table = Table(path, options.get("header", True), options.get("delimiter"), options.get("encoding", "utf-8"))
    if form.kind == "texts":
        column = _column_of_texts(options)
        return Texts(lambda: (row[0] for row in table.columns([column])), sum(1 for _ in table.columns([column])))
    if form.feature_names and table.named:
        return table.numbers(None, list(form.feature_names), [])
    return table.numbers(None, table.other_columns(*_columns_beside(table, form)), [])


def read_labelled(path: Path, form: Form) -> Rows:
    """Read new rows with their labels, in columns of the same names."""
    options = form.source.get("options", {})
    table = Table(path, options.get("header", True), options.get("delimiter"), options.get("encoding", "utf-8"))
    label, separator = options.get("label", "label"), checked_separator(options.get("label_separator"), path)
    if form.kind == "texts":
        return _read(table, label, _column_of_texts(options), None, separator)
    named = form.feature_names and table.named
    beside = _columns_beside(table, form) or [label]
    return _read(table, label, None, form.feature_names if named else table.other_columns(*beside), separator)


def _columns_beside(table: Table, form: Form) -> list[Any]:
    """Name the columns of labels, and of weights, of new rows that have as many more columns than features."""
    options = form.source.get("options", {})
    given = [options.get("label", "label"), options.get("weight")]
    known = [column for column in given if column is not None]
    more = len(table.column_names()) - form.n_columns
    return known[: max(0, more)] if more <= len(known) else []


def _weights(table: Table, column: str | int) -> np.ndarray:
    """Read what rows count, float32 of shape (n_samples,)."""
    cells = [row[0] for row in table.columns([column])]
    with np.errstate(over="ignore"):  # told below
        weight = np.array([number(cell) for cell in cells], np.float32)
    right = np.isfinite(weight) & (weight >= 0)
    if not right.all():
        row = int(np.argmin(right))
        raise InputError(f"{table.path}, row {row + 1}: the weight is {cells[row][:40]!r}; give a number, 0 or more")
    return weight


def _read(
    table: Table,
    label: str | int,
    text: str | int | None,
    features: Sequence[str | int] | None,
    separator: str | None,
) -> Rows:
    names: list[str] = []
    if text is None:
        return labelled(table.numbers(label, features or [], names), names, table.path, separator)
    names.extend(name for name, _ in table.columns([label, text]))
    texts = Texts(lambda: (row[0] for row in table.columns([text])), len(names))
    return labelled(texts, names, table.path, separator)


def _column_of_texts(options: Mapping[str, Any]) -> Any:
    """Name the column of texts: ``text`` for a model whose texts were in no table."""
    return options.get("text", "text")

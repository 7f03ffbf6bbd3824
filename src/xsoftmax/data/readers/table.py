"""Tables (CSV, TSV, Parquet, JSON lines): columns of texts, numbers and categories, and one of labels."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from xsoftmax.data import json_rows
from xsoftmax.data.label_cells import checked_separator, labelled
from xsoftmax.data.rows import Columns, Features, Form, Rows, Texts
from xsoftmax.data.table_file import Table, number
from xsoftmax.internal.errors import InputError

NEW_ROWS = (".csv", ".tsv", ".parquet", *json_rows.SUFFIXES)


def read(
    *,
    data: Path,
    label: str | int = "label",
    text: str | int | list[str | int] | None = None,
    numeric: str | int | list[str | int] | None = None,
    categorical: str | int | list[str | int] | None = None,
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
        ``.parquet``; ``.jsonl`` or ``.ndjson``, an object per line with the same keys; or text with one row per line.
        All but ``.parquet`` may be compressed.
    label : str or int
        Column by name or number (from 0; negative from the right).
    text : str, int or list of these
        Columns of texts; each has words of its own.
    numeric : str, int or list of these
        Columns of numbers. Without text, numeric and categorical all other columns are.
    categorical : str, int or list of these
        Columns of categories: each value in training rows, an empty one too, is a feature.
    weight : str or int
        Column of what a row counts, 0 or more.
    header : bool
        The first line names the columns (CSV).
    delimiter : str, optional
        Otherwise a tab for ``.tsv`` and a comma for all else.
    encoding : str
        Of a file of text.
    label_separator : str, optional
        Stands between the labels of a row, such as ``;``. Spaces around a label are no part of it, an empty one is
        none, and one that comes twice counts once; after a backslash, separator and backslash are part of a label.
    """
    separator = checked_separator(label_separator, data)
    table = Table(data, header, delimiter, encoding)
    roles = Roles.of(text, numeric, categorical)
    table.check_once([label, *roles.columns, *([] if weight is None else [weight])])
    if not roles.columns:
        roles = roles._replace(numeric=tuple(table.other_columns(label, weight)))
    rows = _read(table, label, roles, separator)
    if weight is not None:
        rows = replace(rows, weight=_weights(table, weight))
    names = () if roles.form.kind == "texts" else tuple(table.names_of(roles.columns))
    if not table.named:
        return replace(rows, feature_names=names if roles.form.kind == "table" else ())
    given = {"label": label, "text": text, "numeric": numeric, "categorical": categorical, "weight": weight}
    options = {key: _named(table, value) for key, value in given.items() if value is not None}
    return replace(rows, feature_names=names, options=options)


def read_new(path: Path, form: Form) -> Features:
    """Read the columns of texts, numbers and categories; those of labels and weights may be there or not.

    Columns are those with the names that the training rows' had, in any order; others are passed over. Where columns
    of numbers had no names, all count, in their order.
    """
    table = _table(path, form)
    return _features(table, _roles_in(table, form), None)[0]


def read_labelled(path: Path, form: Form) -> Rows:
    """Read new rows with their labels, in columns of the same names."""
    options, table = form.source.get("options", {}), _table(path, form)
    label, separator = options.get("label", "label"), checked_separator(options.get("label_separator"), path)
    return _read(table, label, _roles_in(table, form, label), separator)


def _table(path: Path, form: Form) -> Table:
    options = form.source.get("options", {})
    return Table(path, options.get("header", True), options.get("delimiter"), options.get("encoding", "utf-8"))


class Roles(NamedTuple):
    """Columns of a table, by name or number, and what they hold."""

    text: tuple[str | int, ...] = ()
    numeric: tuple[str | int, ...] = ()
    categorical: tuple[str | int, ...] = ()

    @classmethod
    def of(cls, *given: Any) -> "Roles":
        """Take what options say."""
        return cls(*(tuple(each) if isinstance(each, list) else () if each is None else (each,) for each in given))

    @property
    def columns(self) -> list[str | int]:
        """Give all columns, in the order of features."""
        return [*self.text, *self.numeric, *self.categorical]

    @property
    def form(self) -> Form:
        """Say what rows look like: of one column of texts, or of numbers, there are no parts."""
        parts = [Form("texts", 1) for _ in self.text]
        if self.numeric:
            parts.append(Form("dense", len(self.numeric)))
        if self.categorical:
            parts.append(Form("categories", len(self.categorical)))
        if len(parts) > 1 or self.categorical:
            return Form("table", len(self.columns), parts=tuple(parts))
        return Form("texts") if self.text else Form("dense", len(self.numeric))


def _roles_in(table: Table, form: Form, label: str | int | None = None) -> Roles:
    """Say which columns of new rows hold what."""
    if form.kind == "texts":  # of a model whose texts were in no table, the column is `text`
        return Roles(text=Roles.of(form.source.get("options", {}).get("text", "text"), None, None).text[:1])
    if form.kind == "table":
        found: dict[str, list[str | int]] = {"texts": [], "dense": [], "categories": []}
        for kind, place in form.places:
            found[kind].extend(form.feature_names[place])
        return Roles.of(*found.values())
    if form.feature_names and table.named:
        return Roles(numeric=form.feature_names)
    if (given := form.source.get("options", {}).get("numeric")) is not None:  # some columns of a table without names
        return Roles.of(None, given, None)
    beside = _columns_beside(table, form) or ([] if label is None else [label])
    return Roles(numeric=tuple(table.other_columns(*beside)))


def _named(table: Table, columns: Any) -> Any:
    """Name columns that are given by number."""
    if isinstance(columns, list):
        return table.names_of(columns)
    return table.names_of([columns])[0]


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


def _read(table: Table, label: str | int, roles: Roles, separator: str | None) -> Rows:
    features, names = _features(table, roles, label)
    return labelled(features, names, table.path, separator)


def _features(table: Table, roles: Roles, label: str | int | None) -> tuple[Features, list[str]]:
    """Read features, and the cells of labels if their column is given: numbers and labels in one walk."""
    cells: list[str] = []
    form, numbers = roles.form, None
    if roles.numeric or form.kind == "dense":
        numbers = table.numbers(label, roles.numeric, cells)
        n_samples = len(numbers)
    else:
        cells = [row[0] for row in table.columns([label if label is not None else roles.columns[0]])]
        n_samples = len(cells)
    parts: list[Any] = [Texts(partial(_texts, table, column), n_samples) for column in roles.text]
    if form.kind == "texts":
        return parts[0], cells
    if form.kind == "dense":
        return numbers, cells
    parts += [] if numbers is None else [numbers]
    if roles.categorical:
        parts.append(Texts(partial(table.columns, roles.categorical), n_samples))  # type: ignore[arg-type]
    return Columns(form.parts, tuple(parts)), cells


def _texts(table: Table, column: str | int) -> Iterator[str]:
    return (row[0] for row in table.columns([column]))

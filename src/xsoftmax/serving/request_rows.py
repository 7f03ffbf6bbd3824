"""Rows that a request gives in JSON: of numbers, dense or sparse, or of a table's columns by their names."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from xsoftmax.data.parquet_rows import text_of_cell
from xsoftmax.data.rows import Form, row_not_finite
from xsoftmax.internal.errors import InputError, suggestion

SPARSE = ("indices", "values")
LARGEST = float(np.finfo(np.float32).max)
# The kind of rows of a model that does not say how they are prepared: they are features, in lists or sparse.
ANY = "features"


class RequestError(InputError):
    """A request cannot be answered; ``status`` is that of HTTP."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


def read_rows(rows: list[Any], form: Form) -> Any:
    """Read rows as ``Transform.apply`` takes them.

    Raises
    ------
    RequestError
        If they are not what the model takes.
    """
    if form.kind == "table":
        return [_cells(place, row, form) for place, row in enumerate(rows)]
    X = _sparse(rows, form) if form.kind == "sparse" or _is_sparse(form, rows[0]) else _dense(rows, form)
    if (row := row_not_finite(X)) is not None:
        raise RequestError(f"row {row} has a number that is NaN, infinite, or too large for float32; mend it")
    return X


def _cells(place: int, row: Any, form: Form) -> tuple[Any, ...]:
    """Read a row of a table: an object with a text, a number or a category for each column, by its name."""
    if not isinstance(row, dict):
        raise RequestError(f"row {place} is {kind_of(row)}; give an object with {form.said_columns}")
    _check_columns(place, row, form)
    return tuple(
        _cell(f"row {place}: {name[:40]!r}", row[name], kind)
        for kind, columns in form.places
        for name in form.feature_names[columns]
    )


def _cell(where: str, value: Any, kind: str) -> str | float:
    """Read a cell as a table would have it."""
    if kind == "dense":
        (number,) = _numbers(where, [value])
        if not abs(number) <= LARGEST:
            raise RequestError(f"{where} is NaN, infinite, or too large for float32; mend it")
        return number
    if kind == "categories" and (value is None or type(value) in (int, float)):
        return text_of_cell(value)
    if not isinstance(value, str):
        raise RequestError(f"{where} is {said(value)}; give a string")
    return value


def _is_sparse(form: Form, row: Any) -> bool:
    """Whether rows of a model that takes both begin with a sparse one."""
    return form.kind == ANY and isinstance(row, dict)


def _dense(rows: list[Any], form: Form) -> np.ndarray:
    found = np.empty((len(rows), form.n_columns), np.float32)
    with np.errstate(over="ignore"):  # said below, with the row
        for place, row in enumerate(rows):
            found[place] = _list(place, row, form)
    return found


def _list(place: int, row: Any, form: Form) -> list[float]:
    """Read a dense row: a list, or an object with a number for each column by its name."""
    if isinstance(row, dict) and form.feature_names:
        _check_columns(place, row, form)
        row = [row[name] for name in form.feature_names]
    if not isinstance(row, list):
        raise RequestError(f"row {place} is {kind_of(row)}; give a list of {form.n_columns} numbers")
    if len(row) != form.n_columns:
        raise RequestError(
            f"row {place} has {len(row)} numbers, the model {form.n_columns} columns; send all of them"
        )
    return _numbers(f"row {place}", row)


def _check_columns(place: int, row: Mapping[str, Any], form: Form) -> None:
    if missing := [name for name in form.feature_names if name not in row]:
        raise RequestError(f"row {place} has no {missing[0][:40]!r}; {suggestion(missing[0][:40], row)[:300]}")


def _sparse(rows: list[Any], form: Form) -> csr_array:
    places, values, ends = [], [], [0]
    for place, row in enumerate(rows):
        own, numbers = _entries(place, row, form)
        places.append(own)
        values.append(numbers)
        ends.append(ends[-1] + own.size)
    with np.errstate(over="ignore"):
        data = np.concatenate(values).astype(np.float32)
    indices = np.concatenate(places).astype(np.int32)
    return csr_array((data, indices, np.array(ends, np.int32)), shape=(len(rows), form.n_columns))


def _entries(place: int, row: Any, form: Form) -> tuple[np.ndarray, np.ndarray]:
    """Read a sparse row: the columns of its entries, rising, and their values."""
    if isinstance(row, list):
        numbers = np.array(_list(place, row, form), np.float64)
        own = np.flatnonzero(numbers)
        return own, numbers[own]
    if not isinstance(row, dict) or set(row) != set(SPARSE):
        raise RequestError(f"row {place} is {kind_of(row)}; give an object with {' and '.join(SPARSE)}, or a list")
    indices, values = (row[name] for name in SPARSE)
    for name in SPARSE:
        if not isinstance(row[name], list):
            raise RequestError(f"row {place}: {name} is {kind_of(row[name])}; give a list of numbers")
    if len(indices) != len(values):
        raise RequestError(f"row {place} has {len(indices)} indices and {len(values)} values; give as many of both")
    if wrong := [each for each in indices if type(each) is not int or not 0 <= each < form.n_columns]:
        raise RequestError(
            f"row {place} has the index {said(wrong[0])}; give whole numbers from 0 to {form.n_columns - 1}"
        )
    own = np.array(indices, np.int64)
    order = np.argsort(own, kind="stable")
    if (twice := np.flatnonzero(np.diff(own[order]) == 0)).size:
        raise RequestError(f"row {place} has the index {own[order][twice[0]]} twice; give each once")
    return own[order], np.array(_numbers(f"row {place}", values), np.float64)[order]


def _numbers(where: str, row: list[Any]) -> list[float]:
    if not set(map(type, row)) <= {int, float}:
        wrong = next(each for each in row if type(each) not in (int, float))
        raise RequestError(f"{where} has {said(wrong)} for a number; give numbers only")
    return row


def said(value: Any) -> str:
    """Show what JSON holds, in a few words."""
    return kind_of(value) if isinstance(value, bool | None | dict | list) else repr(value)[:40]


def kind_of(value: Any) -> str:
    """Name what JSON holds."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    for kind, name in ((dict, "an object"), (list, "a list" if value else "an empty list"), (str, "a string")):
        if isinstance(value, kind):
            return name
    return f"the number {value!r:.40}"

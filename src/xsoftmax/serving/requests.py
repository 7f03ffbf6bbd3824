"""What a request for predictions may hold: texts or rows of numbers, checked before anything is computed of them."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, vstack

from xsoftmax.data.rows import Form, row_not_finite
from xsoftmax.internal.documents import parse_json
from xsoftmax.internal.errors import InputError, suggestion

KEYS = ("texts", "rows", "top", "exact")
SPARSE = ("indices", "values")
TOP = 5
# The kind of rows of a model that does not say how they are prepared: they are features, in lists or sparse.
ANY = "features"


class Limits(NamedTuple):
    """What a server takes.

    Attributes
    ----------
    rows : int
        Of one request, and of one batch, at most.
    body : int
        Bytes of a request, at most.
    top : int
        Classes for each row, at most.
    waiting : int
        Requests that wait, in each worker, at most.
    seconds : float
        For a request to arrive, and again for its answer.
    """

    rows: int = 1000
    body: int = 10_000_000
    top: int = 100
    waiting: int = 200
    seconds: float = 30.0

    def check(self) -> None:
        """Make sure that all are above 0.

        Raises
        ------
        InputError
            If one is not.
        """
        for name, value in self._asdict().items():
            if not 0 < value < np.inf:
                raise InputError(f"--max-{name} is {value}; set it above 0")


class RequestError(InputError):
    """A request cannot be answered; ``status`` is that of HTTP."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


class Asked(NamedTuple):
    """What a request asks.

    Attributes
    ----------
    rows : list of str, csr_array or ndarray of shape (n_rows, n_columns), float32
        As ``Transform.apply`` takes them.
    top : int
        Classes for each row.
    exact : bool
        Whether all classes are to be looked at, though there is an index.
    """

    rows: Any
    top: int
    exact: bool

    @property
    def n_rows(self) -> int:
        """Count the rows."""
        return len(self.rows) if isinstance(self.rows, list) else self.rows.shape[0]


def read_texts(body: bytes, form: Form, limits: Limits) -> Asked:
    """Read a request of plain text, a row for each line.

    Raises
    ------
    RequestError
        If it is not UTF-8, or the model takes no texts, or too few or many.
    """
    try:
        lines = body.decode().removesuffix("\n").split("\n")
    except UnicodeDecodeError:
        raise RequestError("the request is not UTF-8; send text in UTF-8") from None
    rows = _rows({"texts": [line.removesuffix("\r") for line in lines]}, form, limits)
    return Asked(rows, min(TOP, limits.top), False)


def read_request(body: bytes, form: Form, limits: Limits) -> Asked:
    """Read the JSON of a request.

    Raises
    ------
    RequestError
        If it is not what it should be: says what, the value, and what to do.
    """
    try:
        found = parse_json(body.decode(), "the request")
    except UnicodeDecodeError:
        raise RequestError("the request is not UTF-8; send JSON in UTF-8") from None
    except InputError as error:
        raise RequestError(f"{error}; send an object such as {example(form)}") from None
    if not isinstance(found, dict):
        raise RequestError(f"the request is {_kind(found)}; send an object such as {example(form)}")
    if unknown := [key for key in found if key not in KEYS]:
        raise RequestError(f"unknown key {unknown[0][:40]!r}; {suggestion(unknown[0][:40], KEYS)}")
    rows = _rows(found, form, limits)
    top, exact = found.get("top", min(TOP, limits.top)), found.get("exact", False)
    if type(top) is not int or not 1 <= top <= limits.top:
        raise RequestError(f"top is {_said(top)}; give a whole number from 1 to {limits.top}")
    if not isinstance(exact, bool):
        raise RequestError(f"exact is {_said(exact)}; give true or false")
    return Asked(rows, top, exact)


def empty_rows(form: Form) -> list[Any]:
    """Give a row of nothing, in each of the forms that rows may have."""
    sparse, dense = csr_array((1, form.n_columns), dtype=np.float32), np.zeros((1, form.n_columns), np.float32)
    return {"texts": [[""]], "sparse": [sparse], "dense": [dense], ANY: [sparse, dense]}[form.kind]


def example(form: Form) -> str:
    """Give the JSON of a request that would do."""
    if form.kind == "texts":
        return '{"texts": ["a text"], "top": 3}'
    if form.kind == "sparse":
        return '{"rows": [{"indices": [0, 7], "values": [1.0, 0.5]}], "top": 3}'
    return f'{{"rows": [[{"0.5, 1.0, ..." if form.n_columns > 2 else "0.5"}]], "top": 3}}'


def joined(asked: Sequence[Asked]) -> Any:
    """Put the rows of requests of one kind one below the other."""
    rows = [each.rows for each in asked]
    if len(rows) == 1:
        return rows[0]
    if isinstance(rows[0], list):
        return [text for each in rows for text in each]
    if isinstance(rows[0], np.ndarray):
        return np.concatenate(rows)
    return csr_array(vstack(rows, format="csr"))


def _rows(found: Mapping[str, Any], form: Form, limits: Limits) -> Any:
    name = "texts" if form.kind == "texts" else "rows"
    if name not in found or ("texts" in found and "rows" in found):
        what = "texts" if name == "texts" else "rows of numbers"
        raise RequestError(f"the model takes {what}; send {name} and nothing else, such as {example(form)}")
    rows = found[name]
    if not isinstance(rows, list) or not rows:
        raise RequestError(f"{name} is {_kind(rows)}; give a list with one row or more, such as {example(form)}")
    if len(rows) > limits.rows:
        raise RequestError(f"{len(rows)} {name}; send {limits.rows} at most at a time", 413)
    if name == "texts":
        for place, text in enumerate(rows):
            if not isinstance(text, str):
                raise RequestError(f"text {place} is {_kind(text)}; give a string")
        return rows
    X = _sparse(rows, form) if form.kind == "sparse" or _is_sparse(form, rows[0]) else _dense(rows, form)
    if (row := row_not_finite(X)) is not None:
        raise RequestError(f"row {row} has a number that is NaN, infinite, or too large for float32; mend it")
    return X


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
        if missing := [name for name in form.feature_names if name not in row]:
            raise RequestError(f"row {place} has no {missing[0][:40]!r}; {suggestion(missing[0][:40], row)[:300]}")
        row = [row[name] for name in form.feature_names]
    if not isinstance(row, list):
        raise RequestError(f"row {place} is {_kind(row)}; give a list of {form.n_columns} numbers")
    if len(row) != form.n_columns:
        raise RequestError(
            f"row {place} has {len(row)} numbers, the model {form.n_columns} columns; send all of them"
        )
    return _numbers(f"row {place}", row)


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
        raise RequestError(f"row {place} is {_kind(row)}; give an object with {' and '.join(SPARSE)}, or a list")
    indices, values = (row[name] for name in SPARSE)
    for name in SPARSE:
        if not isinstance(row[name], list):
            raise RequestError(f"row {place}: {name} is {_kind(row[name])}; give a list of numbers")
    if len(indices) != len(values):
        raise RequestError(f"row {place} has {len(indices)} indices and {len(values)} values; give as many of both")
    if wrong := [each for each in indices if type(each) is not int or not 0 <= each < form.n_columns]:
        raise RequestError(
            f"row {place} has the index {_said(wrong[0])}; give whole numbers from 0 to {form.n_columns - 1}"
        )
    own = np.array(indices, np.int64)
    order = np.argsort(own, kind="stable")
    if (twice := np.flatnonzero(np.diff(own[order]) == 0)).size:
        raise RequestError(f"row {place} has the index {own[order][twice[0]]} twice; give each once")
    return own[order], np.array(_numbers(f"row {place}", values), np.float64)[order]


def _numbers(where: str, row: list[Any]) -> list[float]:
    if not set(map(type, row)) <= {int, float}:
        wrong = next(each for each in row if type(each) not in (int, float))
        raise RequestError(f"{where} has {_said(wrong)} for a number; give numbers only")
    return row


def _said(value: Any) -> str:
    return _kind(value) if isinstance(value, bool | None | dict | list) else repr(value)[:40]


def _kind(value: Any) -> str:
    """Name what JSON holds."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    for kind, name in ((dict, "an object"), (list, "a list" if value else "an empty list"), (str, "a string")):
        if isinstance(value, kind):
            return name
    return f"the number {value!r:.40}"

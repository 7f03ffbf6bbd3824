"""What a request for predictions may hold, checked before anything is computed of it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, vstack

from xsoftmax.data.rows import Form
from xsoftmax.internal.documents import parse_json
from xsoftmax.internal.errors import InputError, suggestion
from xsoftmax.serving.request_rows import ANY, RequestError, kind_of, read_rows, said

KEYS = ("texts", "rows", "top", "exact")
TOP = 5
# Cells of a row of nothing, and of an example, by the kind of their column.
_FILLED = {"texts": "", "dense": 0.0, "categories": ""}
_EXAMPLES = {"texts": "a text", "dense": 0.5, "categories": "a category"}


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


class Asked(NamedTuple):
    """What a request asks.

    Attributes
    ----------
    rows : list of str, or of tuples of cells; csr_array or ndarray of shape (n_rows, n_columns), float32
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
        raise RequestError(f"the request is {kind_of(found)}; send an object such as {example(form)}")
    if unknown := [key for key in found if key not in KEYS]:
        raise RequestError(f"unknown key {unknown[0][:40]!r}; {suggestion(unknown[0][:40], KEYS)}")
    rows = _rows(found, form, limits)
    top, exact = found.get("top", min(TOP, limits.top)), found.get("exact", False)
    if type(top) is not int or not 1 <= top <= limits.top:
        raise RequestError(f"top is {said(top)}; give a whole number from 1 to {limits.top}")
    if not isinstance(exact, bool):
        raise RequestError(f"exact is {said(exact)}; give true or false")
    return Asked(rows, top, exact)


def empty_rows(form: Form) -> list[Any]:
    """Give a row of nothing, in each of the forms that rows may have."""
    sparse, dense = csr_array((1, form.n_columns), dtype=np.float32), np.zeros((1, form.n_columns), np.float32)
    table = [tuple(_FILLED[kind] for kind, place in form.places for _ in form.feature_names[place])]
    found = {"texts": [[""]], "sparse": [sparse], "dense": [dense], ANY: [sparse, dense], "table": [table]}
    return found[form.kind]


def example(form: Form) -> str:
    """Give the JSON of a request that would do."""
    if form.kind == "texts":
        return '{"texts": ["a text"], "top": 3}'
    if form.kind == "sparse":
        return '{"rows": [{"indices": [0, 7], "values": [1.0, 0.5]}], "top": 3}'
    if form.kind == "table":
        cells = [_EXAMPLES[kind] for kind, place in form.places for _ in form.feature_names[place]]
        row = dict(zip(form.feature_names, cells, strict=True))
        return json.dumps({"rows": [row], "top": 3}, ensure_ascii=False)
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
        what = {"texts": "texts", "table": "rows with named columns"}.get(form.kind, "rows of numbers")
        raise RequestError(f"the model takes {what}; send {name} and nothing else, such as {example(form)}")
    rows = found[name]
    if not isinstance(rows, list) or not rows:
        raise RequestError(f"{name} is {kind_of(rows)}; give a list with one row or more, such as {example(form)}")
    if len(rows) > limits.rows:
        raise RequestError(f"{len(rows)} {name}; send {limits.rows} at most at a time", 413)
    if name == "texts":
        for place, text in enumerate(rows):
            if not isinstance(text, str):
                raise RequestError(f"text {place} is {kind_of(text)}; give a string")
        return rows
    return read_rows(rows, form)

"""What a request may hold, and what is said of one that does not."""

import json

import numpy as np
import pytest
from scipy.sparse import issparse

from serving.models import KINDS, rows_of, transform_of
from xsoftmax.data.rows import Form
from xsoftmax.serving.request_rows import ANY, RequestError
from xsoftmax.serving.requests import Limits, example, joined, read_request

LIMITS = Limits(rows=4, top=6)


def form_of(kind):
    return Form(ANY, 5) if kind == "features" else transform_of(kind)


def read(kind, content):
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    return read_request(body, form_of(kind), LIMITS)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_read(kind):
    content, X = rows_of(kind)
    asked = read(kind, content | {"top": 2, "exact": True})
    assert (asked.n_rows, asked.top, asked.exact) == (3, 2, True)
    assert read(kind, content).top == 5
    found = form_of(kind).apply(asked.rows) if kind in ("texts", "table") else asked.rows
    assert issparse(found) == issparse(X)
    np.testing.assert_allclose(found.toarray() if issparse(found) else found, X.toarray() if issparse(X) else X)
    twice = joined([asked, asked])
    assert (len(twice) if isinstance(twice, list) else twice.shape[0]) == 6


def test_cells_of_categories_are_as_a_table_has_them():
    rows = [{"title": "red", "price": 1, "brand": brand} for brand in ("3", 3, 3.0, None)]
    assert [row[2] for row in read("table", {"rows": rows}).rows] == ["3", "3", "3", ""]


@pytest.mark.parametrize("kind", KINDS)
def test_the_example_of_an_error_would_do(kind):
    text = example(Form("sparse", 9) if kind in ("sparse", "encoded") else Form("dense", 1))
    n_columns = 9 if kind in ("sparse", "encoded") else 1
    read_request(text.encode(), Form("sparse" if n_columns == 9 else "dense", n_columns), LIMITS)
    table = form_of("table")
    assert read_request(example(table).encode(), table, LIMITS).rows == [("a text", 0.5, "a category")]


BAD = {
    "not UTF-8": ("texts", b"\xff\xfe", "the request is not UTF-8; send JSON in UTF-8"),
    "not JSON": ("texts", b"{", "the request is not JSON: "),
    "a key twice": ("texts", b'{"top": 1, "top": 2}', "the key 'top' comes twice"),
    "too deep": ("texts", b"[" * 100_000, "nested too deeply"),
    "no object": ("texts", [1], "the request is a list; send an object such as "),
    "an unknown key": ("texts", {"text": ["a"]}, "unknown key 'text'; known: texts, rows, top, exact; did you mean"),
    "no rows": ("texts", {"top": 1}, "the model takes texts; send texts and nothing else"),
    "rows for texts": ("texts", {"rows": [[1]]}, "the model takes texts; send texts and nothing else"),
    "texts for rows": ("dense", {"texts": ["a"]}, "the model takes rows of numbers; send rows and nothing else"),
    "both": ("dense", {"texts": ["a"], "rows": [[1]]}, "send rows and nothing else"),
    "none at all": ("texts", {"texts": []}, "texts is an empty list; give a list with one row or more"),
    "no list": ("texts", {"texts": "a"}, "texts is a string; give a list with one row or more"),
    "a number": ("texts", {"texts": ["a", None]}, "text 1 is null; give a string"),
    "a short row": ("dense", {"rows": [[1, 2]]}, "row 0 has 2 numbers, the model 5 columns"),
    "no row": ("dense", {"rows": [7]}, "row 0 is the number 7; give a list of 5 numbers"),
    "a text": ("dense", {"rows": [[1, 2, 3, "4", 5]]}, "row 0 has '4' for a number; give numbers only"),
    "true": ("dense", {"rows": [[1, 2, 3, True, 5]]}, "row 0 has true for a number; give numbers only"),
    "NaN": ("dense", b'{"rows": [[1, 2, 3, NaN, 5]]}', "row 0 has a number that is NaN, infinite, or too large"),
    "too large": (
        "dense",
        {"rows": [[0] * 5, [1e300] * 5]},
        "row 1 has a number that is NaN, infinite, or too large",
    ),
    "huge": ("dense", b'{"rows": [[1' + b"0" * 400 + b", 2, 3, 4, 5]]}", "a whole number too large"),
    "no such column": ("named", {"rows": [{"a": 1, "b": 1, "c": 1, "d": 1}]}, "row 0 has no 'e'; known: a, b, c, d"),
    "a list for a table": (
        "table",
        {"rows": [["red", 1, "3"]]},
        "row 0 is a list; give an object with the columns 't",
    ),
    "a column missing": (
        "table",
        {"rows": [{"title": "a", "price": 1}]},
        "row 0 has no 'brand'; known: title, price",
    ),
    "texts for a table": (
        "table",
        {"texts": ["a"]},
        "the model takes rows with named columns; send rows and nothing",
    ),
    "a text for a number": (
        "table",
        {"rows": [{"title": "a", "price": "1", "brand": "b"}]},
        "row 0: 'price' has '1' for a number; give numbers only",
    ),
    "a number too large": (
        "table",
        {"rows": [{"title": "a", "price": 1e39, "brand": "b"}]},
        "row 0: 'price' is NaN, infinite, or too large for float32; mend it",
    ),
    "a number for a text": (
        "table",
        {"rows": [{"title": 1, "price": 1, "brand": "b"}]},
        "row 0: 'title' is 1; give a string",
    ),
    "a list for a category": (
        "table",
        {"rows": [{"title": "a", "price": 1, "brand": [1]}]},
        "row 0: 'brand' is a list; give a string",
    ),
    "sparse for dense": (
        "dense",
        {"rows": [{"indices": [1], "values": [1]}]},
        "row 0 is an object; give a list of 5",
    ),
    "values missing": ("sparse", {"rows": [{"indices": [1]}]}, "row 0 is an object; give an object with indices and"),
    "of other lengths": ("sparse", {"rows": [{"indices": [1], "values": []}]}, "row 0 has 1 indices and 0 values"),
    "no lists": ("sparse", {"rows": [{"indices": 1, "values": 1}]}, "row 0: indices is the number 1; give a list"),
    "an index too high": (
        "sparse",
        {"rows": [{"indices": [5], "values": [1]}]},
        "the index 5; give whole numbers from",
    ),
    "an index below 0": ("sparse", {"rows": [{"indices": [-1], "values": [1]}]}, "the index -1; give whole numbers"),
    "an index of 2**70": (
        "sparse",
        {"rows": [{"indices": [2**70], "values": [1]}]},
        "give whole numbers from 0 to 4",
    ),
    "an index twice": ("sparse", {"rows": [{"indices": [1, 1], "values": [1, 2]}]}, "row 0 has the index 1 twice"),
    "mixed rows": (
        "features",
        {"rows": [[1, 2, 3, 4, 5], {"indices": [], "values": []}]},
        "row 1 is an object; give",
    ),
    "top 0": ("texts", {"texts": ["a"], "top": 0}, "top is 0; give a whole number from 1 to 6"),
    "top too high": ("texts", {"texts": ["a"], "top": 7}, "top is 7; give a whole number from 1 to 6"),
    "top of no number": ("texts", {"texts": ["a"], "top": True}, "top is true; give a whole number from 1 to 6"),
    "exact of no kind": ("texts", {"texts": ["a"], "exact": 1}, "exact is 1; give true or false"),
}


@pytest.mark.fault(
    "a request for predictions that is no JSON, of other rows than the model's, or of numbers that are none",
    happens="it is refused before anything is computed; others are answered",
    user='`{"error": "…"}` with status 400: what, the value, what to do',
)
@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_told(name):
    kind, content, message = BAD[name]
    with pytest.raises(RequestError) as caught:
        read(kind, content)
    assert message in str(caught.value)
    assert caught.value.status == 400
    assert len(str(caught.value)) < 500


def test_too_many_rows_are_refused():
    with pytest.raises(RequestError, match="5 texts; send 4 at most at a time") as caught:
        read("texts", {"texts": ["a"] * 5})
    assert caught.value.status == 413

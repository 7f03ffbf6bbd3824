"""Extreme Classification Repository, raw texts: a text per line (``trn_X.txt``), or JSON lines (``trn.json``).

Labels of texts are in a file of their own, ``trn_X_Y.txt``, with a header ``rows labels`` and ``label:value ...`` for
each row. A JSON line has its own: ``{"title": ..., "content": ..., "target_ind": [labels], "target_rel": [values]}``.
Labels are numbered from 0.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from xsoftmax.data.rows import Features, Form, Rows, Texts, not_text
from xsoftmax.data.sparse_matrix import RowLabels, check_together, read_labels
from xsoftmax.data.sparse_text import LARGEST_SIZE
from xsoftmax.data.text_lines import text_lines
from xsoftmax.internal.documents import parse_json
from xsoftmax.internal.errors import InputError

NEW_ROWS = (".json",)


def read(*, texts: Path, labels: Path | None = None, content: bool = True) -> Rows:
    """Read texts and labels; a row may have no label or several.

    Parameters
    ----------
    texts : Path
        JSON lines if it is called ``.json``, perhaps compressed, otherwise a text per line.
    labels : Path, optional
        Needless for JSON lines.
    content : bool
        The text of a JSON line is its title and its content, otherwise its title.
    """
    if ".json" in texts.suffixes:
        found = read_json(texts, content)
        if labels is None:
            return found
        walk = found.features
    else:
        walk = Texts(lambda: text_lines(texts), sum(1 for _ in text_lines(texts)))
    if labels is None:
        raise InputError(f"{texts}: no labels in it; name a file 'labels', such as trn_X_Y.txt")
    each = read_labels(labels)
    check_together(labels, each.n_samples, texts, len(walk))
    return Rows(walk, each.starts, each.labels)


def read_json(path: Path, content: bool) -> Rows:
    """Read JSON lines: texts, and labels where a line has them.

    Raises
    ------
    InputError
        If a line is not JSON, or something in it is no text or no label; with the line.
    """
    labels: list[int] = []
    ends = [0]
    for line, where in _objects(path):
        _text(line, content, where)
        labels.extend(_labels(line, where))
        ends.append(len(labels))
    found = RowLabels(np.array(ends, np.int64), np.array(labels, np.int64))
    texts = Texts(lambda: (_text(line, content, where) for line, where in _objects(path)), found.n_samples)
    return Rows(texts, found.starts, found.labels)


def read_new(path: Path, form: Form) -> Features:
    """Read texts of JSON lines, with labels or without."""
    return read_labelled(path, form).features


def read_labelled(path: Path, form: Form) -> Rows:
    """Read JSON lines with their labels."""
    return read_json(path, bool(form.source.get("options", {}).get("content", True)))


def _objects(path: Path) -> Iterator[tuple[dict[str, Any], str]]:
    for number, text in enumerate(text_lines(path), 1):
        where = f"{path}, line {number}"
        line = parse_json(text, where)
        if not isinstance(line, dict):
            raise InputError(f"{where}: expected an object with 'title' and 'target_ind', found {text[:40]!r}")
        yield line, where


def _text(line: dict[str, Any], content: bool, where: str) -> str:
    """Join title and content, a line each; a content that is missing is empty."""
    texts = [line.get("title"), *([line.get("content", "")] if content else [])]
    for name, text in zip(("title", "content"), texts, strict=False):
        if not isinstance(text, str) or not_text([text]) is not None:
            raise InputError(f"{where}: the {name} is {text!r:.40}; expected text")
    return "\n".join(text for text in texts if text)


def _labels(line: dict[str, Any], where: str) -> list[int]:
    """List the labels whose value is not 0."""
    labels = line.get("target_ind", [])
    values = line.get("target_rel", [1] * len(labels) if isinstance(labels, list) else [])
    if not isinstance(labels, list) or not isinstance(values, list) or len(labels) != len(values):
        raise InputError(
            f"{where}: target_ind is {labels!r:.40}, target_rel {values!r:.40}; expected lists of one length"
        )
    if not all(isinstance(value, int | float) for value in values):
        raise InputError(f"{where}: target_rel is {values!r:.40}; expected numbers")
    for label in labels:
        if type(label) is not int or not 0 <= label <= LARGEST_SIZE:
            raise InputError(f"{where}: the label {label!r:.40} is no whole number from 0 to {LARGEST_SIZE}")
    return [label for label, value in zip(labels, values, strict=True) if value != 0]

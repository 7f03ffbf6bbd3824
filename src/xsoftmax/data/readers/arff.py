"""Mulan's multi-label data: sparse ARFF, and an XML list that says which attributes are labels."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from xsoftmax.data import parsing
from xsoftmax.data.rows import Rows
from xsoftmax.data.sparse_text import LineBlock, SparseRows, line_blocks, shortened
from xsoftmax.data.xml_file import xml_root
from xsoftmax.internal.errors import InputError

ATTRIBUTE = re.compile(rb"@attribute\s+('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\S+)\s+(\S.*)", re.IGNORECASE)
NUMERIC = (b"numeric", b"real", b"integer")


class Header(NamedTuple):
    """Attribute names in order, and what follows the header in its block."""

    attributes: list[str]
    rest: LineBlock


def read(*, data: Path, labels: Path) -> Rows:
    """Read rows; labels are numbered, and named, in the order of their attributes.

    Parameters
    ----------
    data : Path
        Sparse ARFF.
    labels : Path
        Mulan's XML list of labels.
    """
    blocks = line_blocks(data)
    header = _header(data, blocks)
    columns = _columns(header.attributes, _label_names(labels), data, labels)
    n_labels = int((columns < 0).sum())
    count = f"the attribute number is out of range (the header has {columns.size}, from 0)"
    collected = SparseRows(data, {parsing.INDEX_RANGE: count, parsing.BAD_INDEX: "expected an attribute number"})
    if header.rest.text:
        collected.add(header.rest, parsing.parse_arff, columns)
    for block in blocks:
        collected.add(block, parsing.parse_arff, columns)
    if collected.n_rows == 0:
        raise InputError(f"{data}: no row after @data; fetch it again")
    names = tuple(header.attributes[i] for i in np.flatnonzero(columns < 0))
    return collected.rows(columns.size - n_labels, names)


def _header(path: Path, blocks: Iterator[LineBlock]) -> Header:
    """Read the attributes up to ``@data``."""
    attributes: list[str] = []
    for block in blocks:
        start, line = 0, block.first_line
        while start < len(block.text):
            end = block.text.index(b"\n", start) + 1
            text = block.text[start:end].strip()
            start = end
            if text.lower().startswith(b"@data"):
                return Header(attributes, LineBlock(block.text[start:], line + 1))
            if text.lower().startswith(b"@attribute"):
                attributes.append(_attribute(path, line, text))
            elif text and not text.lower().startswith((b"%", b"@relation")):
                raise InputError(f"{path}, line {line}: expected an ARFF header, found {shortened(text)!r}")
            line += 1
    raise InputError(f"{path}: no @data in it; is it complete, and ARFF?")


def _attribute(path: Path, line: int, text: bytes) -> str:
    match = ATTRIBUTE.fullmatch(text)
    if match is None:
        raise InputError(f"{path}, line {line}: cannot read the attribute: {shortened(text)!r}")
    kind = match[2].strip().lower()
    if kind not in NUMERIC and not kind.startswith(b"{"):
        raise InputError(f"{path}, line {line}: attributes must be numbers or {{0,1}}: {shortened(text)!r}")
    name = match[1].decode("utf-8", "replace")
    quoted = name[0] in "'\"" and len(name) > 1
    return re.sub(r"\\(.)", r"\1", name[1:-1]) if quoted else name


def _label_names(path: Path) -> list[str]:
    root = xml_root(path, "a list of labels in XML", "fetch it again")
    names = [each.get("name", "") for each in root.iter() if each.tag.rsplit("}", 1)[-1] == "label"]
    if not names:
        raise InputError(f"{path}: no <label name=...> in it; is it Mulan's list of labels?")
    return names


def _columns(attributes: list[str], names: list[str], data: Path, labels: Path) -> np.ndarray:
    """Number the features from 0 up and the labels from -1 down, in the order of the attributes."""
    missing = set(names) - set(attributes)
    if missing:
        raise InputError(f"{labels}: label {min(missing)!r} is not an attribute of {data}; do they belong together?")
    known = set(names)
    is_label = np.array([name in known for name in attributes], dtype=bool)
    columns = np.where(is_label, -np.cumsum(is_label), np.cumsum(~is_label) - 1)
    return columns.astype(np.int64)

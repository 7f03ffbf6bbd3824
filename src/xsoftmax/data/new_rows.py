"""Read rows that have no labels yet, in the form that a data set was prepared from."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xsoftmax.data import checksum
from xsoftmax.data.rows import Texts
from xsoftmax.errors import InputError

if TYPE_CHECKING:
    from xsoftmax.data.transform import Transform

COMPRESSED = (".gz", ".xz", ".bz2")


def read_new_rows(path: Path, transform: "Transform") -> Any:
    """Read a file by its ending: texts where the training rows were texts, otherwise vectors.

    Returns
    -------
    Texts, csr_array or ndarray

    Raises
    ------
    InputError
        If the file is missing or empty, or its form does not fit.
    """
    if not path.exists():
        raise InputError(f"{path}: no such file")
    suffix = next((each for each in reversed(path.suffixes) if each not in COMPRESSED), "")
    options = dict(transform.source.get("options", {}))
    return _texts(path, suffix, options) if transform.kind == "texts" else _vectors(path, suffix, options, transform)


def _texts(path: Path, suffix: str, options: dict[str, Any]) -> Texts:
    """Read a column of a table, or one text per line."""
    from xsoftmax.data.readers.table import Table

    if suffix not in (".csv", ".tsv", ".parquet"):
        return Texts(lambda: _lines(path), sum(1 for _ in _lines(path)))
    table = Table(path, options.get("header", True), options.get("delimiter"), options.get("encoding", "utf-8"))
    column = options.get("text", "text")
    return Texts(lambda: (row[0] for row in table.columns([column])), sum(1 for _ in table.columns([column])))


def _lines(path: Path) -> Iterator[str]:
    from xsoftmax.data.sparse_text import line_blocks

    for block in line_blocks(path):
        try:
            yield from block.text.decode("utf-8").splitlines()
        except UnicodeDecodeError as error:
            raise InputError(f"{path}: after line {block.first_line}: not utf-8 ({error.reason})") from error


def _vectors(path: Path, suffix: str, options: dict[str, Any], transform: "Transform") -> Any:
    from xsoftmax.data.readers import arrays, svmlight, xc

    if suffix in (".npy", ".npz"):
        return arrays.load_matrix(path, str(options.get("x", "X")))
    if suffix in (".csv", ".tsv", ".parquet"):
        return _numbers(path, options, transform.n_columns)
    if _has_xc_header(path):
        return xc.read(data=path, require_labels=False).features
    zero_based = bool(options.get("zero_based", False)) or transform.source.get("format") == "xc"
    rows = svmlight.read(data=path, zero_based=zero_based, n_features=transform.n_columns, require_labels=False)
    return rows.features


def _numbers(path: Path, options: dict[str, Any], n_columns: int) -> Any:
    """Read columns of numbers; a column of labels may be there or not."""
    from xsoftmax.data.readers.table import Table

    table = Table(path, options.get("header", True), options.get("delimiter"), options.get("encoding", "utf-8"))
    has_label = len(table.column_names()) == n_columns + 1
    return table.numbers(options.get("label", "label") if has_label else None, [])


def _has_xc_header(path: Path) -> bool:
    head = next(checksum.blocks(path, 200), b"").partition(b"\n")[0].split()
    return len(head) == 3 and all(word.isdigit() for word in head)

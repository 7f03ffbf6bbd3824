"""Tables (CSV, TSV, Parquet): a column of texts and one of labels; without texts, columns of numbers."""

import codecs
import csv
import io
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from xsoftmax.data import checksum
from xsoftmax.data.encoding import text_encoding
from xsoftmax.data.rows import Features, Form, Rows, Texts, not_text
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.free_memory import check_free

BLOCK_ROWS = 4096
ROW_BYTES = 64  # of a label's text and its number, at least
EXACT = 2.0**53
NEW_ROWS = (".csv", ".tsv", ".parquet")
# What to do, on the command line of `fit`, and in the description of a data set.
TEXTS = "where a column has texts, name it (--text of `fit`, or options: {text: ...})"
OTHERWISE = "see options.encoding and delimiter, or --encoding and --delimiter of `fit`"


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
    separator = _separator(label_separator, data)
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
    label, separator = options.get("label", "label"), _separator(options.get("label_separator"), path)
    if form.kind == "texts":
        return _read(table, label, _column_of_texts(options), None, separator)
    named = form.feature_names and table.named
    beside = _columns_beside(table, form) or [label]
    return _read(table, label, None, form.feature_names if named else table.other_columns(*beside), separator)


def _columns_beside(table: "Table", form: Form) -> list[Any]:
    """Name the columns of labels, and of weights, of new rows that have as many more columns than features."""
    options = form.source.get("options", {})
    given = [options.get("label", "label"), options.get("weight")]
    known = [column for column in given if column is not None]
    more = len(table.column_names()) - form.n_columns
    return known[: max(0, more)] if more <= len(known) else []


def _weights(table: "Table", column: str | int) -> np.ndarray:
    """Read what rows count, float32 of shape (n_samples,)."""
    cells = [row[0] for row in table.columns([column])]
    with np.errstate(over="ignore"):  # told below
        weight = np.array([_number(cell) for cell in cells], np.float32)
    right = np.isfinite(weight) & (weight >= 0)
    if not right.all():
        row = int(np.argmin(right))
        raise InputError(f"{table.path}, row {row + 1}: the weight is {cells[row][:40]!r}; give a number, 0 or more")
    return weight


def _read(
    table: "Table",
    label: str | int,
    text: str | int | None,
    features: Sequence[str | int] | None,
    separator: str | None,
) -> Rows:
    names: list[str] = []
    if text is None:
        return _labelled(table.numbers(label, features or [], names), names, table.path, separator)
    names.extend(name for name, _ in table.columns([label, text]))
    texts = Texts(lambda: (row[0] for row in table.columns([text])), len(names))
    return _labelled(texts, names, table.path, separator)


def _column_of_texts(options: Mapping[str, Any]) -> Any:
    """Name the column of texts: ``text`` for a model whose texts were in no table."""
    return options.get("text", "text")


def _separator(separator: str | None, path: Path) -> str | None:
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


def _labelled(features: Texts | np.ndarray, names: list[str], path: Path, separator: str | None) -> Rows:
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


class Table:
    """A table that is read from the start each time, a block of rows in memory at once."""

    def __init__(
        self, path: Path, header: bool = True, delimiter: str | None = None, encoding: str = "utf-8"
    ) -> None:
        self.path, self.header, self.encoding = path, header, text_encoding(encoding)
        suffixes = [suffix.lower() for suffix in path.suffixes]
        self.parquet = suffixes[-1:] == [".parquet"]
        self.named = header or self.parquet
        self.delimiter = delimiter or ("\t" if ".tsv" in suffixes else ",")
        if len(self.delimiter) != 1 or self.delimiter in '\r\n"':
            raise InputError(f"{path}: options.delimiter is {delimiter!r}; give one character, such as ';' or '\\t'")
        if not path.exists():
            raise InputError(f"{path}: no such file")

    def columns(self, wanted: Sequence[str | int]) -> Iterator[Sequence[str]]:
        """Walk through some columns."""
        return (row for _, row in self._cells(wanted))

    def numbers(self, label: str | int | None, wanted: Sequence[str | int], names: list[str]) -> np.ndarray:
        """Read the columns ``wanted`` as numbers; cells of the column ``label`` are added to ``names``."""
        blocks: list[np.ndarray] = []
        block: list[Sequence[str]] = []
        lines: list[int] = []
        for line, row in self._cells([*wanted, *([] if label is None else [label])]):
            if label is not None:
                names.append(row[-1])
                row = row[:-1]
            block.append(row)
            lines.append(line)
            if len(block) == BLOCK_ROWS:
                blocks.append(self._numbers(block, lines))
                block, lines = [], []
        if block:
            blocks.append(self._numbers(block, lines))
        return np.concatenate(blocks) if blocks else np.zeros((0, len(wanted)), dtype=np.float32)

    def other_columns(self, *but: str | int | None) -> list[str | int]:
        """Give the numbers of all columns but some, whose names, where they have some, are not said twice."""
        columns = self.column_names()
        left_out = self._positions([column for column in but if column is not None], columns)
        others = [i for i in range(len(columns)) if i not in left_out]
        if self.named:
            self._positions([columns[i] for i in others], columns)
            self._refuse_numbers_as_names(columns)
        return list(others)

    def names_of(self, columns: Sequence[str | int]) -> list[str]:
        """Name columns."""
        names = self.column_names()
        return [names[i] for i in self._positions(columns, names)]

    def _refuse_numbers_as_names(self, columns: list[str]) -> None:
        """Raise an error if the first line is rather a row; pandas counts columns that have no names."""
        counted = [[str(start + i) for i in range(len(columns))] for start in (0, 1)]
        if columns and all(map(_is_number, columns)) and columns not in counted:
            first = self.delimiter.join(columns)[:40]
            raise InputError(
                f"{self.path}: the first line is a row of numbers, expected the names of columns: {first!r}; write"
                " them above it, or before preparing set options.header: false"
            )

    def _numbers(self, block: list[Sequence[str]], lines: list[int]) -> np.ndarray:
        try:
            with np.errstate(over="ignore"):  # said below, with the line
                values = np.array(block, dtype=np.float32)
        except ValueError:
            values = np.array([[_number(cell) for cell in row] for row in block])
        if not np.isfinite(values).all():
            row, column = (int(found[0]) for found in np.nonzero(~np.isfinite(values)))
            where = f"{self.path}, {'row' if self.parquet else 'line'} {lines[row]}"
            cell = block[row][column]
            remedy = "; leave the row out, or give a number" if _is_number(cell) else f"; {TEXTS}"
            raise InputError(f"{where}: not a finite number: {cell[:40]!r}{remedy}")
        return values

    def column_names(self) -> list[str]:
        """Name the columns; by their numbers if there is no header."""
        if self.parquet:
            file = self._parquet_file()
            with self._damage_named(""):
                return list(file.schema_arrow.names)
        _, names = next(self._lines(), (0, []))
        return names if self.header else [str(i) for i in range(len(names))]

    def _cells(self, wanted: Sequence[str | int]) -> Iterator[tuple[int, Sequence[str]]]:
        """Walk through some columns, each row with the line it begins on, or its number in Parquet."""
        names = self.column_names()
        positions = self._positions(wanted, names)
        if self.parquet:
            return enumerate(self._parquet([names[i] for i in positions]), 1)
        if len(positions) == 1:  # of which itemgetter gives the cell alone
            return ((line, row[positions[0] : positions[0] + 1]) for line, row in self._rows())
        taken: Callable[[list[str]], Sequence[str]] = itemgetter(*positions) if positions else lambda row: []
        return ((line, taken(row)) for line, row in self._rows())

    def _positions(self, columns: Sequence[str | int], names: list[str]) -> list[int]:
        """Find columns by name or number; a name that several have is an error."""
        by_name: dict[str, int] = {}
        twice = {name for i, name in enumerate(names) if by_name.setdefault(name, i) != i}
        positions = []
        for column in columns:
            if isinstance(column, int):
                at = column % len(names) if -len(names) <= column < len(names) else None
            else:
                at = by_name.get(column)
            if at is None:
                remedy = "rename one, or name it (--label and --text of `fit`, or a data set's options)"
                if names and all(map(_is_number, names)):
                    remedy = "the first line should name the columns"
                shown = ", ".join(names[:20]) or "none"
                raise InputError(f"{self.path}: no column {column!r}; columns: {shown}; {remedy}")
            if column in twice:
                raise InputError(f"{self.path}: several columns are named {column!r}; rename all but one")
            positions.append(at)
        return positions

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        """Walk through the rows below the header; all must have as many cells as the first line."""
        width = None
        for line, row in self._lines():
            if width is None:
                width = len(row)
                if self.header:
                    continue
            if len(row) != width:
                cells = self.delimiter.join(row)[:40]
                raise InputError(f"{self.path}, line {line}: {len(row)} cells, the first line has {width}: {cells!r}")
            yield line, row

    def _lines(self) -> Iterator[tuple[int, list[str]]]:
        """Walk through what is not blank, each with the line it begins on; of a single column blank lines count."""
        if self.path.stat().st_size == 0:
            raise InputError(f"{self.path}: the file is empty")
        csv.field_size_limit(sys.maxsize)
        with io.TextIOWrapper(checksum.open_content(self.path), self.encoding, newline="") as file:
            reader = csv.reader(file, delimiter=self.delimiter, strict=True)
            try:
                line = 1
                single = False
                for row in reader:
                    if not row and single:  # an empty cell, where there is but one
                        row = [""]
                    if row:
                        single = len(row) == 1
                        yield line, row
                    line = reader.line_num + 1
            except UnicodeDecodeError as error:
                where = f"{self.path}, line {self._undecodable_line()}"
                raise InputError(f"{where}: cannot read on ({error}); {OTHERWISE}") from error
            except csv.Error as error:
                raise InputError(
                    f"{self.path}, line {line}: a quote opens in this row and is not closed as it should be"
                    f" ({error}); within a cell it is written twice; {OTHERWISE}"
                ) from error
            except checksum.DAMAGED as error:
                where = f"{self.path}, after line {reader.line_num}"
                raise InputError(f"{where}: cannot read on ({error}); {OTHERWISE}") from error

    def _undecodable_line(self) -> int:
        """Find the line with the first bytes that are no text: what is read ahead of a row says nothing of it."""
        decoder, line = codecs.getincrementaldecoder(self.encoding)(), 1
        with checksum.open_content(self.path) as file:
            try:
                for piece in file:
                    line += decoder.decode(piece).count("\n")
            except (UnicodeDecodeError, *checksum.DAMAGED):
                pass
        return line

    def _parquet(self, columns: list[str]) -> Iterator[list[str]]:
        for lists in self._batches(columns):
            for row in zip(*lists, strict=True):
                yield [self._cell(cell) for cell in row]

    def _cell(self, cell: Any) -> str:
        """Write a cell as a CSV file would have it: nothing where it is missing, bytes as the text that they are.

        Whole numbers stay whole where missing ones beside them made the column one of floats.
        """
        if cell is None or cell != cell:  # NaN
            return ""
        if isinstance(cell, bytes):
            try:
                return cell.decode()
            except UnicodeDecodeError as error:
                raise InputError(f"{self.path}: a cell of bytes that are not utf-8: {cell[:40]!r}") from error
        if isinstance(cell, list | dict):
            raise InputError(f"{self.path}: a cell with several values: {str(cell)[:40]!r}; give one to a cell")
        return str(int(cell)) if isinstance(cell, float) and cell.is_integer() and abs(cell) < EXACT else str(cell)

    def _batches(self, columns: list[str]) -> Iterator[list[list[Any]]]:
        """Walk through the cells of columns, many rows at a time."""
        row = 0
        with self._parquet_file() as file:
            batches = file.iter_batches(batch_size=BLOCK_ROWS, columns=columns)
            while True:
                with self._damage_named(f", after row {row}"):
                    batch = next(batches, None)
                    if batch is None:
                        return
                    lists = [batch.column(column).to_pylist() for column in columns]
                yield lists
                row += batch.num_rows

    def _parquet_file(self) -> Any:
        import pyarrow.parquet

        with self._damage_named(""):
            file = pyarrow.parquet.ParquetFile(self.path)
            check_free(ROW_BYTES * file.metadata.num_rows, f"{self.path}: {file.metadata.num_rows:,} rows")
            return file

    @contextmanager
    def _damage_named(self, where: str) -> Iterator[None]:
        """Name the file, and where in it, if pyarrow cannot read on."""
        import pyarrow

        try:
            yield
        except (pyarrow.ArrowException, OSError, ValueError, LookupError, OverflowError) as error:
            raise InputError(f"{self.path}{where}: not a Parquet file, or damaged ({error})") from error


def _number(cell: str) -> float:
    return float(cell) if _is_number(cell) else float("nan")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True

"""Columns of a table (CSV, TSV, Parquet, JSON lines), by name or number: as text, or as numbers."""

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path

import numpy as np

from xsoftmax.data.delimited_text import DelimitedText
from xsoftmax.data.json_rows import SUFFIXES, JsonRows
from xsoftmax.data.parquet_rows import ParquetRows
from xsoftmax.internal.errors import InputError

BLOCK_ROWS = 4096
# What to do, on the command line of `fit`, and in the description of a data set.
TEXTS = "where a column has texts, name it (--text of `fit`, or options: {text: ...})"


class Table:
    """A table that is read from the start each time, a block of rows in memory at once."""

    def __init__(
        self, path: Path, header: bool = True, delimiter: str | None = None, encoding: str = "utf-8"
    ) -> None:
        self.path = path
        if not path.exists():
            raise InputError(f"{path}: no such file")
        self._file: DelimitedText | ParquetRows | JsonRows
        if path.suffix.lower() == ".parquet":
            self._file = ParquetRows(path)
        elif any(suffix.lower() in SUFFIXES for suffix in path.suffixes):
            self._file = JsonRows(path)
        else:
            self._file = DelimitedText(path, header, delimiter, encoding)
        self.named = self._file.named

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
                blocks.append(self._numbers(block, lines, wanted))
                block, lines = [], []
        if block:
            blocks.append(self._numbers(block, lines, wanted))
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

    def check_once(self, columns: Sequence[str | int]) -> None:
        """Make sure that no column is asked for twice, as a label and as a feature.

        Raises
        ------
        InputError
            If one is, or is not there.
        """
        names = self.column_names()
        places = self._positions(columns, names)
        if twice := [place for place in places if places.count(place) > 1]:
            raise InputError(
                f"{self.path}: column {names[twice[0]]!r} is named twice among label, text, numeric, categorical and "
                "weight; name it once"
            )

    def names_of(self, columns: Sequence[str | int]) -> list[str]:
        """Name columns."""
        names = self.column_names()
        return [names[i] for i in self._positions(columns, names)]

    def _refuse_numbers_as_names(self, columns: list[str]) -> None:
        """Raise an error if the first line is rather a row; pandas counts columns that have no names."""
        counted = [[str(start + i) for i in range(len(columns))] for start in (0, 1)]
        if columns and all(map(is_number, columns)) and columns not in counted:
            first = self._file.delimiter.join(columns)[:40]
            raise InputError(
                f"{self.path}: the first line is a row of numbers, expected the names of columns: {first!r}; write"
                " them above it, or before preparing set options.header: false"
            )

    def _numbers(self, block: list[Sequence[str]], lines: list[int], wanted: Sequence[str | int]) -> np.ndarray:
        try:
            with np.errstate(over="ignore"):  # said below, with the line
                values = np.array(block, dtype=np.float32)
        except ValueError:
            values = np.array([[number(cell) for cell in row] for row in block])
        if not np.isfinite(values).all():
            row, column = (int(found[0]) for found in np.nonzero(~np.isfinite(values)))
            where = f"{self.path}, {self._file.place} {lines[row]}"
            cell = block[row][column]
            if not cell.strip():
                name = self.names_of([wanted[column]])[0]
                raise InputError(f"{where}: column {name!r} is empty; give a number, or leave the row out")
            remedy = "; leave the row out, or give a number" if is_number(cell) else f"; {TEXTS}"
            raise InputError(f"{where}: not a finite number: {cell[:40]!r}{remedy}")
        return values

    def _cells(self, wanted: Sequence[str | int]) -> Iterator[tuple[int, Sequence[str]]]:
        """Walk through some columns, each row with where it is."""
        return self._file.cells(self._positions(wanted, self.column_names()))

    def column_names(self) -> list[str]:
        """Name the columns; by their numbers if there is no header."""
        return self._file.column_names()

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
                if names and all(map(is_number, names)):
                    remedy = "the first line should name the columns"
                elif near := get_close_matches(str(column), names, n=1):
                    remedy = f"did you mean {near[0]!r}?"
                shown = ", ".join(names[:20]) or "none"
                raise InputError(f"{self.path}: no column {column!r}; columns: {shown}; {remedy}")
            if column in twice:
                raise InputError(f"{self.path}: several columns are named {column!r}; rename all but one")
            positions.append(at)
        return positions


def number(cell: str) -> float:
    """Read a number; NaN where there is none."""
    return float(cell) if is_number(cell) else float("nan")


def is_number(cell: str) -> bool:
    """Tell whether a cell has a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True

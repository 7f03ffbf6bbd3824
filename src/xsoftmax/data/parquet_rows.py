"""Rows of cells in Parquet files, as text, and what is wrong in them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from xsoftmax.internal.errors import InputError
from xsoftmax.internal.free_memory import check_free

BLOCK_ROWS = 4096
ROW_BYTES = 64  # of a label's text and its number, at least
EXACT = 2.0**53


class ParquetRows:
    """A file that is read from the start each time, a block of rows in memory at once."""

    place = "row"  # where a row is, in messages
    named = True
    delimiter = ","  # in messages

    def __init__(self, path: Path) -> None:
        self.path = path

    def column_names(self) -> list[str]:
        """Name the columns."""
        file = self._parquet_file()
        with self._damage_named(""):
            return list(file.schema_arrow.names)

    def cells(self, positions: Sequence[int]) -> Iterator[tuple[int, Sequence[str]]]:
        """Walk through some columns, each row with its number, from 1."""
        names = self.column_names()
        return enumerate(self._rows([names[i] for i in positions]), 1)

    def _rows(self, columns: list[str]) -> Iterator[list[str]]:
        for lists in self._batches(columns):
            for row in zip(*lists, strict=True):
                yield [self._cell(cell) for cell in row]

    def _cell(self, cell: Any) -> str:
        """Write a cell as a CSV file would have it; bytes as the text that they are."""
        if isinstance(cell, bytes):
            try:
                return cell.decode()
            except UnicodeDecodeError as error:
                raise InputError(f"{self.path}: a cell of bytes that are not utf-8: {cell[:40]!r}") from error
        if isinstance(cell, list | dict):
            raise InputError(f"{self.path}: a cell with several values: {str(cell)[:40]!r}; give one to a cell")
        return text_of_cell(cell)

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


def text_of_cell(cell: Any) -> str:
    """Write a value as a CSV file would have it: nothing where it is missing.

    Whole numbers stay whole where missing ones beside them made the column one of floats.
    """
    if cell is None or cell != cell:  # NaN
        return ""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() and abs(cell) < EXACT else str(cell)

"""Rows of cells in text, with a delimiter between two cells: CSV and TSV, perhaps compressed; what is wrong there."""

import codecs
import csv
import io
import sys
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from pathlib import Path

from xsoftmax.data import checksum
from xsoftmax.data.encoding import text_encoding
from xsoftmax.internal.errors import InputError

# What to do, on the command line of `fit`, and in the description of a data set.
OTHERWISE = "see options.encoding and delimiter, or --encoding and --delimiter"


class DelimitedText:
    """A file that is read from the start each time, a row in memory at once.

    Parameters
    ----------
    path : Path
    header : bool
        The first line names the columns.
    delimiter : str, optional
        Otherwise a tab for ``.tsv`` and a comma for all else.
    encoding : str
    """

    place = "line"  # where a row is, in messages

    def __init__(
        self, path: Path, header: bool = True, delimiter: str | None = None, encoding: str = "utf-8"
    ) -> None:
        self.path, self.named, self.encoding = path, header, text_encoding(encoding)
        tabs = ".tsv" in [suffix.lower() for suffix in path.suffixes]
        self.delimiter = delimiter or ("\t" if tabs else ",")
        if len(self.delimiter) != 1 or self.delimiter in '\r\n"':
            raise InputError(f"{path}: options.delimiter is {delimiter!r}; give one character, such as ';' or '\\t'")

    def column_names(self) -> list[str]:
        """Name the columns; by their numbers if there is no header."""
        _, names = next(self._lines(), (0, []))
        return names if self.named else [str(i) for i in range(len(names))]

    def cells(self, positions: Sequence[int]) -> Iterator[tuple[int, Sequence[str]]]:
        """Walk through some columns, each row with the line it begins on."""
        if len(positions) == 1:  # of which itemgetter gives the cell alone
            return ((line, row[positions[0] : positions[0] + 1]) for line, row in self._rows())
        taken: Callable[[list[str]], Sequence[str]] = itemgetter(*positions) if positions else lambda row: []
        return ((line, taken(row)) for line, row in self._rows())

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        """Walk through the rows below the header; all must have as many cells as the first line."""
        width = None
        for line, row in self._lines():
            if width is None:
                width = len(row)
                if self.named:
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
            except UnicodeError as error:
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
            except (UnicodeError, *checksum.DAMAGED):
                pass
        return line

"""Stream sparse text into a CSR matrix: blocks of whole lines, growing arrays, errors with their line."""

from collections.abc import Callable, Iterator, Mapping
from io import BufferedIOBase
from pathlib import Path
from typing import NamedTuple, NoReturn, cast

import numpy as np
from scipy.sparse import csr_array

from xsoftmax.data import checksum, parsing
from xsoftmax.data.rows import Rows, csr_of
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.free_memory import check_free

BLOCK_BYTES = 2**22
LARGEST_SIZE = 2**31 - 1
MOST_LINE = 2**30
LARGE = 2**26  # bytes, from which more memory is asked for before it is taken
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class LineBlock(NamedTuple):
    """Whole lines, each with its newline, and the number of the first."""

    text: bytes
    first_line: int


def line_blocks(path: Path, size: int = BLOCK_BYTES) -> Iterator[LineBlock]:
    """Read a file, compressed or not, in blocks of whole lines; the last line need not end in a newline.

    A byte order mark at its beginning, as Excel writes one, is no part of it.

    Raises
    ------
    InputError
        If the file is empty, a line has more than a GB, or its compressed data are damaged.
    """
    carried: list[bytes] = []
    line, n_carried, begun = 1, 0, False
    for block in _blocks(path, size):
        block, begun = block if begun else block.removeprefix(BYTE_ORDER_MARK), True
        whole, newline, rest = block.rpartition(b"\n")
        if not newline:
            carried.append(block)
            n_carried += len(block)
            if n_carried > MOST_LINE:
                raise InputError(f"{path}, line {line}: more than {MOST_LINE >> 20} MB in a line; is it text?")
            continue
        text = b"".join([*carried, whole, newline])
        yield LineBlock(text, line)
        line += text.count(b"\n")
        carried, n_carried = [rest], len(rest)
    if last := b"".join(carried):
        yield LineBlock(last + b"\n", line)
    elif line == 1:
        raise InputError(f"{path}: the file is empty; fetch it again")


def header_sizes(path: Path, line: bytes, expected: str) -> list[int]:
    """Read the first line, whole numbers below 2^31: ``expected`` has a word for each."""
    words = line.split()
    if len(words) != len(expected.split()) or not all(word.isdigit() for word in words):
        raise InputError(f"{path}, line 1: expected '{expected}', found {shortened(line)!r}")
    for word in words:
        if len(word) > 10 or int(word) > LARGEST_SIZE:
            found = f"{shortened(word)!r}, more than {LARGEST_SIZE}"
            raise InputError(f"{path}, line 1: expected '{expected}', found {found}; fetch it again")
    return [int(word) for word in words]


def _blocks(path: Path, size: int) -> Iterator[bytes]:
    try:
        yield from checksum.blocks(path, size)
    except InputError as error:
        if error.__cause__ is None:  # too much comes out of it
            raise
        where = f"{path}, after line {_n_readable_lines(path)}"
        message = f"compressed data are truncated or damaged ({error.__cause__}); fetch it again"
        raise InputError(f"{where}: {message}") from error


def _n_readable_lines(path: Path) -> int:
    """Count the whole lines before the damage."""
    n_lines = 0
    with checksum.open_content(path) as file:
        try:
            while block := cast(
                BufferedIOBase, file
            ).read1():  # no more than there is at once: nothing before the damage is lost
                n_lines += block.count(b"\n")
        except checksum.DAMAGED:
            pass
    return n_lines


class Growing:
    """An array that grows by half when it is full; memory that was never filled is never touched."""

    def __init__(self, dtype: type, path: Path) -> None:
        self._path = path
        self._values: np.ndarray = np.empty(1024, dtype=dtype)
        self.size = 0

    def room(self, n: int) -> np.ndarray:
        """Make room for ``n`` more values and give it."""
        if self.size + n > self._values.size:
            size = max(self.size + n, self._values.size * 3 // 2)
            more = (size - self._values.size) * self._values.itemsize
            if more > LARGE // 3:
                check_free(more, f"{self._path}: more of its rows")
            self._values.resize(size, refcheck=False)
        return self._values[self.size : self.size + n]

    def taken(self) -> np.ndarray:
        """Give what is filled; the rest is returned to the system."""
        self._values.resize(self.size, refcheck=False)
        return self._values


class SparseRows:
    """Collect rows and labels from blocks of text.

    Parameters
    ----------
    path : Path
        For messages.
    hints : mapping of error code to str
        What to say about an error of this format, instead of the usual.
    """

    def __init__(self, path: Path, hints: dict[int, str] | None = None) -> None:
        self.path = path
        self.hints = hints or {}
        self._indices, self._data = Growing(np.int32, path), Growing(np.float32, path)
        self._row_ends, self._labels, self._label_ends = (Growing(np.int64, path) for _ in range(3))
        self._unsorted = False
        self.max_index = -1

    @property
    def n_rows(self) -> int:
        """Count the rows so far."""
        return self._row_ends.size

    def add(self, block: LineBlock, kernel: Callable[..., None], *arguments: object) -> None:
        """Parse one block with a kernel, which gets the text, the arguments, and room for its results."""
        text = np.frombuffer(block.text, dtype=np.uint8)
        newlines, colons, commas = parsing.count_marks(text)
        entries = colons if kernel is parsing.parse_labelled else commas + newlines
        columns = (self._indices, self._data, self._row_ends, self._labels, self._label_ends)
        sizes = (entries, entries, newlines, commas + newlines, newlines)
        status = np.zeros(parsing.STATUS_SIZE, dtype=np.int64)
        rooms = [column.room(size) for column, size in zip(columns, sizes, strict=True)]
        kernel(text, *arguments, *rooms, status)
        if status[parsing.CODE] != parsing.OK:
            fail(self.path, block, status, self.hints)
        n_rows, n_entries, n_labels = status[parsing.N_ROWS : parsing.N_LABELS + 1].tolist()
        rooms[2][:n_rows] += self._indices.size
        rooms[4][:n_rows] += self._labels.size
        for column, n in zip(columns, (n_entries, n_entries, n_rows, n_labels, n_rows), strict=True):
            column.size += n
        self._unsorted |= bool(status[parsing.UNSORTED])
        self.max_index = max(self.max_index, int(status[parsing.MAX_INDEX]))

    def add_new(self, base: int, n_features: int, svmlight: bool) -> None:
        """Parse the file as new rows, with labels or without: a row for each line, but for blank ones at its end."""
        n_blank = 0
        for block in line_blocks(self.path):
            self.add(block, parsing.parse_labelled, base, n_features, -1, svmlight, False, True)
            content = block.text.rstrip(b" \t\r\n")
            n_newlines = block.text.count(b"\n", len(content))
            n_blank = n_newlines - 1 if content else n_blank + n_newlines
        for ends in (self._row_ends, self._label_ends):
            ends.size -= n_blank

    def rows(self, n_features: int, label_names: tuple[str, ...] | None = None) -> Rows:
        """Finish: rows with ``n_features`` columns; entries are sorted, and those of one feature added up."""
        indptr = np.concatenate([[0], self._row_ends.taken()])
        label_starts = np.concatenate([[0], self._label_ends.taken()])
        X = csr_of(self._data.taken(), self._indices.taken(), indptr, n_features)
        if self._unsorted:
            X.sum_duplicates()
            self._check_sums(X)
        else:
            X.has_canonical_format = True
        return Rows(X, label_starts, self._labels.taken(), label_names)

    def _check_sums(self, X: csr_array) -> None:
        infinite = np.flatnonzero(~np.isfinite(X.data))
        if infinite.size:
            row = int(np.searchsorted(X.indptr, infinite[0], side="right")) - 1
            feature = X.indices[infinite[0]]
            raise InputError(f"{self.path}, row {row}: the values of feature {feature} add up to infinity; drop some")


MESSAGES = {
    parsing.BAD_INDEX: "expected a feature number, as in 'feature:value'",
    parsing.NO_COLON: "expected 'feature:value'",
    parsing.BAD_VALUE: "the value is not a number",
    parsing.NOT_FINITE: "the value is NaN or infinite; drop or replace such values",
    parsing.INDEX_RANGE: "the feature number is out of range",
    parsing.BAD_LABEL: "a label is not a whole number",
    parsing.LABEL_RANGE: "the label is out of range",
    parsing.NO_LABEL: "the label is missing",
    parsing.NO_BRACE: "expected a sparse row '{attribute value, ...}'",
    parsing.BAD_SEPARATOR: "expected ',' or '}' after a value",
    parsing.BAD_COUNT: "too few or too many numbers",
}


def fail(path: Path, block: LineBlock, status: np.ndarray, hints: Mapping[int, str]) -> NoReturn:
    """Raise the error that a kernel stopped at, with its line; ``hints`` come before the usual messages."""
    code, position = int(status[parsing.CODE]), int(status[parsing.FAILED])
    line = block.first_line + block.text.count(b"\n", 0, position)
    end = block.text.find(b"\n", position)
    offending = shortened(block.text[position:end])
    if code == parsing.BAD_VALUE and is_not_finite(offending):
        code = parsing.NOT_FINITE
    raise InputError(f"{path}, line {line}: {hints.get(code, MESSAGES[code])}: {offending!r}")


def shortened(text: bytes, length: int = 40) -> str:
    """Show the beginning of some text, for messages."""
    shown = text[: length + 1].decode("utf-8", "replace").strip("\r")
    return shown if len(shown) <= length else shown[:length] + "..."


def is_not_finite(text: str) -> bool:
    """Tell whether ``feature:value``, ``attribute value`` or ``value`` begins with a NaN or an infinity."""
    words = text.replace(":", " ").split()
    value = words[1:2] if words and words[0].isdigit() else words[:1]
    return bool(value) and value[0].lower().lstrip("+-").rstrip(",}").startswith(("nan", "inf"))

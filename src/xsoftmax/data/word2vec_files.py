r"""Vectors as word2vec's program writes them, and as gensim and others read them: text, or binary.

A line ``n_words dimension``; then for each word its name, a space, and its numbers: as text up to the end of a line,
or as little-endian float32, after which a newline may follow. Words are UTF-8 and have no white space in them.
"""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from xsoftmax.data import checksum
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.files import written_aside
from xsoftmax.internal.free_memory import check_free

FORMATS = ("text", "binary")
MOST_WORDS, MOST_DIMENSION, MOST_NAME, READ_AT_ONCE = 2**31 - 1, 2**16, 2**16, 2**16
LARGEST = float(np.finfo(np.float32).max)
# What a number takes at least: of text, a digit and what parts it from the next.
LEAST_BYTES = {"text": 2, "binary": 4}


class WordVectors(NamedTuple):
    """Words, and a vector for each: float32 of shape (n_words, dimension)."""

    words: tuple[str, ...]
    vectors: np.ndarray


def format_of(path: Path, asked: str | None = None) -> str:
    """Say in which format a file is: as asked, or binary if its name ends in .bin, perhaps compressed."""
    if asked is not None:
        return asked
    return "binary" if ending_of(path) == ".bin" else "text"


def ending_of(path: Path) -> str:
    """Give the ending of a file's name in lower case, before that of what compresses it."""
    name = path.name.lower()
    for suffix in checksum.SUFFIXES.values():
        name = name.removesuffix(suffix)
    return Path(name).suffix


def write_word2vec(path: Path, words: tuple[str, ...], vectors: np.ndarray, binary: bool = False) -> None:
    """Write vectors, float32 of shape (n_words, dimension), aside, and rename the file.

    Raises
    ------
    InputError
        If a word has white space in it, or is empty: the format cannot tell it from its neighbours.
    """
    check_words(words)
    with written_aside(Path(path)) as aside, aside.open("wb") as file:
        file.write(f"{len(words)} {vectors.shape[1]}\n".encode())
        for word, vector in zip(words, vectors.astype("<f4", copy=False), strict=True):
            numbers = vector.tobytes() if binary else " ".join(map(_shortest, vector)).encode()
            file.write(word.encode() + b" " + numbers + b"\n")


def check_words(words: tuple[str, ...]) -> None:
    """Make sure that words can be written.

    Raises
    ------
    InputError
        If one has white space in it, or is empty.
    """
    for word in words:
        if not word or any(letter.isspace() for letter in word):
            raise InputError(f"word {word[:40]!r}: word2vec's formats hold no words with white space; change token")


def _shortest(number: np.float32) -> str:
    """Write as few digits as bring back the same float32."""
    return np.format_float_positional(number, trim="0") if 1e-4 <= abs(number) < 1e6 else f"{number:.9g}"


def read_word2vec(path: Path, asked: str | None = None) -> WordVectors:
    """Read vectors, from a compressed file too.

    Raises
    ------
    InputError
        If the file is none, or damaged or cut short, or would not fit into memory.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: {'no regular' if path.exists() else 'no such'} file; name a file of word2vec's")
    kind = format_of(path, asked)
    with checksum.open_content(path) as file:
        n_words, dimension = _header(path, checksum.read(path, file, 64), kind)
    check_free(4 * n_words * dimension + 100 * n_words, f"{path}: {n_words:,} vectors of {dimension} numbers")
    vectors = np.empty((n_words, dimension), np.float32)
    reading = _binary_words if kind == "binary" else _text_words
    words: list[str] = []
    for name in reading(path, vectors):
        try:
            words.append(name.decode())
        except UnicodeDecodeError as error:
            raise _damaged(path, f"word {len(words) + 1} is not UTF-8", kind) from error
    if len(set(words)) < n_words:
        raise _damaged(path, "a word stands there twice", kind)
    if not np.isfinite(vectors).all():
        k = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
        raise _damaged(path, f"the vector of {words[k][:40]!r} holds NaN or infinity", kind)
    return WordVectors(tuple(words), vectors)


def _header(path: Path, head: bytes, kind: str) -> tuple[int, int]:
    """Read the first line, and see that the file may hold what it promises."""
    line, newline, _ = head.partition(b"\n")
    fields = line.split()
    if not newline or len(fields) != 2 or not all(field.isdigit() and len(field) < 11 for field in fields):
        raise _damaged(
            path, f"its first line is {line[:40]!r}, where the numbers of words and dimensions stand", kind
        )
    n_words, dimension = map(int, fields)
    if not (1 <= n_words <= MOST_WORDS and 1 <= dimension <= MOST_DIMENSION):
        raise _damaged(path, f"{n_words} words of {dimension} dimensions are none, or too many", kind)
    if n_words * (dimension * LEAST_BYTES[kind] + 2) - 1 > checksum.most_content(path):
        raise _damaged(path, f"it is too short for {n_words} words of {dimension} dimensions", kind)
    return n_words, dimension


def _damaged(path: Path, what: str, kind: str) -> InputError:
    return InputError(f"{path}: {what}: damaged, or not word2vec's {kind} format; fetch it again, or see --format")


class _Reader:
    """Takes bytes from a content, up to a mark or so many."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path, self._file, self._left = path, file, b""

    def until(self, mark: bytes, most: int) -> bytes | None:
        """Take what stands before the next mark, and the mark; None if there is none within ``most`` bytes."""
        while (at := self._left.find(mark)) < 0:
            if len(self._left) > most or not self._more():
                return None
        found, self._left = self._left[:at], self._left[at + len(mark) :]
        return found

    def take(self, n: int) -> bytes:
        """Take so many bytes, or all if there are fewer."""
        while len(self._left) < n and self._more():
            pass
        found, self._left = self._left[:n], self._left[n:]
        return found

    def skip(self, mark: bytes) -> None:
        """Pass over all marks that come next."""
        while (not self._left and self._more()) or self._left[:1] == mark:
            self._left = self._left.removeprefix(mark)

    def _more(self) -> bool:
        block = checksum.read(self._path, self._file, READ_AT_ONCE)
        self._left += block
        return bool(block)


def _binary_words(path: Path, vectors: np.ndarray) -> Iterator[bytes]:
    """Fill in the vectors one by one, and give the names."""
    with checksum.open_content(path) as file:
        reader = _Reader(path, file)
        reader.until(b"\n", 64)
        for k in range(len(vectors)):
            reader.skip(b"\n")
            name = reader.until(b" ", MOST_NAME)
            content = reader.take(4 * vectors.shape[1])
            if name is None or not name or len(content) < 4 * vectors.shape[1]:
                raise _damaged(path, f"it ends within word {k + 1} of {len(vectors)}", "binary")
            vectors[k] = np.frombuffer(content, "<f4")
            yield name
        reader.skip(b"\n")
        if reader.take(1):
            raise _damaged(path, f"more follows its {len(vectors)} words", "binary")


def _text_words(path: Path, vectors: np.ndarray) -> Iterator[bytes]:
    """As ``_binary_words``, line by line."""
    most = MOST_NAME + 64 * vectors.shape[1]
    with checksum.open_content(path) as file:
        reader = _Reader(path, file)
        reader.until(b"\n", 64)
        for k in range(len(vectors)):
            line = reader.until(b"\n", most)
            if line is None:  # the last line need not end
                line = reader.take(most)
            name, *numbers = line.rstrip(b" \r").split(b" ")
            if not name or len(numbers) != vectors.shape[1]:
                found = f"line {k + 2} has {len(numbers)} numbers, where {vectors.shape[1]} are expected"
                raise _damaged(path, found, "text")
            try:
                vectors[k] = [_number(number) for number in numbers]
            except ValueError as error:
                raise _damaged(path, f"line {k + 2} has what is no number", "text") from error
            yield name
        if reader.take(most).strip():
            raise _damaged(path, f"more follows its {len(vectors)} words", "text")


def _number(text: bytes) -> float:
    """Read a number; what float32 does not hold is as bad as none."""
    value = float(text)
    if not math.isfinite(value) or abs(value) > LARGEST:
        raise ValueError(text)
    return value

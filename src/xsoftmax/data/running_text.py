"""Text of any size as sentences of words, a batch at a time, and the words of it that count.

What stays in memory are the counts of the distinct tokens; where these are more than ``MOST_DISTINCT``, the rarest
are forgotten, so that counts of words which come and go may be too low, and the vocabulary says by how much at most.
"""

import codecs
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, groupby, islice
from pathlib import Path

import numpy as np

from xsoftmax.data import checksum
from xsoftmax.data.sparse_text import line_blocks
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.free_memory import check_free

BATCH_SENTENCES = 2**11
# Distinct tokens that are counted at a time, and what one takes in memory, roughly.
MOST_DISTINCT, TOKEN_BYTES = 2**23, 150
# Of text without sentences: what is read, and how long a token may be.
BLOCK_BYTES, MOST_TOKEN = 2**20, 2**20


@dataclass(frozen=True)
class Text:
    """Sentences of a file or folder, which can be walked through more than once."""

    path: Path
    token: re.Pattern[str]
    lowercase: bool
    sentence: str
    encoding: str
    max_tokens: int | None

    def batches(self) -> Iterator[list[list[str]]]:
        """Walk through the tokens of sentences, many sentences at a time."""
        sentences = self._sentences()
        while batch := list(islice(sentences, BATCH_SENTENCES)):
            yield batch

    def _sentences(self) -> Iterator[list[str]]:
        left = self.max_tokens or sys.maxsize
        for file in files_of(self.path):
            for text in self._texts(file):
                tokens = self.token.findall(text.lower() if self.lowercase else text)[:left]
                left -= len(tokens)
                yield tokens
                if left == 0:
                    return

    def _texts(self, file: Path) -> Iterator[str]:
        """Walk through the lines of a file, or its paragraphs."""
        if self.sentence == "line":
            return self._lines(file)
        groups = groupby(self._lines(file), key=lambda line: bool(line.strip()))
        return ("\n".join(lines) for filled, lines in groups if filled)

    def _lines(self, file: Path) -> Iterator[str]:
        for block in line_blocks(file):
            try:
                text = block.text.decode(self.encoding)
            except UnicodeDecodeError as error:
                line = block.first_line + block.text.count(b"\n", 0, error.start)
                reason = f"not {self.encoding} ({error.reason}); set options.encoding, such as latin-1"
                raise InputError(f"{file}, line {line}: {reason}") from error
            if "\0" in text:
                line = block.first_line + text.count("\n", 0, text.index("\0"))
                raise InputError(f"{file}, line {line}: a NUL character, which is no text; fetch it again")
            yield from text.removesuffix("\n").split("\n")


def files_of(path: Path) -> list[Path]:
    """List the files of a folder, at any depth; a file is itself."""
    if path.is_file():
        return [path]
    files = sorted(file for file in path.rglob("*") if file.is_file())
    shown = [file for file in files if not any(name[0] == "." for name in file.relative_to(path).parts)]
    if not shown:
        raise InputError(f"{path}: no texts in it; expected a file of text, or a folder of such files")
    return shown


@dataclass(frozen=True)
class RunningText(Text):
    """Text without sentences, which may be one line of any length: batches of a few words each."""

    def batches(self) -> Iterator[list[list[str]]]:
        """Walk through the tokens, many at a time."""
        pieces = (self.token.findall(piece.lower() if self.lowercase else piece) for piece in self._pieces())
        while batch := list(islice(pieces, 16)):
            yield batch

    def _pieces(self) -> Iterator[str]:
        """Cut each file where there is space."""
        for file in files_of(self.path):
            decoder, left = codecs.getincrementaldecoder(self.encoding)(), ""
            for block in chain(checksum.blocks(file, BLOCK_BYTES), (b"",)):
                try:
                    text = left + decoder.decode(block, final=not block)
                except UnicodeDecodeError as error:
                    raise InputError(f"{file}: not {self.encoding} ({error.reason}); set encoding") from error
                if "\0" in text:
                    raise InputError(f"{file}: a NUL character, which is no text; fetch it again")
                cut = max((found.start() for found in re.finditer(r"\s", text)), default=0) if block else len(text)
                if len(text) - cut > MOST_TOKEN:
                    raise InputError(f"{file}: more than {MOST_TOKEN:,} characters without a space; is it text?")
                left = text[cut:]
                yield text[:cut]


@dataclass(frozen=True)
class Vocabulary:
    """Words that count.

    Attributes
    ----------
    words : tuple of str
        The most frequent first; those of equal frequency in order.
    counts : ndarray of shape (n_words,), int64
    n_tokens : int
        Of the whole text, words outside of the vocabulary too.
    shortfall : int
        By how much counts may be too low: 0 unless the text has very many distinct tokens.
    """

    words: tuple[str, ...]
    counts: np.ndarray
    n_tokens: int
    shortfall: int = 0

    @property
    def numbers(self) -> dict[str, int]:
        """Number the words."""
        return {word: number for number, word in enumerate(self.words)}


def count_words(text: Text, min_count: int = 1, max_words: int | None = None) -> Vocabulary:
    """Count the words of a text; of those that occur ``min_count`` times the most frequent are the vocabulary.

    Raises
    ------
    InputError
        If these are fewer than two, or memory does not suffice.
    """
    counts, n_tokens, floor, checked = Counter[str](), 0, 0, 0
    for sentences in text.batches():
        for tokens in sentences:
            counts.update(tokens)
            n_tokens += len(tokens)
        if len(counts) > 2 * checked + 2**16:
            checked = len(counts)
            check_free(checked * TOKEN_BYTES, f"{text.path}: counts of {checked:,} distinct tokens")
        while len(counts) > MOST_DISTINCT:
            floor += 1
            counts = Counter({word: count for word, count in counts.items() if count > floor})
    frequent = (word for word, count in counts.items() if count >= min_count)
    words = tuple(sorted(frequent, key=lambda word: (-counts[word], word))[:max_words])
    if len(words) < 2:
        raise InputError(
            f"{text.path}: a vocabulary of {len(words)} words, of {n_tokens:,} tokens; 2 are the least: give more"
            f" text, or lower min_count (now {min_count}), or see max_words and token"
        )
    shortfall = floor * (floor + 1) // 2  # what occurs once, twice, three times ... was forgotten, perhaps each time
    return Vocabulary(words, np.array([counts[word] for word in words], np.int64), n_tokens, shortfall)

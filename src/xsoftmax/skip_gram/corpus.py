"""A text of any size as numbers of words, in a file of its own: four bytes a word on disk, and no pairs anywhere.

The text is read twice, a batch of sentences at a time: for the vocabulary, and to number its words. What stays in
memory are the counts of the distinct tokens; where these are more than ``MOST_DISTINCT``, the rarest are forgotten,
so that counts of words which come and go may be too low, and the vocabulary says by how much at most.
"""

import codecs
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path

import numpy as np

from xsoftmax.data import checksum
from xsoftmax.data.encoding import text_encoding, word_pattern
from xsoftmax.data.readers.skip_gram import Text, files_of
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.free_memory import check_free

SENTENCES = ("line", "paragraph", "text")
# Distinct tokens that are counted at a time, and what one takes in memory, roughly.
MOST_DISTINCT, TOKEN_BYTES = 2**23, 150
# Of running text: what is read, and how long a token may be.
BLOCK_BYTES, MOST_TOKEN = 2**20, 2**20
BATCH = 2**16
END = -1


@dataclass(frozen=True)
class CorpusOptions:
    """What of a text are words, sentences and the vocabulary.

    Parameters
    ----------
    min_count, max_words : int
        The vocabulary: words that occur so often, of these the most frequent.
    sentence : str
        What windows do not reach out of: a ``line``, a ``paragraph`` (blank lines end it), or nothing: running
        ``text``, file by file.
    token : str
        Regular expression of a word.
    """

    min_count: int = 5
    max_words: int | None = None
    sentence: str = "line"
    token: str = r"\S+"
    lowercase: bool = False
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        for name in ("min_count", "max_words"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name} is {value}; set it to 1 or more")
        if self.sentence not in SENTENCES:
            raise InputError(f"sentence is {self.sentence!r}; known: {', '.join(SENTENCES)}")


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


@dataclass(frozen=True)
class Corpus:
    """A text as numbers.

    Attributes
    ----------
    vocabulary : Vocabulary
    tokens : ndarray of shape (n,), int32
        Numbers of words, ``END`` behind each sentence; perhaps a map of a file.
    """

    vocabulary: Vocabulary
    tokens: np.ndarray

    @property
    def n_words(self) -> int:
        """Count the words of the vocabulary in the text."""
        return int(self.vocabulary.counts.sum())


def read_corpus(path: Path, file: Path, options: CorpusOptions | None = None) -> Corpus:
    """Read a text, perhaps compressed, or all texts of a folder; numbers of words go to ``file``, which is mapped.

    Raises
    ------
    InputError
        If it is no text, is damaged, or fewer than two words of it count.
    """
    options = options or CorpusOptions()
    text = _text(path, options)
    vocabulary = count_words(text, options)
    numbers = {word: number for number, word in enumerate(vocabulary.words)}
    with file.open("wb") as out:
        for sentences in text.batches():
            out.write(_numbered(sentences, numbers, options.sentence != "text").tobytes())
        if options.sentence == "text":
            out.write(np.int32(END).tobytes())
    return Corpus(
        vocabulary, np.asarray(np.memmap(file, np.int32, "c"))
    )  # "c": kernels are compiled for arrays that may be written


def count_words(text: Text, options: CorpusOptions) -> Vocabulary:
    """Count the words of a text and choose those of the vocabulary."""
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
    frequent = (word for word, count in counts.items() if count >= options.min_count)
    words = tuple(sorted(frequent, key=lambda word: (-counts[word], word))[: options.max_words])
    if len(words) < 2:
        raise InputError(
            f"{text.path}: {len(words)} of its {n_tokens:,} tokens' words count, and 2 are the least; give more text,"
            f" or lower min_count (now {options.min_count})"
        )
    shortfall = floor * (floor + 1) // 2  # what occurs once, twice, three times ... was forgotten, perhaps each time
    return Vocabulary(words, np.array([counts[word] for word in words], np.int64), n_tokens, shortfall)


def kept_share(counts: np.ndarray, threshold: float | None) -> np.ndarray:
    """With which probability an occurrence of each word stays: as in word2vec's program, float32 of shape (n_words,).

    With f a word's share of all words and t the threshold, ``min(1, sqrt(t / f) + t / f)``. The paper of Mikolov
    et al. has ``sqrt(t / f)``; their program adds the second term. None keeps all.
    """
    if threshold is None:
        return np.ones(len(counts), np.float32)
    if not threshold > 0:
        raise InputError(f"subsample is {threshold:g}; set it above 0, such as 1e-3, or leave it out to keep all")
    ratio = threshold * counts.sum() / np.maximum(counts, 1)
    return np.minimum(np.sqrt(ratio) + ratio, 1).astype(np.float32)


def _numbered(sentences: list[list[str]], numbers: dict[str, int], ends: bool) -> np.ndarray:
    """Number the words that count, and put an end behind each sentence."""
    tokens = list(
        chain.from_iterable((*words, "") for words in sentences) if ends else chain.from_iterable(sentences)
    )
    found = np.fromiter((numbers.get(word, -2) if word else END for word in tokens), np.int32, len(tokens))
    return found[found >= END]


def _text(path: Path, options: CorpusOptions) -> Text:
    path = Path(path)
    if not path.exists():
        raise InputError(f"{path}: no such file or folder; name a text, perhaps compressed, or a folder of texts")
    pattern = word_pattern(options.token, "token")
    encoding = text_encoding(options.encoding)
    if options.sentence == "text":
        return RunningText(path, pattern, options.lowercase, "line", encoding, None)
    return Text(path, pattern, options.lowercase, options.sentence, encoding, None)


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


def held_out(corpus: Corpus, every: int) -> tuple[Corpus, Corpus]:
    """Take every so-many-th sentence out of a corpus: what is left to train on, and those.

    Counts of the vocabulary are those of what is left; a word that is only in the others counts once.
    """
    ends = np.flatnonzero(corpus.tokens == END)
    sentence = np.searchsorted(ends, np.arange(len(corpus.tokens)))
    is_out = sentence % every == every - 1
    left, out = corpus.tokens[~is_out], corpus.tokens[is_out]
    counts = np.maximum(np.bincount(left[left >= 0], minlength=len(corpus.vocabulary.words)), 1)
    vocabulary = replace(corpus.vocabulary, counts=counts)
    return Corpus(vocabulary, np.array(left)), Corpus(vocabulary, np.array(out))


def part_of(corpus: Corpus, every: int, min_count: int = 5) -> Corpus:
    """Take one sentence in so many, and of the vocabulary what occurs there often enough."""
    if every == 1:
        return corpus
    _, part = held_out(corpus, every)
    counts = np.bincount(part.tokens[part.tokens >= 0], minlength=len(corpus.vocabulary.words))
    order = np.argsort(-counts, kind="stable")
    order = order[counts[order] >= min_count]
    numbers = np.full(len(counts) + 1, -2, np.int32)  # the last is END's, which is -1
    numbers[order], numbers[END] = np.arange(len(order)), END
    tokens = numbers[part.tokens]
    words = tuple(corpus.vocabulary.words[k] for k in order)
    return Corpus(Vocabulary(words, counts[order], int((part.tokens >= 0).sum())), tokens[tokens != -2])


def beginning(corpus: Corpus, n_words: int = 50) -> Corpus:
    """Some words of a corpus, for kernels to be compiled with."""
    tokens = np.append(corpus.tokens[:2000], np.int32(END))
    tokens[tokens >= n_words] = END
    counts = np.maximum(np.bincount(tokens[tokens >= 0], minlength=n_words), 1)
    return Corpus(Vocabulary(tuple(f"w{k}" for k in range(n_words)), counts, len(tokens)), tokens)

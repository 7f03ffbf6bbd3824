"""A text of any size as numbers of words, in a file of its own: four bytes a word on disk, and no pairs anywhere.

The text is read twice, a batch of sentences at a time: for the vocabulary, and to number its words.
"""

from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np

from xsoftmax.data.encoding import text_encoding, word_pattern
from xsoftmax.data.running_text import RunningText, Text, Vocabulary, count_words
from xsoftmax.internal.errors import InputError

SENTENCES = ("line", "paragraph", "text")
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
    vocabulary = count_words(text, options.min_count, options.max_words)
    numbers = vocabulary.numbers
    with file.open("wb") as out:
        for sentences in text.batches():
            out.write(_numbered(sentences, numbers, options.sentence != "text").tobytes())
        if options.sentence == "text":
            out.write(np.int32(END).tobytes())
    return Corpus(
        vocabulary, np.asarray(np.memmap(file, np.int32, "c"))
    )  # "c": kernels are compiled for arrays that may be written


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

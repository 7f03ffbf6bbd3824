"""Running text as pairs of neighbouring words: a row is the one-hot of a word, its class a word near it.

A linear softmax of word x has scores ``W[:, x] + b``: the skip-gram model of Mikolov et al. 2013, with a matrix of
full rank where theirs is a product of two embeddings. Equal pairs are rows of their own; how many they are is the
weight that eq. 9 of Yen et al. 2018 gives them.

As in word2vec, words outside the vocabulary and occurrences that are dropped at random leave the text before windows
are laid over it. The text is read twice, for the vocabulary and for the pairs, a batch of sentences at a time; what
stays in memory are the counts of all distinct tokens, then the pairs.
"""

from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np

from xsoftmax.data.encoding import text_encoding, word_pattern
from xsoftmax.data.rows import Rows, csr_of
from xsoftmax.data.running_text import Text, Vocabulary, count_words
from xsoftmax.data.sparse_text import Growing
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.free_memory import check_free

SENTENCES = ("line", "paragraph")


def read(
    *,
    data: Path,
    vocabulary: Path | None = None,
    part: str = "all",
    window: int = 8,
    min_count: int = 5,
    max_words: int | None = None,
    subsample: float | None = 1e-4,
    max_tokens: int | None = None,
    lowercase: bool = False,
    token: str = r"\S+",
    sentence: str = "line",
    encoding: str = "utf-8",
    seed: int = 0,
) -> Rows:
    """Read all files below ``data``, in order of their paths; hidden ones are passed over.

    Rows are in the order of the text: of each centre word, its neighbours from left to right.

    Parameters
    ----------
    data, vocabulary : Path
        A file of text, perhaps compressed, or a folder of such files. The words of ``vocabulary`` count, and their
        frequencies; it is the training text for the other parts, and need not be named for training.
    part : str
        Which is read.
    window : int
        A word's neighbours are up to so many words on either side.
    min_count : int
        The vocabulary has words that occur so often.
    max_words : int, optional
        Of these only the most frequent.
    subsample : float, optional
        The threshold t: an occurrence of a word with relative frequency f is dropped with probability
        ``max(1 - sqrt(t / f), 0)``. None keeps all.
    max_tokens : int, optional
        Read only so much of each text, from its beginning.
    lowercase : bool
        Take words in lower case.
    token : str
        Regular expression of a word.
    sentence : str
        What windows do not reach out of: a ``line``, or a ``paragraph``, which blank lines end, for text with hard
        line breaks.
    encoding : str
        Of the files.
    seed : int
        Of the occurrences that are dropped.
    """
    if any(each is not None and each <= 0 for each in (window, min_count, max_words, max_tokens, subsample)):
        raise InputError("skip-gram: window, min_count, max_words, max_tokens and subsample must be positive")
    if vocabulary is None and part not in ("all", "train"):
        raise InputError(f"skip-gram: parts.{part} needs 'vocabulary', the text of parts.train: its words count")
    if sentence not in SENTENCES:
        raise InputError(f"skip-gram: unknown sentence {sentence!r}; known: {', '.join(SENTENCES)}")
    pattern = word_pattern(token, "skip-gram: options.token")
    text = Text(data, pattern, lowercase, sentence, text_encoding(encoding), max_tokens)
    known = count_words(replace(text, path=vocabulary or data), min_count, max_words)
    frequencies = known.counts / known.n_tokens
    kept = np.ones(len(known.words)) if subsample is None else np.sqrt(subsample / frequencies)
    centres, contexts = _pairs(text, known, kept, window, np.random.default_rng(seed))
    if centres.size == 0:
        raise InputError(
            f"{data}: no two words of the vocabulary near each other; see options.sentence and subsample"
        )
    X = csr_of(np.ones(centres.size, np.float32), centres, np.arange(centres.size + 1), len(known.words))
    return Rows.with_ids(X, contexts, known.words)


def _pairs(
    text: Text, vocabulary: Vocabulary, kept: np.ndarray, window: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Number the words, drop occurrences, and pair the others.

    Parameters
    ----------
    kept : ndarray of shape (n_words,)
        With which probability an occurrence stays; 1 or more: always.

    Returns
    -------
    centres, contexts : ndarray of shape (n_pairs,), int32
    """
    numbers = vocabulary.numbers
    centres, contexts = Growing(np.int32, text.path), Growing(np.int32, text.path)
    for batch in text.batches():
        words = np.array([numbers.get(word, -1) for word in chain.from_iterable(batch)], np.int32)
        sentences = np.repeat(np.arange(len(batch)), [len(tokens) for tokens in batch])
        words, sentences = words[words >= 0], sentences[words >= 0]
        stays = rng.random(words.size) < kept[words]
        for column, values in zip((centres, contexts), pairs(words[stays], sentences[stays], window), strict=True):
            column.room(values.size)[:] = values
            column.size += values.size
    return centres.taken(), contexts.taken()


def pairs(words: np.ndarray, sentences: np.ndarray, window: int) -> tuple[np.ndarray, np.ndarray]:
    """Pair every word with its neighbours in the same sentence.

    Parameters
    ----------
    words, sentences : ndarray of shape (n_words,)
        Numbers of the words, and of the sentences they are in, from 0.

    Returns
    -------
    centres, contexts : ndarray of shape (n_pairs,)
    """
    n_bytes = 16 * window + 12 * words.size * 2 * window
    check_free(
        n_bytes, f"skip-gram: {words.size:,} words with {2 * window:,} neighbours each", "lower options.window"
    )
    around = np.delete(np.arange(2 * window + 1), window)
    padded = np.pad(sentences, window, constant_values=-1)
    places = np.arange(words.size)[:, None] + around
    near = padded[places] == sentences[:, None]
    return np.repeat(words, near.sum(axis=1)), words[places[near] - window]

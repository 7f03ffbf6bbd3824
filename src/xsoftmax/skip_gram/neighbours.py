"""The words nearest to words, by the cosine of their vectors: exact, a block of products at a time."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from xsoftmax.data.word2vec_files import WordVectors
from xsoftmax.internal.errors import InputError

PRODUCTS_AT_ONCE = 2**22


class Neighbour(NamedTuple):
    """A word, and the cosine of the angle that its vector and the asked one's have."""

    word: str
    cosine: float


def unit_rows(vectors: np.ndarray) -> np.ndarray:
    """Divide rows by their length, where they have one."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1).astype(np.float32)


def most_similar(embedding: WordVectors, words: Sequence[str], n: int = 10) -> list[list[Neighbour]]:
    """Find the ``n`` nearest other words of each of some words, the nearest first; of equals, the earlier word.

    Raises
    ------
    InputError
        If a word is not there.
    """
    if n < 1:
        raise InputError(f"the number of neighbours is {n}; set it to 1 or more")
    numbers = {word: k for k, word in enumerate(embedding.words)}
    for word in words:
        if word not in numbers:
            raise InputError(f"no vector of {word!r}; words are written as in the text, unless it was lower-cased")
    asked = np.array([numbers[word] for word in words], np.int64)
    units = unit_rows(embedding.vectors)
    found, cosines = nearest(units, asked, min(n, len(units) - 1))
    return [
        [Neighbour(embedding.words[k], float(c)) for k, c in zip(*each, strict=True)]
        for each in zip(found, cosines, strict=True)
    ]


def nearest(units: np.ndarray, asked: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Find the ``n`` rows with the highest products with each row asked for, itself left out.

    Parameters
    ----------
    units : ndarray of shape (n_words, dimension), float32
    asked : ndarray of shape (n_asked,), int64

    Returns
    -------
    found, products : ndarray of shape (n_asked, n), int64 and float32
    """
    found, products = np.zeros((len(asked), n), np.int64), np.zeros((len(asked), n), np.float32)
    step = max(1, PRODUCTS_AT_ONCE // len(units))
    for first in range(0, len(asked) if n else 0, step):
        some = asked[first : first + step]
        block = units[some] @ units.T
        block[np.arange(len(some)), some] = -np.inf
        lowest = np.partition(block, len(units) - n, axis=1)[:, len(units) - n]
        for b, row in enumerate(block):
            candidates = np.flatnonzero(row >= lowest[b])
            order = np.argsort(-row[candidates], kind="stable")[:n]
            found[first + b], products[first + b] = candidates[order], row[candidates[order]]
    return found, products

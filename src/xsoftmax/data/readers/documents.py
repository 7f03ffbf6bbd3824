"""Generated: rows of words as texts have them, of a tree of topics; any number of rows, words and classes.

Words follow Zipf's law: the word of rank r comes with a probability of about 1 / (r + shift). A class is a leaf of
a tree; it has a few words of its own, and so has each topic above it. Every word of a row is drawn from its class,
from one of its topics, or from all words. Classes of one topic share most of their words, and other topics have some
of these, too: a linear model learns which words tell them apart, a mean does not. Features are tf-idf, the rows of
length 1; how many rows have a word is not counted, but computed from how rows are drawn.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from xsoftmax.data.parts import PARTS, check_sizes, n_samples_of, rng_of
from xsoftmax.data.rows import Rows, csr_of
from xsoftmax.internal.errors import InputError

BLOCK_ROWS = 8192
# Shifts of ranks: of all words, of those that are some topic's own (fewer of the very common ones), and within these.
SHIFT, SHIFT_OF_OWN, SHIFT_WITHIN = 3.0, 300.0, 1.0


def read(
    *,
    part: str = "all",
    n_samples: int | Mapping[str, int] = 23_000,
    n_features: int = 135_000,
    n_classes: int = 10_000,
    length: float = 130.0,
    branching: int = 20,
    own_words: int = 5,
    class_share: float = 0.035,
    topic_share: float = 0.5,
    skew: float = 0.5,
    seed: int = 0,
) -> Rows:
    """Draw rows.

    Parameters
    ----------
    part : str
        ``train``, ``validation`` or ``test``: rows of its own about the same topics, and in training at least one of
        every class.
    n_samples : int, or mapping of str to int
        How many rows, or how many of each part.
    n_features, n_classes : int
        Words and classes that there are.
    length : float
        Words of a row, repeated ones counted, in the mean; they vary by half of that.
    branching : int
        Children of a topic.
    own_words : int
        How many words a class or a topic has of its own.
    class_share, topic_share : float
        Of a row's words, those that come from its class, and from its topics, from all levels as many.
    skew : float
        Class k has a share proportional to ``1 / (rank + 1) ** skew``.
    seed : int
        Of the draws.

    Raises
    ------
    InputError
        If sizes or shares make no sense, or memory does not hold the rows.
    """
    n_samples = n_samples_of(part, n_samples, "documents")
    if min(n_samples, n_features, n_classes, own_words) < 1 or branching < 2 or length < 1:
        raise InputError("documents: sizes and length must be 1 or more, branching at least 2")
    if min(class_share, topic_share) < 0 or class_share + topic_share > 1:
        raise InputError(
            f"documents: class_share is {class_share:g} and topic_share {topic_share:g}; give shares that are not "
            "negative and together at most 1"
        )
    if part == "train" and n_samples < n_classes:
        raise InputError(f"documents: {n_samples} training rows for {n_classes} classes; each class needs one")
    of_block = 2 * int(length) * min(n_samples, BLOCK_ROWS)
    bytes_a_row = int(16 * min(length, n_features)) + 32
    check_sizes("documents", n_samples, n_classes * own_words, n_features, of_block, bytes_a_row=bytes_a_row)
    rng = np.random.default_rng(seed)
    words = _words(n_features, n_classes, own_words, branching, class_share, topic_share, rng)
    shares = np.cumsum(1.0 / (rng.permutation(n_classes) + 1.0) ** skew)
    if part in PARTS:
        rng = rng_of(part, seed)
    y = np.searchsorted(shares, rng.random(n_samples) * shares[-1], side="right").clip(max=n_classes - 1)
    if part == "train":
        y[rng.permutation(n_samples)[:n_classes]] = np.arange(n_classes)
    share_of_rows = -np.expm1(-length * words.frequencies)
    idf = 1 - np.log(np.maximum(share_of_rows, 1e-9)).astype(np.float32)
    return Rows.with_ids(_weighted(list(_blocks(words, y, length, rng)), idf), y)


class Words(NamedTuple):
    """What rows are drawn from.

    Attributes
    ----------
    levels : list of (int, ndarray of shape (n_nodes, own_words), int32)
        Of each level, the classes last: how many classes a node spans, and the nodes' own words.
    bounds : ndarray of shape (n_levels + 1,)
        Where in 0 to 1 the shares of the levels begin, and that of all words, which ends at 1.
    names : ndarray of shape (n_features,), int32
        The column of the word of each rank.
    frequencies : ndarray of shape (n_features,), float64
        Probability of each column's word to be any word of a row.
    """

    levels: list[tuple[int, np.ndarray]]
    bounds: np.ndarray
    names: np.ndarray
    frequencies: np.ndarray


def _words(
    n_features: int,
    n_classes: int,
    own_words: int,
    branching: int,
    class_share: float,
    topic_share: float,
    rng: np.random.Generator,
) -> Words:
    """Draw the words of all nodes of the tree."""
    names = rng.permutation(n_features).astype(np.int32)
    widths = [1]
    while widths[0] * branching < n_classes:
        widths.insert(0, widths[0] * branching)
    shares = [topic_share / (len(widths) - 1) for _ in widths[1:]] + [class_share]
    frequencies = np.empty(n_features)
    frequencies[names] = (1 - sum(shares)) * _zipf_probabilities(n_features, SHIFT)
    within, levels = _zipf_probabilities(own_words, SHIFT_WITHIN), []
    for width, share in zip(widths, shares, strict=True):
        n_nodes = -(-n_classes // width)
        own = names[_zipf(rng.random((n_nodes, own_words)), n_features, SHIFT_OF_OWN)]
        of_node = np.broadcast_to(within * (share / n_nodes), own.shape)
        frequencies += np.bincount(own.ravel(), of_node.ravel(), n_features)
        levels.append((width, own))
    return Words(levels, np.concatenate([[0.0], np.cumsum(shares)]), names, frequencies)


def _blocks(
    words: Words, y: np.ndarray, length: float, rng: np.random.Generator
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Draw the words of some rows at a time; yield how many words each row has, which, and how often each comes."""
    n_features = words.names.size
    for first in range(0, y.size, BLOCK_ROWS):
        of_rows = y[first : first + BLOCK_ROWS]
        lengths = np.maximum(1, rng.poisson(rng.gamma(4.0, length / 4, of_rows.size)))
        row = np.repeat(np.arange(of_rows.size), lengths)
        level = np.searchsorted(words.bounds, rng.random(row.size), side="right") - 1
        place, found = rng.random(row.size), np.empty(row.size, np.int32)
        for number, (width, own) in enumerate(words.levels):
            drawn = level == number
            found[drawn] = own[of_rows[row[drawn]] // width, _zipf(place[drawn], own.shape[1], SHIFT_WITHIN)]
        drawn = level == len(words.levels)
        found[drawn] = words.names[_zipf(place[drawn], n_features, SHIFT)]
        cells, counts = np.unique(row * n_features + found, return_counts=True)
        n_distinct = np.bincount(cells // n_features, minlength=of_rows.size)
        yield n_distinct, (cells % n_features).astype(np.int32), counts.astype(np.float32)


def _zipf(uniform: np.ndarray, n: int, shift: float) -> np.ndarray:
    """Turn uniform numbers below 1 into ranks below n: log(rank + shift) is uniform, but for rounding."""
    return np.minimum(shift * ((n + shift) / shift) ** uniform - shift, n - 1).astype(np.int64)


def _zipf_probabilities(n: int, shift: float) -> np.ndarray:
    """Probability of each rank that ``_zipf`` gives."""
    return np.diff(np.log(np.arange(n + 1) + shift)) / np.log((n + shift) / shift)


def _weighted(blocks: list[tuple[np.ndarray, np.ndarray, np.ndarray]], idf: np.ndarray) -> csr_array:
    """Make rows of length 1 of what ``_blocks`` yields, which is emptied."""
    n_distinct, columns, values = [], [], []
    while blocks:
        n, of_block, counts = blocks.pop(0)
        tfidf = (1 + np.log(counts)) * idf[of_block]
        lengths = np.sqrt(np.add.reduceat(tfidf**2, np.cumsum(n) - n))
        n_distinct.append(n)
        columns.append(of_block)
        values.append((tfidf / np.repeat(lengths, n)).astype(np.float32))
    indptr = np.concatenate([[0], np.cumsum(np.concatenate(n_distinct))])
    return csr_of(np.concatenate(values), np.concatenate(columns), indptr, idf.size)

"""Collapsed counts: how often, or with which weight, each word stands in the window of each other one.

    q(x) q(y | x) = n_xy / sum of all n        (Yen et al. 2018, eq. 9)

The text is read chunk by chunk. Pairs are sorted and added up a buffer at a time; such runs are joined with runs of
their own size, so that every pair is moved a few times only, and memory is that of the distinct pairs, twice at most.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from xsoftmax.internal.compiled import njit
from xsoftmax.internal.free_memory import check_free
from xsoftmax.kernels import LEAN, OPTIONS
from xsoftmax.kernels.random import start, stream
from xsoftmax.skip_gram.corpus import Corpus
from xsoftmax.skip_gram.kernels import Window, bounds, thin

CHUNK, BUFFER = 2**14, 2**22
PAIR_BYTES = 16


class Run(NamedTuple):
    """Distinct pairs in order: keys x * n_words + y, int64, and their weights, float64."""

    keys: np.ndarray
    weights: np.ndarray


class Counted(NamedTuple):
    """Shares of pairs: row x has q(x) q(y | x) at ``starts[x]`` and on, beside y; q(x) and q(y), all float32."""

    starts: np.ndarray
    neighbours: np.ndarray
    shares: np.ndarray
    of_inputs: np.ndarray
    of_outputs: np.ndarray


def collapsed_counts(corpus: Corpus, window: Window, kept: np.ndarray, seed: int = 0) -> csr_array:
    """Count the pairs of a corpus, words being dropped as in the first epoch of training with this seed.

    Parameters
    ----------
    window : Window
        A dynamic one gives a pair at distance d the weight ``(most - d + 1) / most``, which is how often it is drawn.
    kept : ndarray of shape (n_words,), float32
        See ``kept_share``.

    Returns
    -------
    csr_array of shape (n_words, n_words), float64
        Row x has n_xy.
    """
    n = len(corpus.vocabulary.words)
    widest = CHUNK * 2 * window.most
    check_free(PAIR_BYTES * (BUFFER + widest), "skip-gram: pairs of a stretch of text", "lower window")
    keys, weights = np.empty(BUFFER + widest, np.int64), np.empty(BUFFER + widest)
    words, runs, size = np.empty(CHUNK, np.int32), list[Run](), 0
    for first in range(0, len(corpus.tokens), CHUNK):
        stop = min(first + CHUNK, len(corpus.tokens))
        size = write_pairs(corpus.tokens, first, stop, kept, window, seed, n, words, keys, weights, size)
        if size >= BUFFER:
            add_run(runs, keys[:size], weights[:size])
            size = 0
    add_run(runs, keys[:size], weights[:size])
    while len(runs) > 1:
        _join_last(runs)
    found = runs[0]
    x, y = np.divmod(found.keys, n)
    starts = np.concatenate([[0], np.cumsum(np.bincount(x, minlength=n))])
    return csr_array((found.weights, y.astype(np.int32), starts), (n, n))


def counted(counts: csr_array) -> Counted:
    """Turn counts into shares."""
    shares = counts.data / counts.data.sum()
    of_inputs = np.add.reduceat(np.append(shares, 0.0), counts.indptr[:-1]) * (np.diff(counts.indptr) > 0)
    of_outputs = np.bincount(counts.indices, shares, counts.shape[0])
    return Counted(
        counts.indptr.astype(np.int64),
        counts.indices.astype(np.int32),
        *(each.astype(np.float32) for each in (shares, of_inputs, of_outputs)),
    )


def add_run(runs: list[Run], keys: np.ndarray, weights: np.ndarray) -> None:
    """Add up pairs and put them behind the runs; runs of about the same size are joined."""
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    is_first = np.concatenate([[True], keys[1:] != keys[:-1]])[: len(keys)]
    sums = np.add.reduceat(weights[order], np.flatnonzero(is_first)) if len(keys) else weights[:0]
    runs.append(Run(keys[is_first], sums))
    while len(runs) > 1 and len(runs[-1].keys) * 2 >= len(runs[-2].keys):
        _join_last(runs)


def _join_last(runs: list[Run]) -> None:
    last, before = runs.pop(), runs.pop()
    n = len(last.keys) + len(before.keys)
    check_free(PAIR_BYTES * n, f"skip-gram: {n:,} distinct pairs of words", "raise min_count, or lower window")
    keys, weights = np.empty(n, np.int64), np.empty(n)
    n = join(before.keys, before.weights, last.keys, last.weights, keys, weights)
    keys.resize(n, refcheck=False)
    weights.resize(n, refcheck=False)
    runs.append(Run(keys, weights))


@njit(**OPTIONS)
def join(keys, weights, other_keys, other_weights, out, out_weights):
    """Merge two runs; return how many pairs there are."""
    i, j, n = 0, 0, 0
    while i < keys.size or j < other_keys.size:
        if j == other_keys.size or (i < keys.size and keys[i] < other_keys[j]):
            out[n], out_weights[n] = keys[i], weights[i]
            i += 1
        elif i == keys.size or other_keys[j] < keys[i]:
            out[n], out_weights[n] = other_keys[j], other_weights[j]
            j += 1
        else:
            out[n], out_weights[n] = keys[i], weights[i] + other_weights[j]
            i += 1
            j += 1
        n += 1
    return n


@njit(**LEAN)
def write_pairs(tokens, first, stop, kept, window, seed, n_words, words, keys, weights, size):
    """Write the pairs of a chunk behind the first ``size``; return how many there are then."""
    _, n = thin(tokens, first, stop, kept, start(stream(seed, 0), first), words)
    for i in range(n):
        if words[i] >= 0:
            begin, end = bounds(words, n, i, np.int64(window.most))
            for j in range(begin, end):
                if j != i:
                    keys[size] = np.int64(words[i]) * n_words + words[j]
                    weights[size] = (window.most - abs(i - j) + 1) / window.most if window.dynamic else 1.0
                    size += 1
    return size

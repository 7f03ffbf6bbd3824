"""Tables of vectors: where they begin, and how they lie in memory."""

from dataclasses import dataclass

import numpy as np

from xsoftmax.data.word2vec_files import MOST_DIMENSION
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.free_memory import check_free
from xsoftmax.kernels.cache_lines import FLOATS
from xsoftmax.skip_gram.kernels import Vectors


@dataclass(frozen=True)
class Embedding:
    """Words and their vectors.

    Attributes
    ----------
    words : tuple of str
    inputs : ndarray of shape (n_words, dimension), float32
        What is exported, and compared by ``neighbours``.
    outputs : ndarray of shape (n_words, dimension) or None, float32
        Of a hierarchical softmax, (n_words - 1, dimension): of the inner nodes.
    """

    words: tuple[str, ...]
    inputs: np.ndarray
    outputs: np.ndarray | None = None


def width_of(dimension: int) -> int:
    """Round up to whole cache lines; columns beyond the dimension stay zero."""
    return -(-dimension // FLOATS) * FLOATS


def new_vectors(n_words: int, dimension: int, seed: int) -> Vectors:
    """Begin with inputs uniform within 1 / dimension of 0, as gensim does, and outputs 0.

    Word2vec's program begins within half of that.
    """
    if not 1 <= dimension <= MOST_DIMENSION:
        raise InputError(f"dimension is {dimension}; set it to 1 or more, {MOST_DIMENSION} at most")
    width = width_of(dimension)
    check_free(
        3 * 4 * n_words * width,
        f"skip-gram: vectors of {n_words:,} words with {dimension} numbers",
        "lower dimension, or the size of the vocabulary (max_words, min_count)",
    )
    inputs, outputs = by_cache_lines(n_words, width), by_cache_lines(n_words, width)
    rng = np.random.default_rng([seed, n_words, dimension])
    inputs[:, :dimension] = (2 * rng.random((n_words, dimension), np.float32) - 1) / np.float32(dimension)
    return Vectors(inputs, outputs)


def by_cache_lines(n_rows: int, width: int) -> np.ndarray:
    """Zeros, float32, whose rows begin where cache lines do."""
    memory = np.zeros(n_rows * width + FLOATS, np.float32)
    begin = -(memory.ctypes.data // memory.itemsize) % FLOATS
    return memory[begin : begin + n_rows * width].reshape(n_rows, width)

"""Six words, their pairs, and vectors at random."""

import numpy as np

from xsoftmax.skip_gram.kernels import Vectors
from xsoftmax.skip_gram.vectors import by_cache_lines

N, D = 6, 5
COUNTS = np.array(
    [[0, 3, 1, 0, 2, 0], [3, 1, 0, 0, 0, 4], [1, 0, 2, 0, 0, 0], [0] * 6, [2, 0, 0, 0, 5, 1], [0, 4, 0, 0, 1, 0]],
    float,
)


def vectors_of(seed, scale=1.0):
    rng = np.random.default_rng(seed)
    tables = by_cache_lines(N, 16), by_cache_lines(N, 16)
    for table in tables:
        table[:, :D] = scale * rng.standard_normal((N, D))
    return Vectors(*tables)


def in_float64(vectors):
    return [np.float64(table[:, :D]) for table in vectors]

"""Gradient descent over the collapsed counts, inputs and outputs in turn: Yen et al. 2018, eq. 9 and section 5.3.

    F = sum_x q(x) [log sum_k e^s_xk - sum_y q(y | x) s_xy]

An epoch moves all inputs, then all outputs, each row by ``rate`` times its gradient over a bound on its curvature:

    in_x: q(x) sum_k (p(k | x) + q(k | x)) |out_k|^2        out_y: sum_x q(x) (p(y | x) + q(y | x)) |in_x|^2

Since diag(p) - p p' is below diag(p), what p gives holds for all outputs moving at once, near where they are, and
what q gives where a step ends, far away as long as p is far from q. So rare words go as far as frequent ones, and no
rate depends on how long vectors are. Scores are held for a block of words at a time, never for all.

Where classes are found (``found``), the sum over k is over those, and the word's neighbours.
"""

import math

import numpy as np
from scipy.sparse import csr_array

from xsoftmax.internal.compiled import njit
from xsoftmax.internal.free_memory import check_free
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.log_sum_exp import write_exp
from xsoftmax.skip_gram.counts import counted
from xsoftmax.skip_gram.found import Finder, gradient_by_inputs, gradient_by_outputs, missing_of, new_workspace
from xsoftmax.skip_gram.kernels import Vectors
from xsoftmax.skip_gram.settings import Settings
from xsoftmax.skip_gram.vectors import by_cache_lines

# Scores that are held at a time.
SCORES_AT_ONCE = 2**21
# Words that a unit goes over where scores are not held.
FOUND_AT_ONCE = 2**12
# The mean squared length, at least, that a step is divided by.
FLATTEST = np.float32(1e-2)


class CollapsedDescent:
    """Epochs of two passes over blocks of words, a block being a unit.

    Attributes
    ----------
    objective : ndarray of shape (2,), float64
        F before the last epoch whose passes are over, and what is summed up of the present one; where classes are
        found, over these alone.
    """

    def __init__(self, counts: csr_array, settings: Settings, vectors: Vectors) -> None:
        n, width = vectors.inputs.shape
        self._n_rows = max(1, SCORES_AT_ONCE // n) if settings.found_by in ("all", "search") else FOUND_AT_ONCE
        self._n_blocks = -(-n // self._n_rows)
        check_free(
            4 * (n * width + 2 * min(SCORES_AT_ONCE, self._n_rows * n)), "skip-gram: gradients, blocks of scores"
        )
        self._counted, self._settings, self._vectors = counted(counts), settings, vectors
        self._gradient, self._curvature = by_cache_lines(n, width), np.zeros(n, np.float32)
        shares = self._counted.shares, self._counted.neighbours, self._counted.starts
        self._shares = csr_array(shares, counts.shape)
        self._finder = None if settings.found_by == "all" else Finder(settings, vectors)
        self._workspace = new_workspace(n)
        self.objective = np.full(2, 0.0)
        self.n_units, self.at_once = 2 * self._n_blocks, 1

    def arrays(self) -> dict[str, np.ndarray]:
        """What changes."""
        return {
            "inputs": self._vectors.inputs,
            "outputs": self._vectors.outputs,
            "gradient": self._gradient,
            "curvature": self._curvature,
            "objective": self.objective,
        }

    def run(self, epoch: int, first: int, stop: int, pool: ThreadPool) -> None:
        """Go over some blocks, for the inputs' move or for the outputs' gradient; after the last, outputs move."""
        for unit in range(first, stop):
            block = unit % self._n_blocks
            rows = slice(block * self._n_rows, min((block + 1) * self._n_rows, len(self._gradient)))
            if unit < self._n_blocks:
                self._move_inputs(rows, epoch)
            else:
                self._gather(rows, epoch)
        if stop == self.n_units:
            self._descend(self._vectors.outputs, self._gradient, self._curvature, self._counted.of_outputs)
            self._gradient[:], self._curvature[:] = 0, 0
            self.objective[:] = self.objective[1], 0.0

    def _move_inputs(self, rows: slice, epoch: int) -> None:
        inputs, outputs = self._vectors
        squares = np.square(outputs).sum(axis=1)
        if self._finder is None:
            slopes, value = self._slopes(rows)
            gradient = slopes @ outputs
            curvature = slopes @ squares + np.float32(2) * (self._shares[rows] @ squares)
        else:
            words = self._finder.in_order(rows, epoch)
            gradient, curvature = by_cache_lines(len(words), inputs.shape[1]), np.zeros(len(words), np.float32)
            value = gradient_by_inputs(*self._found(words, epoch), squares, gradient, curvature, self._workspace)
            back = np.argsort(words)
            gradient, curvature = gradient[back], curvature[back]
        self._descend(inputs[rows], gradient, curvature, self._counted.of_inputs[rows])
        self.objective[1] += value

    def _gather(self, rows: slice, epoch: int) -> None:
        """Add to the gradient by outputs what the words of a block do."""
        inputs, gradient, curvature = self._vectors.inputs[rows], self._gradient, self._curvature
        squares = np.square(inputs).sum(axis=1)
        if self._finder is None:
            slopes, _ = self._slopes(rows)
            gradient += slopes.T @ inputs
            curvature += slopes.T @ squares + np.float32(2) * (self._shares[rows].T @ squares)
        else:
            words = self._finder.in_order(rows, epoch)
            squares = squares[words - rows.start]
            gradient_by_outputs(*self._found(words, epoch), squares, gradient, curvature, self._workspace)

    def _slopes(self, rows: slice) -> tuple[np.ndarray, float]:
        """Make the slopes of F by the scores of a block; give the block's part of F, too."""
        scores = self._vectors.inputs[rows] @ self._vectors.outputs.T
        return scores, softmax_slopes(scores, rows.start, self._counted)

    def _found(self, words: np.ndarray, epoch: int) -> tuple:
        """Give what kernels are told where classes are found."""
        assert self._finder is not None
        self._workspace.seen[:] = -1
        missing = missing_of(self._settings.missing, self._vectors, self._counted.of_outputs)
        return self._finder.of(words, epoch), self._vectors, self._counted, missing, words

    def _descend(self, vectors: np.ndarray, gradient: np.ndarray, curvature: np.ndarray, shares: np.ndarray) -> None:
        """Move rows along their gradient; the curvature of a word that is all but zero everywhere is no guide."""
        bound = np.maximum(curvature, FLATTEST * shares)
        vectors -= np.float32(self._settings.rate) * gradient / np.maximum(bound, np.float32(1e-30))[:, None]


@njit(**OPTIONS)
def softmax_slopes(scores, first, counted):
    """Turn scores of words ``first`` and on into slopes of F by them; return what these words add to F."""
    total = 0.0
    for b in range(scores.shape[0]):
        x, row = first + b, scores[b]
        share = counted.of_inputs[x]
        begin, stop = counted.starts[x], counted.starts[x + 1]
        if begin == stop:
            row[:] = np.float32(0)
            continue
        highest = row.max()
        for place in range(begin, stop):
            total -= np.float64(counted.shares[place]) * row[counted.neighbours[place]]
        sum_of = write_exp(row, highest)
        total += np.float64(share) * (math.log(sum_of) + highest)
        scale = share / np.float32(sum_of)
        for k in range(row.size):
            row[k] *= scale
        for place in range(begin, stop):
            row[counted.neighbours[place]] -= counted.shares[place]
    return total

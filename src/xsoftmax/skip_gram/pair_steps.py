"""Implicit SGD and U-max for skip-gram: Fagan and Iyengar, Unbiased scalable softmax optimization, 2018.

A pair (x, y) is drawn as often as it stands in the text, and one word k for the sum over all others. Each distinct
pair has a u of its own, whose best is -log p(y | x); with s = s_xk - s_xy and q(k) the chance to draw k (the paper
draws uniformly: ``power: 0``),

    L = u + e^-u + e^(s - u) / q(k) - 1                                                               (eq. 5)

There x is given; here its vector moves, too. Along the gradient of all three vectors s falls, to first order, by
2 rho for each unit of the coefficient, with rho = |in_x|^2 + |out_k - out_y|^2 / 2, which takes the place of |x|^2
in the implicit step's one equation (section 3.2). Cost of a step: three vectors.
"""

import math
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from xsoftmax.internal.compiled import njit
from xsoftmax.internal.free_memory import check_free
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.kernels import LEAN
from xsoftmax.kernels.cache_lines import exchange, hand_over, inner
from xsoftmax.kernels.dispatch import implements, lean
from xsoftmax.kernels.mathematics import softplus
from xsoftmax.kernels.random import start, stream
from xsoftmax.objectives.double_sum import implicit_step
from xsoftmax.proposals.frequency import alias_table
from xsoftmax.skip_gram.kernels import Vectors, draw_word
from xsoftmax.skip_gram.settings import Settings
from xsoftmax.skip_gram.text_walk import noise_table
from xsoftmax.skip_gram.vectors import by_cache_lines

CHUNK = 2**16
PAIR_BYTES = 24
# rho where both vectors are zero: nothing moves but u.
SMALLEST_NORM = 1e-30


class Pairs(NamedTuple):
    """Distinct pairs: an alias table, uint64; words, int32; the u of each, float64; all of shape (n_pairs,)."""

    table: np.ndarray
    x: np.ndarray
    y: np.ndarray
    u: np.ndarray


class Noise(NamedTuple):
    """An alias table of words, uint64, and one over the chance of each, float64, both of shape (n_words,)."""

    table: np.ndarray
    weights: np.ndarray


class ImplicitStep(NamedTuple):
    """The gradient where the step ends."""


class UMaxStep(NamedTuple):
    """The gradient where it begins, u being lifted first if it is ``threshold`` too low."""

    threshold: float


class PairSteps:
    """Epochs of as many steps as the text has pairs, in units of chunks."""

    def __init__(self, counts: csr_array, settings: Settings, vectors: Vectors) -> None:
        check_free(2 * PAIR_BYTES * counts.nnz, f"skip-gram: {counts.nnz:,} distinct pairs", "raise min_count")
        self._settings, self._vectors = settings, vectors
        n = counts.shape[0]
        words = np.repeat(np.arange(n, dtype=np.int32), np.diff(counts.indptr))
        u = np.full(counts.nnz, math.log(n))
        self._pairs = Pairs(alias_table(counts.data / counts.data.sum()), words, counts.indices.astype(np.int32), u)
        shares = np.bincount(counts.indices, counts.data, n) ** settings.power
        with np.errstate(divide="ignore"):
            weights = shares.sum() / shares
        self._noise = Noise(noise_table(np.bincount(counts.indices, counts.data, n), settings.power), weights)
        self._method = ImplicitStep() if settings.loss == "implicit" else UMaxStep(settings.threshold)
        self.n_steps = max(1, round(counts.data.sum()))
        self.n_units = -(-self.n_steps // CHUNK)
        self.at_once = 4 * settings.threads
        width = vectors.inputs.shape[1]
        self._changes = [by_cache_lines(1, width) for _ in range(settings.threads)]

    def arrays(self) -> dict[str, np.ndarray]:
        """What changes."""
        return {"inputs": self._vectors.inputs, "outputs": self._vectors.outputs, "u": self._pairs.u}

    def run(self, epoch: int, first: int, stop: int, pool: ThreadPool) -> None:
        """Take the steps of some chunks; each thread takes every so-many-th."""
        n = self._settings.threads
        tasks = [partial(self._chunks, epoch, range(first + j, stop, n), self._changes[j]) for j in range(n)]
        pool.run(tasks)

    def _chunks(self, epoch: int, chunks: range, change: np.ndarray) -> None:
        total = max(1, self._settings.epochs * self.n_units)
        for chunk in chunks:
            n_steps = min(CHUNK, self.n_steps - chunk * CHUNK)
            rate = self._settings.rate_at((epoch * self.n_units + chunk) / total)
            place = self._settings.seed, epoch, chunk
            take_steps(self._method, self._vectors, self._pairs, self._noise, change, n_steps, rate, *place)


@lean
def coefficient(method, rate, weight, s, rho, u, i):
    """By how much the three vectors of a step move along its gradient, float64; u of pair i moves, too."""


@implements(coefficient, ImplicitStep)
def _coefficient_implicit(method, rate, weight, s, rho, u, i):
    u[i], fall = implicit_step(rate, rho, weight, s, u[i])
    return fall / (2.0 * rho)


@implements(coefficient, UMaxStep)
def _coefficient_u_max(method, rate, weight, s, rho, u, i):
    proven = softplus(s)
    if u[i] < proven - method.threshold:
        u[i] = proven
    before = u[i]
    slope = weight * math.exp(s - before)
    u[i] = max(0.0, before - rate * (1.0 - math.exp(-before) - slope))
    return rate * slope


@njit(**LEAN)
def take_steps(method, vectors, pairs, noise, change, n_steps, rate, seed, epoch, chunk):
    """Draw pairs and words, and move their vectors."""
    inputs, outputs, rng = vectors.inputs, vectors.outputs, start(stream(seed, epoch), chunk)
    for _ in range(n_steps):
        rng, i = draw_word(pairs.table, rng)
        rng, k = draw_word(noise.table, rng)
        x, y = np.int64(pairs.x[i]), np.int64(pairs.y[i])
        if k != y:
            s = np.float64(inner(inputs, x, outputs, k)) - np.float64(inner(inputs, x, outputs, y))
            apart = (
                inner(outputs, k, outputs, k) - 2.0 * inner(outputs, k, outputs, y) + inner(outputs, y, outputs, y)
            )
            rho = max(np.float64(inner(inputs, x, inputs, x)) + 0.5 * max(apart, 0.0), SMALLEST_NORM)
            c = np.float32(coefficient(method, rate, noise.weights[k], s, rho, pairs.u, i))
            exchange(inputs, x, change, np.int64(0), outputs, k, -c)
            exchange(inputs, x, change, np.int64(0), outputs, y, c)
            hand_over(change, np.int64(0), inputs, x)
        else:  # y is no other word than itself: only e^-u + u has a slope
            u = pairs.u[i]
            pairs.u[i] = max(0.0, u - rate * (1.0 - math.exp(-u)))

"""Uniform: every class alike. Drawn in a few nanoseconds; needs no correction at prediction."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import h5py
import numpy as np

from xsoftmax.internal.compiled import njit
from xsoftmax.internal.hdf5 import put
from xsoftmax.internal.hdf5_checks import check_number
from xsoftmax.kernels import LEAN
from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.implicit_batch import draw_outside
from xsoftmax.kernels.protocol import draw, log_probability
from xsoftmax.kernels.random import below, next_u64
from xsoftmax.proposals import TrainingSet, proposal


@proposal(draws=True, cost="a random number")
class Uniform(NamedTuple):
    """Parameters: ``n_sampled``, classes drawn per step."""

    n_sampled: int = 1

    def fit(self, data: TrainingSet) -> "FittedUniform":
        """Nothing to learn but the number of classes."""
        return FittedUniform(data.n_classes)


MEMBER = Uniform


@dataclass(frozen=True)
class FittedUniform:
    """The uniform distribution over ``n_classes``."""

    n_classes: int
    name = "uniform"
    seconds = 0.0

    def kernel(self, X) -> "UniformDraws":
        """What the training loop draws from."""
        return UniformDraws(self.n_classes)

    def log_q(self, X, start: int, stop: int) -> None:
        """The same for all classes."""
        return None

    def inclusion(self, n_sampled: int) -> np.ndarray:
        """Draws without replacement from the other classes, or with, if there are fewer."""
        others = self.n_classes - 1
        share = n_sampled / others if n_sampled <= others else 1 - (1 - 1 / others) ** n_sampled
        return np.full(self.n_classes, share)

    def save(self, group: h5py.Group) -> None:
        """Keep the number of classes."""
        put(group, n_classes=self.n_classes)


def restore(group: h5py.Group, n_classes: int, n_features: int) -> FittedUniform:
    """Read what ``save`` wrote of a proposal over so many classes, for rows of so many features."""
    check_number(group, "n_classes", n_classes)
    return FittedUniform(n_classes)


class UniformDraws(NamedTuple):
    """What the kernels see."""

    n_classes: int


# It has a draw_outside of its own.
UniformDraws.avoids_labels = True  # type: ignore[attr-defined]


@implements(draw, UniformDraws)
def _draw(proposal, view, i, excluded, lowest, rng, draws):
    if excluded < 0:
        for j in range(draws.classes.size):
            rng, bits = next_u64(rng)
            draws.classes[j] = below(bits, proposal.n_classes)
        _set_alike(proposal.n_classes, draws)
        return
    # Numbered as if `excluded` were not there; with replacement if there are fewer than are to be drawn.
    others = proposal.n_classes - 1
    if draws.classes.size <= others:
        _draw_distinct(others, rng, draws.classes)
    else:
        for j in range(draws.classes.size):
            rng, bits = next_u64(rng)
            draws.classes[j] = below(bits, others)
    for j in range(draws.classes.size):
        draws.classes[j] += draws.classes[j] >= excluded
    _set_alike(others, draws)


@njit(**LEAN)
def _set_alike(n, draws):
    """Log-probabilities and weights of draws from ``n`` classes."""
    log_q, weight = np.float32(-math.log(n)), np.float32(n) / np.float32(draws.classes.size)
    for j in range(draws.classes.size):
        draws.log_q[j] = log_q
        draws.weights[j] = weight


@njit(**LEAN)
def _draw_distinct(n, rng, out):
    """Fill ``out`` with distinct numbers below ``n``: Floyd's draws without replacement."""
    for j in range(out.size):
        rng, bits = next_u64(rng)
        highest = n - out.size + j
        candidate = below(bits, highest + 1)
        for earlier in range(j):
            if out[earlier] == candidate:
                candidate = highest
                break
        out[j] = candidate


@implements(draw_outside, UniformDraws)
def _draw_outside(proposal, view, i, y, batch_labels, rng, draws):
    """Distinct classes outside the labels; all of them if there are no more than are to be drawn."""
    others = proposal.n_classes - batch_labels.size
    n = min(draws.classes.size, others)
    _draw_distinct(others, rng, draws.classes[:n])
    for j in range(n):
        for label in batch_labels:  # numbered as if the labels were not there
            draws.classes[j] += draws.classes[j] >= label
        draws.weights[j] = np.float32(others) / np.float32(n)
    return n


@implements(log_probability, UniformDraws)
def log_of_uniform(proposal, view, i, k):
    """Give the logarithm of a class's share."""
    return np.float32(-math.log(proposal.n_classes))

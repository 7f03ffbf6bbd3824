"""Uniform: every class alike. Drawn in a few nanoseconds; needs no correction at prediction."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import h5py
import numpy as np

from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.random import below, next_u64
from xsoftmax.kernels.steps import draw, log_probability
from xsoftmax.proposals import TrainingSet, proposal


@proposal(draws=True)
class Uniform(NamedTuple):
    """No parameters."""

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
        group.attrs["n_classes"] = self.n_classes


def restore(group: h5py.Group) -> FittedUniform:
    """Read what ``save`` wrote."""
    return FittedUniform(int(group.attrs["n_classes"]))


class UniformDraws(NamedTuple):
    """What the kernels see."""

    n_classes: int


@implements(draw, UniformDraws)
def _draw(proposal, i, excluded, rng, draws):
    if excluded < 0:
        for j in range(draws.classes.size):
            rng, bits = next_u64(rng)
            draws.classes[j] = below(bits, proposal.n_classes)
        draws.log_q[:] = np.float32(-math.log(proposal.n_classes))
        draws.weights[:] = np.float32(proposal.n_classes) / np.float32(draws.classes.size)
        return
    # Floyd's draws without replacement from the other n_classes - 1, numbered as if `excluded` were not there;
    # with replacement if there are fewer than are to be drawn.
    others = proposal.n_classes - 1
    distinct = draws.classes.size <= others
    for j in range(draws.classes.size):
        rng, bits = next_u64(rng)
        highest = others - draws.classes.size + j if distinct else others - 1
        candidate = below(bits, highest + 1)
        for earlier in range(j if distinct else 0):
            if draws.classes[earlier] == candidate:
                candidate = highest
                break
        draws.classes[j] = candidate
    for j in range(draws.classes.size):
        draws.classes[j] += draws.classes[j] >= excluded
    draws.log_q[:] = np.float32(-math.log(others))
    draws.weights[:] = np.float32(others) / np.float32(draws.classes.size)


@implements(log_probability, UniformDraws)
def _log_probability(proposal, i, k):
    return np.float32(-math.log(proposal.n_classes))

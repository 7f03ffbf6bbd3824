"""Uniform: every class alike. Drawn in a few nanoseconds; needs no correction at prediction."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import h5py
import numpy as np

from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.random import below, next_u64
from xsoftmax.kernels.steps import draw, inverse_probability, log_probability
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


@implements(log_probability, UniformDraws)
def _log_probability(proposal, i, k):
    return np.float32(-math.log(proposal.n_classes))


@implements(inverse_probability, UniformDraws)
def _inverse_probability(proposal, log_q):
    return np.float32(proposal.n_classes - 1)

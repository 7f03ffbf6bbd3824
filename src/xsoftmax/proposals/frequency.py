"""Frequency: classes as often as they occur in training. Drawn from an alias table in a few nanoseconds.

Walker 1977, Vose 1991. Prediction adds the log-frequencies where the objective's scores lack them.
"""

import time
from dataclasses import dataclass
from typing import NamedTuple

import h5py
import numpy as np

from xsoftmax.internal.compiled import njit
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.hdf5_checks import check_array
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.draws import weigh_by_probability
from xsoftmax.kernels.protocol import draw, log_probability
from xsoftmax.kernels.random import below, low_bits, next_u64
from xsoftmax.proposals import TrainingSet, proposal

_SURE = 2.0**32


@proposal(draws=True, cost="a random number and a look-up")
class Frequency(NamedTuple):
    """Parameters: ``power``, to which counts are raised (1: as they are; word2vec takes 0.75); ``n_sampled``."""

    power: float = 1.0
    n_sampled: int = 1

    def fit(self, data: TrainingSet) -> "FittedFrequency":
        """Learn the class frequencies; a class that never occurs is never drawn."""
        start = time.perf_counter()
        with np.errstate(over="ignore"):
            weights = data.class_counts.astype(np.float64) ** self.power
        weights[data.class_counts == 0] = 0
        if not np.isfinite(weights.sum()):
            most = data.class_counts.max()
            raise InputError(
                f"proposal frequency: {most} rows to the power of {self.power:g} are too many; lower power"
            )
        with np.errstate(divide="ignore"):
            log_q = np.log(weights / weights.sum()).astype(np.float32)
        return FittedFrequency(log_q, time.perf_counter() - start)


MEMBER = Frequency


@dataclass(frozen=True)
class FittedFrequency:
    """Log-probabilities of the classes, float32 of shape (n_classes,)."""

    log_probabilities: np.ndarray
    seconds: float = 0.0
    name = "frequency"

    def kernel(self, X) -> "FrequencyDraws":
        """What the training loop draws from: an alias table."""
        return FrequencyDraws(alias_table(np.exp(self.log_probabilities.astype(np.float64))), self.log_probabilities)

    def log_q(self, X, start: int, stop: int) -> np.ndarray:
        """Log-probabilities of a block of classes, the same for every row: shape (1, stop - start)."""
        return self.log_probabilities[None, start:stop]

    def inclusion(self, n_sampled: int) -> np.ndarray:
        """Independent draws."""
        return -np.expm1(n_sampled * np.log1p(-np.exp(self.log_probabilities.astype(np.float64))))

    def save(self, group: h5py.Group) -> None:
        """Keep the log-probabilities."""
        group["log_probabilities"] = self.log_probabilities


def restore(group: h5py.Group, n_classes: int, n_features: int) -> FittedFrequency:
    """Read what ``save`` wrote of a proposal over so many classes, for rows of so many features."""
    check_array(group["log_probabilities"], np.float32, n_classes)
    return FittedFrequency(group["log_probabilities"][:])


class FrequencyDraws(NamedTuple):
    """What the kernels see: see ``alias_table``, and float32 log-probabilities."""

    table: np.ndarray
    log_probabilities: np.ndarray


@njit(**OPTIONS)
def alias_table(probabilities):
    """Pack an alias table, uint64 of shape (n_classes,): the alias in the upper, the threshold in the lower half.

    A uniform class is kept if 32 random bits lie below its threshold, otherwise its alias is taken.
    """
    n = probabilities.size
    share = probabilities / probabilities.sum() * n
    threshold = np.full(n, _SURE)
    alias = np.arange(n)
    small = np.empty(n, np.int64)
    large = np.empty(n, np.int64)
    n_small = n_large = 0
    for k in range(n):
        if share[k] < 1.0:
            small[n_small] = k
            n_small += 1
        else:
            large[n_large] = k
            n_large += 1
    while n_small > 0 and n_large > 0:
        n_small -= 1
        low, high = small[n_small], large[n_large - 1]
        threshold[low] = share[low] * _SURE
        alias[low] = high
        share[high] -= 1.0 - share[low]
        if share[high] < 1.0:
            n_large -= 1
            small[n_small] = high
            n_small += 1
    table = np.empty(n, np.uint64)
    for k in range(n):
        if threshold[k] >= _SURE:
            table[k] = (np.uint64(k) << np.uint64(32)) | np.uint64(_SURE - 1.0)
        else:
            table[k] = (np.uint64(alias[k]) << np.uint64(32)) | np.uint64(threshold[k])
    return table


@implements(draw, FrequencyDraws)
def _draw(proposal, view, i, excluded, lowest, rng, draws):
    for j in range(draws.classes.size):
        rng, bits = next_u64(rng)
        k = below(bits, proposal.table.size)
        entry = proposal.table[k]
        if low_bits(bits) >= low_bits(entry):
            k = np.int64(entry >> np.uint64(32))
        draws.classes[j] = k
        draws.log_q[j] = proposal.log_probabilities[k]
    weigh_by_probability(draws)


@implements(log_probability, FrequencyDraws)
def _log_probability(proposal, view, i, k):
    return proposal.log_probabilities[k]

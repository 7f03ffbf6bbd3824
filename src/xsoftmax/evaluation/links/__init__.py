"""How scores become probabilities; one file each, named as a model's ``link``.

A file holds ``log_probabilities(scores, classes)``: of some classes of each row, from the scores of all, float64 of
shape (n, m); where the paper had to sample, ``sampled_log_probabilities(scores, y, rng)``; and where a row may have
any number of classes, ``log_likelihoods(scores, starts, classes)``, of having those of each row and no others.
"""

from types import ModuleType
from typing import Any

import numpy as np

from xsoftmax.internal import registry
from xsoftmax.internal.fingerprint import modules_below
from xsoftmax.kernels.integral import log_likelihoods, sampled_log_likelihoods

# What Ruiz et al. 2018 estimate their integrals with: draws per row, from N(mean, deviation^2).
N_DRAWS, MEAN, DEVIATION = 1000, 5.0, 5.0


# What a measured likelihood depends on, beside what is imported: links are loaded by name.
MODULES = modules_below("xsoftmax.evaluation.links")


def load(name: str) -> ModuleType:
    """Import a link by its name; an unknown one is an InputError that lists the known."""
    return registry.load("xsoftmax.evaluation.links", name)


def integrated(noise: Any, scores: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Log-probabilities under additive noise (``xsoftmax.kernels.noise``), to 1e-9."""
    return log_likelihoods(noise, np.ascontiguousarray(scores, np.float64), np.ascontiguousarray(classes, np.int64))


def sampled(noise: Any, scores: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Log-likelihoods of the true classes ``y`` by importance sampling, float64 of shape (n,).

    As in Ruiz et al. 2018; it fails where a class is far behind.
    """
    points = rng.normal(MEAN, DEVIATION, (len(scores), N_DRAWS))
    log_q = -0.5 * ((points - MEAN) / DEVIATION) ** 2 - np.log(DEVIATION * np.sqrt(2 * np.pi))
    wide = np.ascontiguousarray(scores, np.float64)
    return sampled_log_likelihoods(noise, wide, y.astype(np.int64), points, log_q)

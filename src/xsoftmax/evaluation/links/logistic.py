"""Multinomial logistic: class k is chosen where s_k plus logistic noise is highest."""

import numpy as np

from xsoftmax.evaluation import links
from xsoftmax.kernels.noise import Logistic


def log_probabilities(scores: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Log-probabilities of ``classes``, shape (n, m), from the scores of all, shape (n, n_classes)."""
    return links.integrated(Logistic(), scores, classes)


def sampled_log_probabilities(scores: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Log-probabilities of the classes ``y``, shape (n,), by the paper's importance sampling."""
    return links.sampled(Logistic(), scores, y, rng)

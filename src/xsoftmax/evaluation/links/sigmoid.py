"""Sigmoid: a row has class k with probability 1 / (1 + e^-s_k), whatever else it has."""

import numpy as np


def log_probabilities(scores: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Log-probabilities of ``classes``, shape (n, m), from the scores of all, shape (n, n_classes)."""
    return -np.logaddexp(0.0, -np.take_along_axis(scores.astype(np.float64), classes, axis=1))

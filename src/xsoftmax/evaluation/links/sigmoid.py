"""Sigmoid: a row has class k with probability 1 / (1 + e^-s_k), whatever else it has."""

import numpy as np


def log_probabilities(scores: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Log-probabilities of ``classes``, shape (n, m), from the scores of all, shape (n, n_classes)."""
    return -np.logaddexp(0.0, -np.take_along_axis(scores.astype(np.float64), classes, axis=1))


def log_likelihoods(scores: np.ndarray, starts: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Log-probabilities, (n,), that rows have the classes ``classes[starts[i]:starts[i + 1]]`` and no others."""
    wide = scores.astype(np.float64)
    rows = np.repeat(np.arange(len(wide)), np.diff(starts))
    # log sigmoid(s) - log sigmoid(-s) = s
    return np.bincount(rows, wide[rows, classes], len(wide)) - np.logaddexp(0.0, wide).sum(axis=1)

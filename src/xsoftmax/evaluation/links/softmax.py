"""Softmax: p(k) = e^s_k / sum of e^s; what additive Gumbel noise gives."""

import numpy as np
from scipy.special import logsumexp


def log_probabilities(scores: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Log-probabilities of ``classes``, shape (n, m), from the scores of all, shape (n, n_classes)."""
    wide = scores.astype(np.float64)
    return np.take_along_axis(wide, classes, axis=1) - logsumexp(wide, axis=1, keepdims=True)

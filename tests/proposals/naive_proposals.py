"""Slow references for proposals, from their definitions."""

import math

import numpy as np


def head(counts, n_head):
    """The most frequent classes, of equally frequent ones the first."""
    return sorted(sorted(range(len(counts)), key=lambda k: (-counts[k], k))[:n_head])


def frequency(counts, power=1.0):
    weights = [count**power if count else 0.0 for count in counts]
    return np.array([weight / sum(weights) for weight in weights])


def mixture(first, second, share):
    return np.array([share * p + (1 - share) * q for p, q in zip(first, second, strict=True)])


def quadratic_kernel(x, W, alpha):
    """Blanc and Rendle 2018, section 3.3: probabilities of all classes for one row; biases are the last column."""
    weights = []
    for w in W:
        score = sum(float(a) * float(b) for a, b in zip(x, w[:-1], strict=True)) + float(w[-1])
        weights.append(alpha * score**2 + 1)
    return np.array([weight / math.fsum(weights) for weight in weights])

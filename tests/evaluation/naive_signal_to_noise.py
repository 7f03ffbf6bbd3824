"""Slow reference for the signal-to-noise ratio of Bamler and Mandt 2020, eq. 12, by enumeration."""

import math

import numpy as np


def noise(sizes, p, q):
    """Tr(C H^-1); see ``traces``."""
    return traces(sizes, p, q)[0]


def traces(sizes, p, q):
    """Tr(C H^-1) and Tr(C) of N negative-sampling losses, all events enumerated, everything positive.

    Row x occurs sizes[x] times; p[x] and q[x] are its label frequencies and its proposal. Covariance by its
    definition over all (x, y, y'), Hessian by differences of the exact gradient.
    """
    n_distinct, n_classes = len(p), len(p[0])
    n = sum(sizes)
    s = np.array([[math.log(p[x][y] / q[x][y]) for y in range(n_classes)] for x in range(n_distinct)])
    covariance = np.zeros((n_distinct * n_classes, n_distinct * n_classes))
    mean = np.zeros(n_distinct * n_classes)
    for x in range(n_distinct):
        for y in range(n_classes):
            for drawn in range(n_classes):
                probability = sizes[x] / n * p[x][y] * q[x][drawn]
                g = np.zeros((n_distinct, n_classes))
                g[x, y] -= n / (1 + math.exp(s[x, y]))
                g[x, drawn] += n / (1 + math.exp(-s[x, drawn]))
                covariance += probability * np.outer(g.ravel(), g.ravel())
                mean += probability * g.ravel()
    covariance -= np.outer(mean, mean)
    assert np.abs(mean).max() < 1e-9 * n  # it is the minimum

    def slopes(scores):
        scores = scores.reshape(n_distinct, n_classes)
        total = np.zeros((n_distinct, n_classes))
        for x in range(n_distinct):
            for y in range(n_classes):
                total[x, y] = sizes[x] * (
                    -p[x][y] / (1 + math.exp(scores[x, y])) + q[x][y] / (1 + math.exp(-scores[x, y]))
                )
        return total.ravel()

    step = 1e-5 * np.eye(s.size)
    hessian = np.array([(slopes(s.ravel() + e) - slopes(s.ravel() - e)) / 2e-5 for e in step])
    return np.trace(covariance @ np.linalg.inv(hessian)), np.trace(covariance)

"""Seconds that an epoch takes: a sum of counts of work, by coefficients fitted to measured times."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import nnls

from xsoftmax.advice.facts import Facts
from xsoftmax.methods import Method

# Beyond so many bytes of weights and accumulators a row is more likely to be found in memory than in a cache.
CACHE = 2**25


def terms(method: Method, facts: Facts) -> np.ndarray:
    """Counts of work per sample: of a constant, of classes, of entries that are multiplied, and of those moved."""
    size = method.batch.size if method.proposal.draws else method.proposal.batch_size
    K, entries = float(facts.n_classes), facts.n_entries
    if not method.proposal.draws:
        moved = K * columns(facts, size) / size
        return np.array([1, 1 / size, K, K * entries, moved, moved * misses(facts)])
    n = method.objective.n_sampled
    if method.batch.shared:
        moved = (n + min(K, size)) * columns(facts, size) / size
        return np.array([1, 1 / size, n, (n + 1) * entries, moved, moved * misses(facts)])
    touched = (n + 1) * entries
    return np.array([1, n + 1, touched, touched * misses(facts), (n + 1) * misses(facts), n * np.log2(K + 1)])


def columns(facts: Facts, size: int) -> float:
    """Features that so many rows have among them, were each as frequent as any other."""
    if not facts.sparse:
        return float(facts.n_features)
    return facts.n_features * -np.expm1(size * np.log1p(-min(0.999, facts.n_entries / facts.n_features)))


def misses(facts: Facts) -> float:
    """About how often a row of weights is not in a cache."""
    size = 8.0 * facts.n_classes * facts.n_features
    return size / (size + CACHE)


def fit_costs(counts: Sequence[np.ndarray], seconds: Sequence[float]) -> list[float]:
    """Coefficients, none negative, for which relative errors of the seconds per sample are smallest."""
    scaled = np.array(counts) / np.array(seconds)[:, None]
    unit = scaled.max(axis=0, initial=1e-30)
    return list(nnls(scaled / unit, np.ones(len(seconds)))[0] / unit)


def seconds_per_sample(coefficients: Sequence[float], method: Method, facts: Facts) -> float:
    """Predict."""
    return float(np.dot(coefficients, terms(method, facts)))


def relative_errors(coefficients: Sequence[float], counts: Any, seconds: Any) -> np.ndarray:
    """Of the predictions, to the measured times."""
    return np.array(counts) @ np.array(coefficients) / np.array(seconds) - 1

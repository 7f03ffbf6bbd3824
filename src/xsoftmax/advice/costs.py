"""Seconds that an epoch takes: a sum of counts of work, by coefficients fitted to measured times."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import nnls

from xsoftmax.advice.statistics import DatasetStatistics
from xsoftmax.methods import Method

# Beyond so many bytes of weights and accumulators a row is more likely to be found in memory than in a cache.
CACHE = 2**25


def terms(method: Method, statistics: DatasetStatistics) -> np.ndarray:
    """Count the work per sample: a constant, classes looked at, entries multiplied, and weights written.

    Returns
    -------
    ndarray of shape (6,), float64
    """
    size = method.minibatch_size
    n_classes, entries, share_missed = float(statistics.n_classes), statistics.n_entries, share_of_misses(statistics)
    if not method.proposal.draws:
        moved = n_classes * n_columns(statistics, size) / size
        return np.array([1, 1 / size, n_classes, n_classes * entries, moved, moved * share_missed])
    n_sampled = method.n_sampled
    if method.batch.shared:
        moved = (n_sampled + min(n_classes, size)) * n_columns(statistics, size) / size
        return np.array([1, 1 / size, n_sampled, (n_sampled + 1) * entries, moved, moved * share_missed])
    rows = n_sampled + 1
    touched, descent = rows * entries, n_sampled * np.log2(n_classes + 1)
    return np.array([1, rows, touched, touched * share_missed, rows * share_missed, descent])


def setup_work(method: Method, statistics: DatasetStatistics) -> float:
    """Count the work of fitting its proposal."""
    return method.proposal.fit_work(statistics.n_samples, statistics.n_classes)


def n_columns(statistics: DatasetStatistics, size: int) -> float:
    """Count the features that so many rows have among them, were each as frequent as any other."""
    if not statistics.sparse or statistics.n_features == 0:
        return float(statistics.n_features)
    return statistics.n_features * -np.expm1(
        size * np.log1p(-min(0.999, statistics.n_entries / statistics.n_features))
    )


def share_of_misses(statistics: DatasetStatistics) -> float:
    """Estimate how often a row of weights is not in a cache."""
    size = 8.0 * statistics.n_classes * statistics.n_features
    return size / (size + CACHE)


def fit_costs(counts: Sequence[np.ndarray], seconds: Sequence[float]) -> list[float]:
    """Find coefficients, none negative, for which relative errors of the seconds per sample are smallest.

    Of counts that are multiples of each other, as those that only depend on the method, the first gets all.
    """
    scaled = np.array(counts) / np.array(seconds)[:, None]
    unit = scaled.max(axis=0, initial=1e-30)
    columns = (scaled / unit).T
    own = [j for j, one in enumerate(columns) if not any(np.allclose(one, other, 1e-9) for other in columns[:j])]
    coefficients = np.zeros(len(columns))
    coefficients[own] = nnls(columns[own].T, np.ones(len(seconds)))[0] / unit[own]
    return coefficients.tolist()


def seconds_per_sample(coefficients: Sequence[float], method: Method, statistics: DatasetStatistics) -> float:
    """Predict the seconds that one thread takes for a sample."""
    return float(np.dot(coefficients, terms(method, statistics)))


def relative_errors(coefficients: Sequence[float], counts: Any, seconds: Any) -> np.ndarray:
    """Give the relative errors of predicted times."""
    return np.array(counts) @ np.array(coefficients) / np.array(seconds) - 1

"""Generated: few distinct rows, each seen very often, with labels from a known p(y | x).

Classes come in clusters. A row prefers the classes of one cluster, each to a degree of its own; rows of a cluster
lie near each other. What depends on p(y | x) itself, not on a model of it, can be computed on such data: the
signal-to-noise ratio of Bamler and Mandt 2020, eq. 12.
"""

import numpy as np

from xsoftmax.data.parts import check_sizes
from xsoftmax.data.rows import Rows
from xsoftmax.internal.errors import InputError


def read(
    *,
    n_samples: int = 120_000,
    n_distinct: int = 30,
    n_features: int = 8,
    n_classes: int = 20,
    n_clusters: int = 5,
    sharpness: float = 4.0,
    spread: float = 1.0,
    floor: float = 0.15,
    seed: int = 0,
) -> Rows:
    """Draw rows and their labels.

    Parameters
    ----------
    n_samples, n_features, n_classes, n_clusters : int
        How many there are.
    n_distinct : int
        Distinct rows, all equally probable.
    sharpness, spread, floor : float
        See ``conditional_probabilities``.
    seed : int
        Of the draws.
    """
    if min(n_samples, n_distinct, n_features, n_classes, n_clusters) < 1 or not 0 <= floor <= 1:
        raise InputError("contingency: sizes must be positive, floor within 0 and 1")
    sizes = n_distinct * n_classes, (n_clusters + n_distinct) * n_features
    check_sizes("contingency", n_samples, *sizes, bytes_a_row=4 * n_features + 17 * n_classes + 32)
    rng = np.random.default_rng(seed)
    probabilities = conditional_probabilities(n_distinct, n_classes, n_clusters, sharpness, spread, floor, rng)
    centres = rng.standard_normal((n_clusters, n_features))
    features = centres[np.arange(n_distinct) % n_clusters] + 0.5 * rng.standard_normal((n_distinct, n_features))
    rows = rng.integers(n_distinct, size=n_samples)
    bounds = np.cumsum(probabilities, axis=1)
    beyond = rng.random(n_samples)[:, None] * bounds[rows, -1:] >= bounds[rows]
    return Rows.with_ids(features.astype(np.float32)[rows], beyond.sum(axis=1))


def conditional_probabilities(
    n_distinct: int,
    n_classes: int,
    n_clusters: int,
    sharpness: float,
    spread: float,
    floor: float,
    rng: np.random.Generator,
) -> np.ndarray:
    """p(y | x), float64 of shape (n_distinct, n_classes): a softmax of random scores, mixed with the uniform.

    Parameters
    ----------
    sharpness : float
        By how much scores are higher in a row's own cluster.
    spread : float
        Standard deviation of scores within a cluster.
    floor : float
        Share of the uniform distribution, so that every class occurs with every row.
    """
    own = np.arange(n_distinct)[:, None] % n_clusters == np.arange(n_classes) % n_clusters
    scores = sharpness * own + spread * rng.standard_normal((n_distinct, n_classes))
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return (1 - floor) * weights / weights.sum(axis=1, keepdims=True) + floor / n_classes

"""What a search finds of what there is to find, measured on some samples by the scores of all classes."""

import numpy as np

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.coefficients import excluded_of, lowest_of
from xsoftmax.kernels.draws import empty_candidates, empty_draws
from xsoftmax.kernels.protocol import View, draw, gradient, n_exact
from xsoftmax.kernels.random import start
from xsoftmax.kernels.walk import score_class


@njit(**OPTIONS)
def found_shares(parts, samples, weights, n_classes, rows):
    """Compare what is found for some samples, int64 of shape (n,), with all classes but the true ones.

    Nothing moves but what a proposal's draw itself marks.

    Returns
    -------
    ndarray of shape (n, 2), float64
        Whether the highest other class is found, 0 or 1, and the share of the found classes in the sum of the sizes
        of all slopes; NaN where no class is above what moves anything, or none has a slope.
    """
    shares = np.full((rows.size, 2), np.nan)
    candidates, others = empty_candidates(parts.n_sampled + n_exact(parts.proposal)), empty_draws(n_classes - 1)
    is_found, found = np.zeros(n_classes, np.bool_), candidates.draws
    n_places = n_exact(parts.proposal) if n_exact(parts.proposal) else found.classes.size
    for r in range(rows.size):
        i, y = rows[r], np.int64(samples.labels[rows[r]])
        lowest = lowest_of(parts, samples.features, weights, i, y)
        excluded, rng = excluded_of(parts.objective, y), start(np.uint64(0), i)
        draw(parts.proposal, View(weights, samples.features), i, excluded, lowest, rng, found)
        for j in range(n_places):
            is_found[found.classes[j]] |= found.weights[j] > 0
        highest = _score_others(weights, samples.features, i, y, others)
        score_true = score_class(weights, samples.features, i, y)
        state = samples.auxiliary[i].copy()
        gradient(parts.objective, np.float32(0), state, score_true, np.float32(0), others)
        if others.scores[highest] > lowest:
            shares[r, 0] = is_found[others.classes[highest]]
        shares[r, 1] = _share(others, is_found)
        is_found[:] = False
    return shares


@njit(**OPTIONS)
def _score_others(weights, features, i, y, others):
    """Put all classes but ``y`` into draws; return the place of the highest."""
    highest = 0
    for j in range(others.classes.size):
        others.classes[j] = j + (j >= y)
        others.scores[j] = score_class(weights, features, i, others.classes[j])
        others.weights[j], others.log_q[j] = np.float32(1), np.float32(0)
        if others.scores[j] > others.scores[highest]:
            highest = j
    return highest


@njit(**OPTIONS)
def _share(others, is_found):
    """Share of the classes found in the sum of the sizes of slopes; NaN if that is 0."""
    total = of_found = 0.0
    for j in range(others.classes.size):
        size = abs(np.float64(others.out[j]))
        total += size
        if is_found[others.classes[j]]:
            of_found += size
    return of_found / total if total > 0 else np.nan

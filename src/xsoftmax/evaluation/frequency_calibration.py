"""A temperature and an offset by class frequency, under which rows are likeliest.

    max over t > 0, c of  sum_i log p_i(t, c),    p_i(t, c) = softmax(t s_i + c log n)_{y_i}

n_k being the training rows of class k: what bounds, margins and drawn classes leave out of the frequencies (logit
adjustment: Menon et al., ICLR 2021), at a strength that rows choose. The likelihood is concave in (t, c); its slopes
are means and covariances of scores and log n under p, so that Newton's steps need a few passes and hold no scores.
"""

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from xsoftmax.evaluation.calibration import fit_calibration
from xsoftmax.evaluation.part_of_model import PartOfModel, lowered
from xsoftmax.internal.compiled import njit
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.log_sum_exp import STRETCH, scan
from xsoftmax.kernels.mathematics import exp32
from xsoftmax.kernels.scores import SMALLEST, Calibration
from xsoftmax.model import Model

# Passes over the scores, at most; and which gain, in nats a row, ends them.
PASSES, LEAST_GAIN = 40, 1e-7
# What is added to curvatures, relative to the largest, so that steps are finite where rows do not tell t from c.
L2 = 1e-9


class Likelihood(NamedTuple):
    """Mean log-likelihood of rows at (t, c), its gradient (2,), and its Hessian (2, 2)."""

    value: float
    gradient: np.ndarray
    hessian: np.ndarray


class Sums(NamedTuple):
    """Per row: true class, its score, the highest e so far, and sums of e^e times 1, d, f, d^2, d f, f^2.

    d and f are score and log n, those of the true class taken off; e is t d + c f.
    """

    y: np.ndarray
    true: np.ndarray
    highest: np.ndarray
    totals: np.ndarray


def likelihood_at(
    model: Model, X: Any, y: np.ndarray, log_counts: np.ndarray, at: np.ndarray, pool: ThreadPool | None = None
) -> Likelihood:
    """Compute the mean log-likelihood at (t, c); its parts are NaN if a score is not finite.

    Parameters are as for ``calibration.likelihood_at``; ``log_counts`` are (n_classes,), float32, and ``at`` is (2,).
    """
    n, (t, c) = len(y), at.astype(np.float32)
    sums = Sums(y, model.true_scores(X, y), np.full(n, -np.inf), np.zeros((n, 6)))
    model.visit_scores(X, lambda block: add_block(block, t, c, log_counts, sums), pool)
    if isinstance(model, PartOfModel):
        highest, down = lowered(model.ranks, sums.highest)
        sums = Sums(y, sums.true, highest, model.ranks.total(sums.totals * np.exp(down)[:, None]))
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        total = sums.totals[:, 0]
        d, f, dd, df, ff = (sums.totals[:, 1:] / total[:, None]).T
        hessian = -np.array([[dd - d * d, df - d * f], [df - d * f, ff - f * f]]).mean(axis=2)
        return Likelihood(float(-(sums.highest + np.log(total)).mean()), -np.array([d.mean(), f.mean()]), hessian)


def frequencies_of(train: np.ndarray, y: np.ndarray) -> np.ndarray | None:
    """Give the training rows of each class as frequencies; None where they are none, but of a design.

    Where classes have about as many rows each, by design, a class with more rows for training has fewer left for
    validation: these would then ask for an offset that is wrong for other rows. So it is where the number of rows,
    for training and validation together, varies less than by chance, where its variance would be its mean.

    Parameters
    ----------
    train : ndarray of shape (n_classes,)
        Training rows of each class.
    y : ndarray of shape (n_validation,)
        Classes of validation rows.
    """
    totals = train + np.bincount(y, minlength=len(train))
    return None if totals.var() < totals.mean() else train


def log_counts_of(class_counts: np.ndarray) -> np.ndarray:
    """Log of the training rows of each class, float32; a class without any counts as one with one."""
    return np.log(np.maximum(class_counts, 1)).astype(np.float32)


def fit_with_frequencies(
    model: Model, X: Any, y: np.ndarray, class_counts: np.ndarray, pool: ThreadPool | None = None
) -> Calibration:
    """Find (t, c) under which rows are likeliest; they are no less likely than with the best temperature alone.

    Parameters are as for ``likelihood_at``; ``class_counts`` are the training rows of each class, (n_classes,).
    """
    log_counts, alone = log_counts_of(class_counts), fit_calibration(model, X, y, pool)
    at = np.array([alone.inverse_temperature, 0.0])
    if not len(y):
        return Calibration(at[0], 0.0, log_counts)
    with model.holding(X):
        here = likelihood_at(model, X, y, log_counts, at, pool)
        step = _newton(here)
        for _ in range(PASSES):
            following = at + step
            if not np.isfinite(following).all() or not (np.abs(step) > 1e-6 * (np.abs(at) + 1e-3)).any():
                break
            there = here if following[0] < SMALLEST else likelihood_at(model, X, y, log_counts, following, pool)
            if not there.value > here.value:
                step = step / 4
                continue
            gain, at, here = there.value - here.value, following, there
            step = _newton(here)
            if gain < LEAST_GAIN:
                break
    return Calibration(float(at[0]), float(at[1]), log_counts)


def calibrated(
    model: Model, kind: str, X: Any, y: np.ndarray, class_counts: np.ndarray | None, pool: ThreadPool | None = None
) -> Model:
    """Give a model the calibration of a kind, one of ``methods.CALIBRATIONS``, that makes rows likeliest.

    Parameters are as for ``fit_with_frequencies``; ``class_counts`` matter to the kind with frequencies alone.
    """
    if kind == "none":
        return model
    if kind == "temperature" or class_counts is None:
        return replace(model, calibration=fit_calibration(model, X, y, pool))
    return replace(model, calibration=fit_with_frequencies(model, X, y, class_counts, pool))


def _newton(at: Likelihood) -> np.ndarray:
    """Give Newton's step uphill; none where the likelihood is not finite."""
    curvature = -at.hessian
    if not (np.isfinite(curvature).all() and np.isfinite(at.gradient).all() and curvature.max() > 0):
        return np.full(2, np.nan)
    return np.linalg.solve(curvature + L2 * curvature.max() * np.eye(2), at.gradient)


@njit(**OPTIONS)
def add_block(block, t, c, log_counts, sums):
    """Go on with the sums of a block's rows."""
    for b in range(block.scores.shape[0]):
        row, i = block.scores[b], block.first_row + b
        totals, true, of_true = sums.totals[i], sums.true[i], log_counts[sums.y[i]]
        if scan(row, np.float32(0)).not_finite:
            totals[:] = np.nan
            continue
        highest = np.float32(-np.inf)
        for j in range(row.size):
            highest = max(highest, t * (row[j] - true) + c * (log_counts[block.first_class + j] - of_true))
        if highest > sums.highest[i]:
            if totals[0] > 0:
                totals *= math.exp(sums.highest[i] - np.float64(highest))
            sums.highest[i] = highest
        reference = np.float32(sums.highest[i])
        for first in range(0, row.size, STRETCH):
            stretch = row[first : first + STRETCH]
            counts = log_counts[block.first_class + first : block.first_class + first + stretch.size]
            s0 = s1 = s2 = s3 = s4 = s5 = np.float32(0)
            for j in range(stretch.size):
                d, f = stretch[j] - true, counts[j] - of_true
                e = exp32(t * d + c * f - reference)
                s0 += e
                s1 += e * d
                s2 += e * f
                s3 += e * d * d
                s4 += e * d * f
                s5 += e * f * f
            totals[0] += np.float64(s0)
            totals[1] += np.float64(s1)
            totals[2] += np.float64(s2)
            totals[3] += np.float64(s3)
            totals[4] += np.float64(s4)
            totals[5] += np.float64(s5)

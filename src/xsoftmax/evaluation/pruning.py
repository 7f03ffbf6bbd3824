"""Magnitude pruning: the smallest weights become zero, and what that costs is measured (Han et al., NIPS 2015)."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import csc_array

from xsoftmax.evaluation.likelihood import evaluate
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.model import Model


def pruned(model: Model, share: float) -> Model:
    """Drop the smallest weights, by absolute value: a model with sparse weights, not calibrated.

    Parameters
    ----------
    model : Model
    share : float
        Of the weights that are not zero, how many are dropped: 0.5 drops the smaller half. Biases stay.
    """
    sparse = replace(model.to_sparse(), calibration=None)
    if sparse.W is None:
        return sparse
    W = csc_array(sparse.W)
    kept = _largest(np.abs(W.data), share)
    data, indices, ends = W.data[kept], W.indices[kept], np.concatenate([[0], np.cumsum(kept)])
    return replace(sparse, W=csc_array((data, indices, ends[W.indptr]), shape=W.shape))


def _largest(magnitudes: np.ndarray, share: float) -> np.ndarray:
    """Tell which numbers are kept; of those that are equal to the largest dropped one, the first are dropped."""
    n_dropped = int(np.count_nonzero(magnitudes == 0) + share * np.count_nonzero(magnitudes))
    if not n_dropped:
        return np.ones(magnitudes.size, bool)
    least = np.partition(magnitudes, n_dropped - 1)[n_dropped - 1]
    kept = magnitudes > least
    n_more = magnitudes.size - n_dropped - int(kept.sum())
    alike = np.flatnonzero(magnitudes == least)
    kept[alike[alike.size - n_more :]] = True
    return kept


def cost_of_pruning(
    model: Model,
    smaller: Model,
    X: Any,
    y: np.ndarray,
    calibrated: Callable[[Model], Model],
    pool: ThreadPool | None = None,
) -> dict[str, Any]:
    """Say how many weights are left, and what rows (validation's; perhaps none) say of the model before and after.

    Parameters
    ----------
    model, smaller : Model
        Before and after, neither calibrated.
    X, y
        Rows, as for ``evaluate``.
    calibrated : callable
        Gives a model its calibration, which both are measured with.
    pool : ThreadPool, optional
    """
    return {
        "n_before": n_weights(model),
        "n_after": n_weights(smaller),
        "before": _measures(calibrated(model), X, y, pool),
        "after": _measures(calibrated(smaller), X, y, pool),
    }


def n_weights(model: Model) -> int:
    """Count the weights that are not zero, without biases."""
    if model.W is None:
        return 0
    return int(np.count_nonzero(model.W.data if hasattr(model.W, "indptr") else model.W))


def _measures(model: Model, X: Any, y: np.ndarray, pool: ThreadPool | None) -> dict[str, float]:
    return evaluate(model, X, y, pool) if len(y) else {}

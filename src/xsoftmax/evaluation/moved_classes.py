"""How many classes a row moves: those on which an objective's exact gradient is not zero, or not negligible."""

from collections.abc import Callable
from typing import Any

import numpy as np

from xsoftmax.evaluation.likelihood import visit_whole_rows
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.kernels.full_softmax import slope_block
from xsoftmax.kernels.scores import ScoreBlock
from xsoftmax.model import Model


def moved_classes(
    model: Model, objective: Any, X: Any, y: np.ndarray, above: float = 0.0, pool: ThreadPool | None = None
) -> np.ndarray:
    """Count, for each row, the classes other than its own whose slope is above a value, int64 of shape (n_samples,).

    Parameters
    ----------
    model : Model
        Its scores are taken without correction: they are what the method trains.
    objective : NamedTuple
        Without variables of samples.
    X : sparse array or ndarray of shape (n_samples, n_features), float32
    y : ndarray of shape (n_samples,), int32
    above : float
        What a slope's absolute value must exceed.
    pool : ThreadPool, optional
        Of threads; the result does not depend on how many.
    """
    counts = np.empty(len(y), np.int64)

    def visit(rows: slice, sizes: np.ndarray) -> None:
        counts[rows] = np.count_nonzero(sizes > above, axis=1)

    _visit_slopes(model, objective, X, y, visit, pool)
    return counts


def shares_of_highest(
    model: Model, objective: Any, X: Any, y: np.ndarray, n: int, pool: ThreadPool | None = None
) -> np.ndarray:
    """Tell which share of the sizes of slopes on other classes than its own the n largest hold, for each row.

    Parameters are as of ``moved_classes``; of shape (n_samples,), NaN where no other class has a slope.
    """
    shares = np.empty(len(y))

    def visit(rows: slice, sizes: np.ndarray) -> None:
        total = sizes.sum(axis=1, dtype=np.float64)
        of_highest = np.sort(sizes, axis=1)[:, -n:].sum(axis=1, dtype=np.float64)
        shares[rows] = np.divide(of_highest, total, out=np.full(len(total), np.nan), where=total > 0)

    _visit_slopes(model, objective, X, y, visit, pool)
    return shares


def _visit_slopes(
    model: Model,
    objective: Any,
    X: Any,
    y: np.ndarray,
    visit: Callable[[slice, np.ndarray], None],
    pool: ThreadPool | None,
) -> None:
    """Show the sizes of slopes, that of a row's own class being 0, some whole rows at a time."""

    def visit_scores(block: ScoreBlock) -> None:
        n = len(block.scores)
        rows, slopes = slice(block.first_row, block.first_row + n), block.scores
        slope_block(objective, np.float32(1), y[rows], np.empty((n, 0)), np.arange(n), slopes)
        slopes[np.arange(n), y[rows]] = 0
        visit(rows, np.abs(slopes))

    visit_whole_rows(model.without_correction(), X, visit_scores, pool)

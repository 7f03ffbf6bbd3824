"""How many classes a row moves: those on which an objective's exact gradient is not zero, or not negligible."""

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

    def visit(block: ScoreBlock) -> None:
        n = len(block.scores)
        rows, slopes = slice(block.first_row, block.first_row + n), block.scores
        slope_block(objective, np.float32(1), y[rows], np.empty((n, 0)), np.arange(n), slopes)
        slopes[np.arange(n), y[rows]] = 0
        counts[rows] = np.count_nonzero(np.abs(slopes) > above, axis=1)

    visit_whole_rows(model.without_correction(), X, visit, pool)
    return counts

"""Whether confidence is accuracy: reliability curves and the expected calibration error (Guo et al., ICML 2017).

Rows are sorted by confidence, the probability of the class that the model thinks likeliest, and cut into bins of
equal count (Nguyen and O'Connor, EMNLP 2015), b = 1 ... B:

    ECE  =  sum_b  n_b / n  |accuracy_b - confidence_b|
"""

from typing import Any, NamedTuple

import numpy as np

from xsoftmax.evaluation.metrics import RowScores

BINS = 15


class Reliability(NamedTuple):
    """Per bin, confidence rising: the mean confidence, the share of rows that are right, and the number of rows."""

    confidence: np.ndarray
    accuracy: np.ndarray
    n: np.ndarray

    @property
    def error(self) -> float:
        """Expected calibration error; NaN without rows."""
        if not self.n.sum():
            return float("nan")
        return float(np.average(np.abs(self.accuracy - self.confidence), weights=self.n))

    def as_json(self) -> dict[str, list[Any]]:
        """Lists, by name."""
        return {name: values.tolist() for name, values in self._asdict().items()}


def reliability(scores: RowScores, n_bins: int = BINS) -> Reliability:
    """Bin rows by confidence; there are no more bins than rows."""
    order = np.argsort(scores.confidence, kind="stable")
    bins = np.array_split(order, max(1, min(n_bins, order.size))) if order.size else []
    right = scores.rank == 0
    confidence, accuracy = (np.array([values[rows].mean() for rows in bins]) for values in (scores.confidence, right))
    return Reliability(confidence, accuracy, np.array([rows.size for rows in bins], np.int64))

"""How far probabilities without features are from the classes' shares: Titsias, One-vs-each, NIPS 2016, figure 2c.

    sum_k |p(k) - N_k / N|

Without features the shares maximise the likelihood, and the one-vs-each bound as well (Proposition 2).
"""

from typing import Any

import numpy as np
from scipy.special import softmax

from xsoftmax.evaluation.likelihood import visit_whole_rows
from xsoftmax.kernels.scores import ScoreBlock
from xsoftmax.model import Model


def frequency_error(model: Model, X: Any, y: np.ndarray) -> float:
    """Give the sum of absolute differences, from 0 to 2; NaN for a model whose link is not the softmax.

    Parameters
    ----------
    model : Model
    X : sparse array or ndarray of shape (n_samples, 0), float32
        Rows without features, of which one is scored: all are alike.
    y : ndarray of shape (n_samples,), int32
        Their classes.
    """
    if model.link != "softmax" or not len(y):
        return float("nan")
    p = np.empty(model.n_classes)

    def visit(block: ScoreBlock) -> None:
        p[:] = softmax(block.scores[0].astype(np.float64))

    visit_whole_rows(model, X[:1], visit)
    return float(np.abs(p - np.bincount(y, minlength=model.n_classes) / len(y)).sum())

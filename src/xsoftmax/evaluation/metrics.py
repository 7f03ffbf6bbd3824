"""Metrics of a set of rows, as pure functions of what ``likelihood.score_rows`` gives."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from xsoftmax.evaluation.likelihood import RowScores, score_rows
from xsoftmax.internal.threads import Team
from xsoftmax.model import Model

PRECISIONS = (1, 3, 5)


def precision_at(k: int, rank: np.ndarray) -> float:
    """P@k with one true class per row: the mean over rows of (1 if it is among the top k) / k."""
    return float(np.mean(rank < k)) / k


def metrics_of(scores: RowScores) -> dict[str, float]:
    """Mean log-likelihood (nats), accuracy, P@1, P@3 and P@5; NaN where there are no rows."""
    if scores.rank.size == 0:
        return dict.fromkeys(["log_likelihood", "accuracy", *(f"p_at_{k}" for k in PRECISIONS)], float("nan"))
    return {
        "log_likelihood": float(scores.log_likelihood.mean()),
        "accuracy": precision_at(1, scores.rank),
        **{f"p_at_{k}": precision_at(k, scores.rank) for k in PRECISIONS},
    }


def evaluate(model: Model, X: Any, y: np.ndarray, team: Team | None = None) -> Mapping[str, float]:
    """Score rows by the model's link, in most cases the full softmax, and give their metrics."""
    return metrics_of(score_rows(model, X, y, team))

"""Metrics of a set of rows, as pure functions of what ``likelihood.score_rows`` gives."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from xsoftmax.evaluation import links
from xsoftmax.evaluation.likelihood import RowScores, score_rows, visit_whole_rows
from xsoftmax.model import Model
from xsoftmax.scores import ScoreBlock
from xsoftmax.threads import Team

PRECISIONS = (1, 3, 5)
# Where Ruiz et al. 2018 floor the log-likelihood of a row, in their published code.
PAPER_FLOOR = -26.0


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


def paper_log_likelihoods(model: Model, X: Any, y: np.ndarray, team: Team | None = None) -> dict[str, float]:
    """Mean log-likelihoods as Ruiz et al. 2018 report them, beside the exact one and never instead.

    ``log_likelihood_floored``: of exact values, none counted lower than -26. ``log_likelihood_sampled``: the same by
    importance sampling, for links whose integral the paper so estimates.
    """
    nothing = float("nan")
    exact = score_rows(model, X, y, team).log_likelihood
    found = {"log_likelihood_floored": float(np.maximum(exact, PAPER_FLOOR).mean()) if len(y) else nothing}
    link = links.load(model.link)
    if hasattr(link, "sampled_log_probabilities"):
        rng, values = np.random.default_rng(0), np.empty(len(y))

        def visit(block: ScoreBlock) -> None:
            rows = slice(block.first_row, block.first_row + len(block.scores))
            values[rows] = link.sampled_log_probabilities(block.scores, y[rows], rng)

        visit_whole_rows(model, X, visit)  # one thread: random numbers follow the order of rows
        found["log_likelihood_sampled"] = float(np.maximum(values, PAPER_FLOOR).mean()) if len(y) else nothing
    return found

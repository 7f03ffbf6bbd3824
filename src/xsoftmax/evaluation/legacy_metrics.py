"""Log-likelihoods as papers report them: measured beside the exact ones, and never instead.

Each function takes a model, rows X and their classes y, and gives a value per row, float64 of shape (n_samples,), or
None where the model's link has no such thing.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import logsumexp

from xsoftmax.evaluation import links
from xsoftmax.evaluation.likelihood import score_rows, visit_whole_rows
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.kernels.scores import ScoreBlock
from xsoftmax.model import Model

# Where Ruiz et al. 2018 floor the log-likelihood of a row, in their published code.
FLOOR = -26.0


def floored(model: Model, X: Any, y: np.ndarray, pool: ThreadPool | None = None) -> np.ndarray:
    """Exact values, none counted lower than -26 (Ruiz et al. 2018)."""
    return np.maximum(score_rows(model, X, y, pool).log_likelihood, FLOOR)


def sampled(model: Model, X: Any, y: np.ndarray, pool: ThreadPool | None = None) -> np.ndarray | None:
    """Estimate a link's integral by importance sampling, floored as well (Ruiz et al. 2018).

    One thread works: random numbers follow the order of rows.
    """
    link = links.load(model.link)
    if not hasattr(link, "sampled_log_probabilities"):
        return None
    rng, values = np.random.default_rng(0), np.empty(len(y))

    def visit(block: ScoreBlock) -> None:
        rows = slice(block.first_row, block.first_row + len(block.scores))
        values[rows] = link.sampled_log_probabilities(block.scores, y[rows], rng)

    visit_whole_rows(model, X, visit)
    return np.maximum(values, FLOOR)


def normalised_twice(model: Model, X: Any, y: np.ndarray, pool: ThreadPool | None = None) -> np.ndarray | None:
    """Take the softmax's probabilities for scores and normalise them again.

    The baselines of Fagan & Iyengar 2018, Table 3, were scored so in the authors' program. No value is above
    1 - log(K - 1 + e), however good the model: with 10 classes -1.46.
    """
    if model.link != "softmax":
        return None
    values = np.empty(len(y))

    def visit(block: ScoreBlock) -> None:
        rows = slice(block.first_row, block.first_row + len(block.scores))
        scores = block.scores.astype(np.float64)
        p = np.exp(scores - logsumexp(scores, axis=1, keepdims=True))
        values[rows] = p[np.arange(len(p)), y[rows]] - logsumexp(p, axis=1)

    visit_whole_rows(model, X, visit, pool)
    return values


KINDS: Mapping[str, Callable[..., np.ndarray | None]] = {
    "floored": floored,
    "sampled": sampled,
    "normalised-twice": normalised_twice,
}


def log_likelihoods(
    model: Model, X: Any, y: np.ndarray, kinds: Sequence[str], pool: ThreadPool | None = None
) -> dict[str, float]:
    """Mean log-likelihoods of some ``KINDS``, as ``log_likelihood_<kind>``; NaN where there are no rows."""
    found = {f"log_likelihood_{kind.replace('-', '_')}": KINDS[kind](model, X, y, pool) for kind in kinds}
    return {key: float(v.mean()) if len(v) else float("nan") for key, v in found.items() if v is not None}

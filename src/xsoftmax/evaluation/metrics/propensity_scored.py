"""PSP@k and PSnDCG@k: precision and nDCG that count rare labels more (Jain, Prabhu and Varma, KDD 2016).

    1 / p_k  =  1 + C (N_k + B)^-A,    C = (log N - 1) (B + 1)^A

is a class's inverse propensity, N_k of the N training rows being its own. A hit counts 1 / p. The sum over rows is
divided by that of the best possible first k, the true labels of highest 1 / p, as XMLRepository does.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from xsoftmax.evaluation.metrics import Metric, RowScores
from xsoftmax.evaluation.metrics.ndcg import discounts, ideal

NEEDED = ("label_sets", "label_ranks", "class_counts", "n_train", "propensity")


def inverse_propensity(counts: np.ndarray, n_train: int, a: float = 0.55, b: float = 1.5) -> np.ndarray:
    """Give 1 / p of each class, float64 of the shape of ``counts``.

    Parameters
    ----------
    counts : ndarray
        Training rows of each class.
    n_train : int
        Training rows of all.
    a, b : float
        A and B of Jain et al. 2016: 0.5 and 0.4 for Wikipedia's articles, 0.6 and 2.6 for Amazon's products.
    """
    return 1 + (np.log(n_train) - 1) * (b + 1) ** a * (counts + b) ** -a


def psp_at(k: int, rows: RowScores) -> float:
    """Divide the sum of 1 / p over the hits by the most it can be."""
    return _share(rows, lambda ranks: ranks < k)


def psndcg_at(k: int, rows: RowScores) -> float:
    """As ``psp_at``, hits discounted by their place, and each row by its ideal of ``ndcg``."""
    per_row = np.repeat(ideal(rows.label_sets, k), np.diff(rows.label_sets.starts))
    return _share(rows, lambda ranks: discounts(ranks, k) / per_row)


def _share(rows: RowScores, gains: Callable[[np.ndarray], np.ndarray]) -> float:
    """Sum 1 / p times the gains of labels at their ranks, as a share of the sum with the best ranks."""
    label_sets = rows.label_sets
    weights = inverse_propensity(rows.class_counts, rows.n_train, *rows.propensity)[label_sets.classes]
    counts = np.diff(label_sets.starts)
    row = np.repeat(np.arange(counts.size), counts)
    best = np.empty(weights.size, np.int64)
    best[np.lexsort((-weights, row))] = np.arange(weights.size) - label_sets.starts[:-1][row]
    return (weights * gains(rows.label_ranks)).sum() / (weights * gains(best)).sum()


MEMBERS = [
    *(Metric(f"psp_at_{k}", f"PSP@{k}", NEEDED, partial(psp_at, k), 0, 1) for k in (1, 3, 5)),
    *(
        Metric(f"psndcg_at_{k}", f"PSnDCG@{k}", NEEDED, partial(psndcg_at, k), 0, 1, at="end", shown=False)
        for k in (1, 3, 5)
    ),
]

"""nDCG@k: labels among the k best classes, discounted by their place r = 1 ... k (Jarvelin and Kekalainen, 2002).

nDCG@k  =  mean over rows of  sum_{labels, r <= k} 1 / log2(r + 1)  /  sum_{r <= min(k, labels)} 1 / log2(r + 1)
"""

from functools import partial
from typing import Any

import numpy as np

from xsoftmax.evaluation.metrics import Metric, RowScores


def discounts(ranks: np.ndarray, k: int) -> np.ndarray:
    """Give 1 / log2(r + 1) for ranks r - 1 below k, 0 for others: float64 of the shape of ``ranks``."""
    return np.where(ranks < k, 1 / np.log2(np.minimum(ranks, k) + 2.0), 0.0)


def ideal(label_sets: Any, k: int) -> np.ndarray:
    """Sum the discounts of the first min(k, labels) places of each row, float64 of shape (n_samples,)."""
    sums = np.cumsum(discounts(np.arange(k), k))
    return sums[np.minimum(np.diff(label_sets.starts), k) - 1]


def ndcg_at(k: int, rows: RowScores) -> float:
    """Average over rows."""
    return (
        np.add.reduceat(discounts(rows.label_ranks, k), rows.label_sets.starts[:-1]) / ideal(rows.label_sets, k)
    ).mean()


MEMBERS = [
    Metric(f"ndcg_at_{k}", f"nDCG@{k}", ["label_sets", "label_ranks"], partial(ndcg_at, k), 0, 1, shown=k == 5)
    for k in (1, 3, 5)
]

"""Precision at k, P@k: the share of labels among the k classes that score highest (Bhatia et al., XMLRepository)."""

from functools import partial

from xsoftmax.evaluation.metrics import Metric, RowScores


def precision_at(k: int, rows: RowScores) -> float:
    """Average over rows (labels among the first k) / k; at most 1 where rows have k labels or more."""
    return (rows.label_ranks < k).sum() / (k * rows.rank.size)


MEMBERS = [
    Metric(f"p_at_{k}", f"P@{k}", ["rank", "label_ranks"], partial(precision_at, k), least=0, greatest=1)
    for k in (1, 3, 5)
]

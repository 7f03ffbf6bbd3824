"""Precision at k, P@k: the share of right classes among the k that score highest, with one right class per row."""

from functools import partial

from xsoftmax.evaluation.metrics import Metric, RowScores


def precision_at(k: int, rows: RowScores) -> float:
    """Average over rows (1 if the true class is among the first k) / k."""
    return (rows.rank < k).mean() / k


MEMBERS = [
    Metric(f"p_at_{k}", f"P@{k}", ["rank"], partial(precision_at, k), least=0, greatest=1 / k, shown=k > 1)
    for k in (1, 3, 5)
]

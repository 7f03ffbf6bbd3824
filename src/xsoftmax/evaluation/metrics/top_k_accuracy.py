"""Top-k accuracy: the share of rows whose one label is among the k classes that score highest."""

from functools import partial

from xsoftmax.evaluation.metrics import Metric, RowScores


def top_k_accuracy(k: int, rows: RowScores) -> float:
    """Count the rows of a rank below k."""
    return (rows.rank < k).mean()


MEMBERS = [
    Metric(f"top_{k}_accuracy", f"top-{k} accuracy", ["rank", "one_label"], partial(top_k_accuracy, k), 0, 1)
    for k in (3, 5)
]

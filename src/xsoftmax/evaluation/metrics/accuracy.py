"""Accuracy: the share of rows whose true class scores highest; with several labels, one of them, as P@1 does."""

from xsoftmax.evaluation.metrics import Metric, RowScores


def accuracy(rows: RowScores) -> float:
    """Count the hits."""
    return (rows.rank == 0).mean()


MEMBERS = [Metric("accuracy", "accuracy", ["rank"], accuracy, least=0, greatest=1)]

"""Log-likelihood: the mean of log p(y | x), exact over all classes, in nats."""

from xsoftmax.evaluation.metrics import Metric, RowScores


def log_likelihood(rows: RowScores) -> float:
    """Average over rows."""
    return rows.log_likelihood.mean()


MEMBERS = [
    Metric(
        "log_likelihood", "log-likelihood", ["log_likelihood"], log_likelihood, float("-inf"), greatest=0, unit="nats"
    )
]

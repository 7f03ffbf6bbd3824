"""Which classes a model takes for which others: pairs of a true class and the one predicted, the commonest first."""

from typing import Any, NamedTuple

import numpy as np

from xsoftmax.data.dataset import Split
from xsoftmax.evaluation.prediction import top_k
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.model import Model

PAIRS = 20
# Wrong rows that are scored once more to see what they are taken for: a bound on time and memory.
ROWS = 10_000


class Confusions(NamedTuple):
    """Rows that are wrong, how many of them were looked at, and what they were taken for.

    Attributes
    ----------
    n_wrong, n_seen : int
    pairs : list of dict
        ``true`` and ``predicted``, names of classes; ``n``, the rows seen that are taken so; ``of``, all rows of the
        true class, right ones too.
    """

    n_wrong: int
    n_seen: int
    pairs: list[dict[str, Any]]


def confusions(model: Model, split: Split, rank: np.ndarray, pool: ThreadPool | None = None) -> Confusions:
    """Find what wrong rows are taken for; if there are more than ``ROWS``, evenly spaced ones are looked at.

    Parameters
    ----------
    model : Model
    split : Split
        Rows with one label each.
    rank : ndarray of shape (n_samples,), int64
        Rank of each row's class, as ``RowScores`` has it. A tie is wrong, but no pair where the true class is the
        first of those that tie.
    pool : ThreadPool, optional
        Of threads; results do not depend on how many.
    """
    wrong = np.flatnonzero(rank)
    seen = wrong[np.linspace(0, wrong.size - 1, min(wrong.size, ROWS)).astype(np.int64)]
    predicted = top_k(model, split.X[seen], 1, pool).classes[:, 0] if seen.size else seen
    taken = np.stack([split.y[seen], predicted], axis=1)
    pairs, n = np.unique(taken[taken[:, 0] != taken[:, 1]], axis=0, return_counts=True)
    commonest = np.argsort(-n, kind="stable")[:PAIRS]
    n_true = split.class_counts(model.n_classes)
    return Confusions(
        int(wrong.size),
        int(seen.size),
        [
            {
                "true": model.class_names[true],
                "predicted": model.class_names[other],
                "n": count,
                "of": int(n_true[true]),
            }
            for (true, other), count in zip(pairs[commonest].tolist(), n[commonest].tolist(), strict=True)
        ],
    )

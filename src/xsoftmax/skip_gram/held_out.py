"""What vectors are worth on pairs that they were not trained on: the exact softmax, and negative sampling's loss."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from xsoftmax.skip_gram.collapsed import SCORES_AT_ONCE, softmax_slopes
from xsoftmax.skip_gram.counts import counted

DRAWS_SEED = 12345


@dataclass(frozen=True)
class HeldOut:
    """Means over pairs, in nats.

    Attributes
    ----------
    log_likelihood : float
        Of log p(y | x) under the softmax of the scores, exact.
    sampled_loss : float
        Of ``softplus(-s_xy) + sum over n negatives softplus(s_xk)``; the negatives of each x are drawn once, and the
        same for all models of these words.
    """

    log_likelihood: float
    sampled_loss: float


def measure(
    inputs: np.ndarray,
    outputs: np.ndarray,
    pairs: csr_array,
    counts: np.ndarray,
    negatives: int = 5,
    draws: int = 200,
) -> HeldOut:
    """Measure vectors, float32 of shape (n_words, dimension), on the collapsed counts of some text.

    Parameters
    ----------
    pairs : csr_array of shape (n_words, n_words)
    counts : ndarray of shape (n_words,), int64
        Of the training text, by whose power .75 negatives are drawn.
    negatives, draws : int
        Negatives of a pair, and how many are drawn for each x, over whose mean the loss is.
    """
    known, n = counted(pairs), len(inputs)
    weights = counts.astype(np.float64) ** 0.75
    drawn = np.random.default_rng(DRAWS_SEED).choice(n, (n, draws), p=weights / weights.sum())
    total = sampled = 0.0
    step = max(1, SCORES_AT_ONCE // n)
    for first in range(0, n, step):
        scores = inputs[first : first + step] @ outputs.T
        rows = np.arange(first, first + len(scores))
        noise = np.logaddexp(0, np.take_along_axis(scores, drawn[rows], axis=1)).mean(axis=1, dtype=np.float64)
        of_true = [
            known.shares[slice(*known.starts[x : x + 2])]
            @ np.logaddexp(0, -scores[x - first, known.neighbours[slice(*known.starts[x : x + 2])]])
            for x in rows
        ]
        sampled += float(np.sum(of_true, dtype=np.float64) + negatives * (known.of_inputs[rows] @ noise))
        total += softmax_slopes(scores, first, known)
    return HeldOut(-total, sampled)

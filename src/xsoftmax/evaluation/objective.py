"""The value of what a method minimises, over all classes: the loss or bound that it trains on, under its own name."""

import math
from typing import Any

import numpy as np

from xsoftmax.evaluation.likelihood import visit_whole_rows
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.kernels.full_softmax import loss_block
from xsoftmax.kernels.scores import ScoreBlock
from xsoftmax.model import Model
from xsoftmax.proposals import Proposal


def mean_loss(
    model: Model,
    objective: Any,
    proposal: Proposal,
    X: Any,
    labels: Any,
    auxiliary: np.ndarray,
    pool: ThreadPool | None = None,
) -> float:
    """Mean of the objective's own loss over rows, its sums taken over all classes, nothing sampled.

    Parameters
    ----------
    model : Model
        Its scores are taken without correction: they are what the method trains.
    objective : NamedTuple
    proposal : Proposal
        The distribution under which the objective may have an expectation.
    X : sparse array or ndarray of shape (n_samples, n_features), float32
    labels : ndarray of shape (n_samples,), int32, or LabelLists
    auxiliary : ndarray of shape (n_labels, n_auxiliary), float64
    pool : ThreadPool, optional
        Of threads; the result does not depend on how many.
    """
    K = model.n_classes
    unused = np.empty((1, 0), np.float32)
    uniform = unused if objective.excludes_true else np.full((1, K), -math.log(K), np.float32)
    losses = np.empty(X.shape[0])

    def visit(block: ScoreBlock) -> None:
        rows = slice(block.first_row, block.first_row + len(block.scores))
        log_q = None if objective.excludes_true else proposal.log_q(X[rows], 0, K)
        q = uniform if log_q is None else np.ascontiguousarray(log_q, np.float32)
        losses[rows] = loss_block(objective, labels, auxiliary, np.arange(rows.start, rows.stop), block.scores, q)

    visit_whole_rows(model.without_correction(), X, visit, pool)
    return losses.sum() / len(losses)

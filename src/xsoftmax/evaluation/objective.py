"""The value of what a method minimises, over all classes: the loss or bound that it trains on, under its own name."""

import math
from typing import Any

import numpy as np

from xsoftmax.kernels.minibatch import loss_block
from xsoftmax.model import Model
from xsoftmax.proposals import Proposal

BLOCK_SCORES = 2**24


def mean_loss(model: Model, objective: Any, proposal: Proposal, X: Any, y: np.ndarray, states: np.ndarray) -> float:
    """Mean of the objective's own loss over rows, its sums taken over all classes, nothing sampled.

    Parameters
    ----------
    model : Model
        Its scores are taken without correction: they are what the method trains.
    objective : NamedTuple
    proposal : Proposal
        The distribution under which the objective may have an expectation.
    X : sparse array or ndarray of shape (n_samples, n_features), float32
    y : ndarray of shape (n_samples,), int32
    states : ndarray of shape (n_samples, n_states), float64
    """
    scores_only = model.without_correction()
    uniform = np.full((1, model.n_classes), -math.log(model.n_classes), np.float32)
    total = 0.0
    rows = max(1, BLOCK_SCORES // model.n_classes)
    for block in scores_only.score_blocks(X, classes_at_a_time=model.n_classes, rows_at_a_time=rows):
        samples = np.arange(block.first_row, block.first_row + len(block.scores))
        log_q = proposal.log_q(X[block.first_row : block.first_row + len(block.scores)], 0, model.n_classes)
        q = uniform if log_q is None else np.ascontiguousarray(log_q, np.float32)
        total += loss_block(objective, y, states, samples, block.scores, q).sum()
    return total / len(y)

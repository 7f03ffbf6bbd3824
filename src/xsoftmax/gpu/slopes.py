"""Derivatives of an objective's loss by scores, from its array form: torch differentiates it."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from xsoftmax.objectives import ScoredClasses


class Slopes(NamedTuple):
    """Derivatives by the score of the true class, (n,), and of the others, (n, m); and what is kept of each sample.

    ``state`` is float64 of shape (n, n_auxiliary), after the step.
    """

    of_true: Tensor
    of_others: Tensor
    state: Tensor


def slopes_of(
    objective: Any,
    rate: float,
    state: Tensor,
    draws: ScoredClasses,
    noise: Tensor | None = None,
    threshold: float | None = None,
) -> Slopes:
    """Differentiate the loss of some samples, of which the state moves as in a step.

    Parameters
    ----------
    objective : NamedTuple
        As fitted to the data.
    rate : float
        Learning rate.
    state : Tensor of shape (n, n_auxiliary), float64
    draws : ScoredClasses
        Of tensors; what counts nothing has weight 0, whatever its score.
    noise : Tensor of shape (n, n_numbers), float64, optional
        Uniform numbers, for an objective that draws some.
    threshold : float, optional
        U-max's: an objective's bound is lifted first.
    """
    counts = draws.weights > 0
    scores = torch.where(counts, draws.scores, draws.score_true[:, None])
    log_q = torch.where(counts, draws.log_q, draws.log_q_true[:, None])
    draws = draws._replace(scores=scores, log_q=log_q)
    lifting = {} if threshold is None else {"threshold": threshold}
    with torch.no_grad():
        at, after = objective.prepare(torch, rate, state, draws, noise, **lifting)
    leaves = (draws.score_true.detach().requires_grad_(), scores.detach().requires_grad_())
    with torch.enable_grad():
        value = objective.value(torch, at, draws._replace(score_true=leaves[0], scores=leaves[1]))
        total = value.sum()
    of_true, of_others = torch.autograd.grad(total, leaves, materialize_grads=True)
    return Slopes(of_true, torch.where(counts, of_others, 0.0), after.to(state.dtype))

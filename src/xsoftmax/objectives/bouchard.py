"""Bouchard's bound: Efficient bounds for the softmax function, 2007; as in Titsias 2016, eq. 12.

    L = alpha - s_y + sum_k softplus(s_k - alpha)  >=  -log p(y | x),  the sum over all classes

One alpha per sample, solved for at every look at it: the bound is convex in alpha, and least where

    sum_k sigma(s_k - alpha) = 1.

With t the highest score and r the highest of the others, max(r, lowest + log(K - 1)) <= alpha <= t + log(K - 1).
Cost of a step: all n_classes scores, one exponential each, and a few divisions each for alpha.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.mathematics import exp, sigmoid, softplus
from xsoftmax.kernels.protocol import gradient, loss
from xsoftmax.objectives import ScoredClasses, _arrays, objective

NEWTON_STEPS = 60
HALVINGS = 60


@objective(
    title="Bouchard bound",
    target="bound",
    labels_compete=True,
    excludes_true=True,
    needs_all_classes=True,
    n_auxiliary=1,
    solves_auxiliary=True,
)
class Bouchard(NamedTuple):
    """No parameters."""

    def initial_auxiliary(self, n_samples: int, n_classes: int) -> np.ndarray:
        """Give the alpha of every sample where all scores are 0, float64 of shape (n_samples, 1)."""
        return np.full((n_samples, 1), math.log(n_classes - 1))

    def settle(self, xp: Any, state: Any, draws: ScoredClasses) -> Any:
        """Return the best alpha, of shape (n, 1): see ``xsoftmax.objectives``.

        As 1 - sigma(t - alpha) = sigma(alpha - t), the equation is solved with the highest score t on its right, in
        logarithms, by halving a bracket.
        """
        others = xp.where(draws.weights > 0, draws.scores, xp.full_like(draws.scores, -float("inf")))
        scores = _arrays.descending(xp, xp.concat([draws.score_true[:, None], others], axis=1))
        highest, rest = scores[:, :1], scores[:, 1:]
        low, high = rest[:, :1], highest + math.log(rest.shape[1])
        for _ in range(HALVINGS):
            alpha = 0.5 * (low + high)
            left = _arrays.special(xp).logsumexp(-_arrays.softplus(xp, alpha - rest), 1)[:, None]
            too_low = left > -_arrays.softplus(xp, highest - alpha)
            low, high = xp.where(too_low, alpha, low), xp.where(too_low, high, alpha)
        return 0.5 * (low + high)

    def prepare(self, xp: Any, rate: Any, state: Any, draws: ScoredClasses, noise: Any) -> tuple[Any, Any]:
        """Return where a step differentiates, and the state after it: see ``xsoftmax.objectives``."""
        alpha = self.settle(xp, state, draws)
        return alpha, alpha

    def value(self, xp: Any, at: Any, draws: ScoredClasses) -> Any:
        """Return the loss of n samples: see ``xsoftmax.objectives``."""
        of_true = _arrays.softplus(xp, draws.score_true - at[:, 0])
        of_others = xp.sum(draws.weights * _arrays.softplus(xp, draws.scores - at), axis=1)
        return at[:, 0] - draws.score_true + of_true + of_others


MEMBER = Bouchard


# Every class is there once, so the draws' weights are all 1 and not looked at.


@implements(loss, Bouchard, allocates=True)
def _loss(objective, state, score_true, log_q_true, draws):
    top, first, second, lowest = _ends(score_true, draws.scores)
    ratios = np.empty_like(draws.scores)
    _fill_ratios(score_true, draws.scores, top, second, ratios)
    alpha = _solve(np.float64(first), np.float64(second), np.float64(lowest), ratios, state[0])
    state[0] = alpha
    odds = math.exp(second - alpha)
    total = softplus(first - alpha)
    for j in range(ratios.size):
        total += math.log1p(odds * ratios[j])
    return total + alpha - score_true


@implements(gradient, Bouchard, allocates=True)
def _gradient(objective, rate, state, score_true, log_q_true, draws):
    top, first, second, lowest = _ends(score_true, draws.scores)
    _fill_ratios(score_true, draws.scores, top, second, draws.out)
    alpha = _solve(np.float64(first), np.float64(second), np.float64(lowest), draws.out, state[0])
    state[0] = alpha
    as_scores = draws.scores.dtype.type
    one, odds = as_scores(1), as_scores(math.exp(second - alpha))
    for j in range(draws.out.size):
        odd = odds * draws.out[j]
        draws.out[j] = odd / (one + odd)
    if top < 0:
        return -sigmoid(as_scores(alpha - first))
    of_true = draws.out[top]
    draws.out[top] = sigmoid(as_scores(first - alpha))
    return of_true - one


@njit(**OPTIONS)
def _ends(score_true, scores):
    """Place of the highest score among ``scores`` (-1: the true class has it); the two highest, and the lowest."""
    top, first, lowest = -1, score_true, score_true
    second = scores.dtype.type(-np.inf)
    for j in range(scores.size):
        s = scores[j]
        if s > first:
            top, first, second = j, s, first
        elif s > second:
            second = s
        lowest = min(lowest, s)
    return top, first, second, lowest


@njit(**OPTIONS)
def _fill_ratios(score_true, scores, top, second, ratios):
    """Write e^(s - second) of all classes but the highest, in whose place the true class is put."""
    for j in range(scores.size):
        ratios[j] = exp(scores[j] - second)
    if top >= 0:
        ratios[top] = exp(score_true - second)


@njit(**OPTIONS)
def _solve(first, second, lowest, ratios, alpha):
    """Solve for alpha, from a guess: Newton within the bracket, halving it where a step leads out.

    As 1 - sigma(t - alpha) = sigma(alpha - t), the equation is the same without the highest score on its left,
    and keeps its digits if t is far above. In logarithms, with c = e^(r - alpha) and p_k = e^(s_k - r), it is

        g(alpha) = r - alpha + log sum_k p_k / (1 + c p_k) + softplus(t - alpha) = 0,  -2 <= g' <= -1/2.
    """
    spread = math.log(ratios.size)
    low, high = max(second, lowest + spread), first + spread
    if not low <= alpha <= high:
        alpha = 0.5 * (low + high)
    # The error after a change is about its square.
    tolerance = math.sqrt(np.finfo(ratios.dtype).eps)
    for _ in range(NEWTON_STEPS):
        residual, slope = _residual(first, second, ratios, alpha)
        if residual > 0:
            low = alpha
        else:
            high = alpha
        following = alpha - residual / slope
        if not low <= following <= high:
            following = 0.5 * (low + high)
        change = abs(following - alpha)
        alpha = following
        if change <= tolerance:
            break
    return alpha


@njit(**OPTIONS)
def _residual(first, second, ratios, alpha):
    """Left side of the equation, and its derivative."""
    one, odds = ratios.dtype.type(1), ratios.dtype.type(math.exp(second - alpha))
    total = squares = ratios.dtype.type(0)
    for j in range(ratios.size):
        part = ratios[j] / (one + odds * ratios[j])
        total += part
        squares += part * part
    residual = second - alpha + math.log(total) + softplus(first - alpha)
    return residual, odds * squares / total - 1.0 - sigmoid(first - alpha)

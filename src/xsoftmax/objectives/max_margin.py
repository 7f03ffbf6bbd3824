"""Smoothed max-margin: Yen et al., Loss decomposition for fast learning in large output spaces, ICML 2018, eq. 10.

    L = max_x sum_k x_k (s_k + 1 - s_y) - (mu / 2) (sum_k x_k^2 + t^2),  x_k >= 0,  t = sum_k x_k <= 1,  k != y

It lies at most mu below the hinge [max_k s_k + 1 - s_y]_+, whose margin the paper prints with the sign reversed. Its
slopes are x and -t (eq. 11): a projection onto the bi-simplex, zero for all classes but a few at the top. So a search
may find these (the paper's algorithm 1); what it did not find is not there, where the paper scores it as 0. Of a row
with labels P, the margin is that of the lowest label over the highest other class (eq. 3, its sign corrected), and
there are y_k of the labels, which sum to t, too. Cost of a step: all n_classes scores, or those found, and a few sums
over them.
"""

from typing import Any, NamedTuple

import numpy as np

from xsoftmax.kernels.bisimplex import threshold, thresholds
from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.protocol import floor, gradient, gradient_of_set, loss, loss_of_set
from xsoftmax.objectives import ScoredClasses, _arrays, objective


@objective(
    title="smoothed max-margin loss",
    target="loss",
    excludes_true=True,
    needs_all_classes=True,
    takes_found=True,
    takes_sets=True,
)
class MaxMargin(NamedTuple):
    """Parameters: ``smoothing``, the paper's mu."""

    smoothing: float = 1.0

    def problem(self) -> str:
        """Tell what is wrong with the parameters."""
        return "" if self.smoothing > 0 else f"smoothing is {self.smoothing:g}; set it above 0, to 1 as in the paper"

    def settle(self, xp: Any, state: Any, draws: ScoredClasses) -> Any:
        """Return the x of the highest value, of shape (n, m): see ``xsoftmax.objectives``.

        x_k = [d_k - theta]_+ with d_k = (s_k + 1 - s_y) / mu. Of what theta would be if r classes had a slope, with
        t below 1 or at 1, none is above the right one.
        """
        d = (_arrays.gaps(draws) + 1) / self.smoothing
        d = xp.where(draws.weights > 0, d, xp.full_like(d, -float("inf")))
        sums = xp.cumsum(_arrays.descending(xp, d), axis=1)
        r = xp.cumsum(xp.ones_like(sums), axis=1)
        thetas = [xp.zeros_like(sums[:, :1]), sums / (r + 1), (sums - 1) / r]
        excess = d - _arrays.highest(xp, xp.concat(thetas, axis=1))[:, None]
        return xp.where(excess > 0, excess, xp.zeros_like(excess))

    def value(self, xp: Any, at: Any, draws: ScoredClasses) -> Any:
        """Return the loss of n samples: see ``xsoftmax.objectives``."""
        squares = xp.sum(at**2, axis=1) + xp.sum(at, axis=1) ** 2
        return xp.sum(at * (_arrays.gaps(draws) + 1), axis=1) - 0.5 * self.smoothing * squares


MEMBER = MaxMargin


@implements(floor, MaxMargin)
def _floor(objective, score_true):
    return score_true - np.float32(1)


# Every class is there once, with weight 1; of those found, places that are left over have weight 0.


@implements(loss, MaxMargin, allocates=True)
def _loss(objective, state, score_true, log_q_true, draws):
    inverse = draws.scores.dtype.type(1.0 / objective.smoothing)
    workspace = np.empty_like(draws.scores)  # out may be the scores
    highest, gap, theta = threshold(score_true, draws.scores, draws.weights, inverse, workspace)
    linear = squares = t = 0.0
    for j in range(draws.scores.size):
        below = (draws.scores[j] - highest) * inverse
        if below > theta and draws.weights[j] > 0:
            x = np.float64(below - theta)
            linear += x * (below + gap)
            squares += x * x
            t += x
    return objective.smoothing * (linear - 0.5 * (squares + t * t))


@implements(gradient, MaxMargin)
def _gradient(objective, rate, state, score_true, log_q_true, draws):
    zero = draws.scores.dtype.type(0)
    inverse = draws.scores.dtype.type(1.0 / objective.smoothing)
    highest, _, theta = threshold(score_true, draws.scores, draws.weights, inverse, draws.out)
    t = zero
    for j in range(draws.scores.size):
        is_there = draws.weights[j] > zero
        draws.out[j] = max((draws.scores[j] - highest) * inverse - theta, zero) if is_there else zero
        t += draws.out[j]
    return -t


@implements(loss_of_set, MaxMargin)
def _loss_of_set(objective, share, n_true, places):
    inverse, value = 1.0 / objective.smoothing, 0.0
    theta, eta = thresholds(places.scores, places.weights, n_true, inverse)
    for j in range(places.scores.size):
        d = -places.scores[j] * inverse if j < n_true else (places.scores[j] + 1.0) * inverse
        x = max(d - (eta if j < n_true else theta), 0.0)
        if x > 0 and (j < n_true or places.weights[j] > 0):
            value += x * (d - 0.5 * x)
    return objective.smoothing * value


@implements(gradient_of_set, MaxMargin)
def _gradient_of_set(objective, share, n_true, places):
    inverse = 1.0 / objective.smoothing
    theta, eta = thresholds(places.scores, places.weights, n_true, inverse)
    for j in range(places.scores.size):
        if j < n_true:
            places.out[j] = -max(-places.scores[j] * inverse - eta, 0.0)
        elif places.weights[j] > 0:
            places.out[j] = max((places.scores[j] + 1.0) * inverse - theta, 0.0)
        else:
            places.out[j] = 0

"""What an objective, a proposal and an optimizer must say for the loops to be composed from them.

Each function here is a name to which the files of the three axes attach compiled code for their NamedTuple, with
``xsoftmax.kernels.dispatch.implements``. ``state`` is float64, what the objective keeps for this sample.

A step draws classes, scores them and asks for coefficients c; then row k of the weights moves along -c_k x.
Where an objective has a sum over classes, it writes sum_j draws.weights[j] f(draws.scores[j]): the weights make
that an unbiased estimate of the sum over all other classes, or of the mean under the proposal, whichever the
objective asks for.
"""

from typing import NamedTuple

import numpy as np
from numba.extending import overload


class Draws(NamedTuple):
    """The classes drawn in one step; arrays of shape (n_sampled,), float32 but for the first."""

    classes: np.ndarray
    log_q: np.ndarray
    weights: np.ndarray
    scores: np.ndarray
    out: np.ndarray


# An objective says


def loss(objective, state, score_true, log_q_true, draws):
    """Value of one sample's loss, float64."""
    raise TypeError("compiled code only")


def gradient(objective, rate, state, score_true, log_q_true, draws):
    """Write the derivatives by ``draws.scores`` to ``draws.out``, return that by ``score_true``; move ``state``."""
    raise TypeError("compiled code only")


def raise_bound(objective, threshold, state, score_true, draws):
    """Lift ``state`` where it lies more than ``threshold`` below what these scores prove (for U-max)."""
    raise TypeError("compiled code only")


def proximal(objective, rate, state, squared_norm, score_true, draws):
    """As ``gradient``, but at the end point of the step, for one draw; the coefficients include the rate."""
    raise TypeError("compiled code only")


# A proposal says


def draw(proposal, i, excluded, rng, draws):
    """Draw classes for sample ``i`` from random state ``rng``, with the log-probability of each.

    A proposal that can do it at no cost leaves out the class ``excluded`` (-1: none) and then draws without
    replacement, ``log_q`` being that of one draw; another may draw it.
    """
    raise TypeError("compiled code only")


def log_probability(proposal, i, k):
    """Log-probability with which class ``k`` is drawn for sample ``i``, float32."""
    raise TypeError("compiled code only")


def inverse_probability(proposal, log_q):
    """e^-log_q, in float32, by the cheapest way."""
    raise TypeError("compiled code only")


# An optimizer says


def coefficients(optimizer, objective, features, i, rate, state, score_true, log_q_true, draws):
    """Fill ``draws.out`` with the coefficients of the drawn classes; return that of the true class."""
    raise TypeError("compiled code only")


def row(optimizer, features, W, k):
    """View of the weights of class ``k``, of shape (n_features + 1,)."""
    raise TypeError("compiled code only")


def move(optimizer, features, i, rate, coefficient, W, k):
    """Move the weights of class ``k`` by one coefficient, and whatever is accumulated beside them."""
    raise TypeError("compiled code only")


def move_block(optimizer, rate, gradient, w, accumulator):
    """Move weights by their gradient, element by element: arrays of one shape, (n_classes,)."""
    raise TypeError("compiled code only")


def excludes_true(objective) -> bool:
    """Tell whether its sum is over the other classes (draws of the true one count nothing) or under the proposal."""
    raise TypeError("compiled code only")


def uses_log_q(objective) -> bool:
    """Tell whether it looks at the proposal's log-probabilities."""
    raise TypeError("compiled code only")


@overload(excludes_true)
def _excludes_true(objective):
    flag = objective.instance_class.excludes_true
    return lambda objective: flag


@overload(uses_log_q)
def _uses_log_q(objective):
    flag = objective.instance_class.uses_log_q
    return lambda objective: flag

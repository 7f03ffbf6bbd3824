"""Samples that have several labels: what a step along one of them comes to, whoever takes it.

A sample's candidates are its labels, the positives, and behind them other classes. An objective meets the positives
one after the other, as it meets a sample of one class, and the sample's loss is the mean or the sum of these losses.
The other positives are no negatives: their weight is 0, or 1 where the objective's scores are normalised over all
classes, so that the loss of positive k is -log p(k | x). An objective that ``takes_sets`` sees all positives at once.

A sample of one class has an array of classes, int32, for ``labels``; those of several have ``LabelLists``. The type
chooses the code.
"""

from typing import Any, NamedTuple

import numpy as np

from xsoftmax.internal.compiled import njit, overload
from xsoftmax.kernels import LEAN, OPTIONS
from xsoftmax.kernels.dispatch import NO_COUNTS, declared, lean
from xsoftmax.kernels.draws import part_of
from xsoftmax.kernels.protocol import (
    Candidates,
    Draws,
    coefficients,
    excludes_true,
    gradient_of_set,
    labels_compete,
    loss,
    loss_of_set,
)


class LabelLists(NamedTuple):
    """Labels of samples: those of sample i are ``classes[starts[i]:starts[i + 1]]``, one at least, in rising order.

    ``averages``: a sample's loss is the mean of the losses of its labels; otherwise it is their sum.
    """

    starts: np.ndarray
    classes: np.ndarray
    averages: bool


class AlongGradient(NamedTuple):
    """Stands for an optimizer that needs no more than a gradient."""


AlongGradient.needs = "gradient"  # type: ignore[attr-defined]


def has_several(labels: Any) -> bool:
    """Tell whether samples may have several labels, by the numba type of what holds them."""
    return getattr(labels, "instance_class", None) is LabelLists


@njit(inline="always", **LEAN)
def labels_of(labels, i):
    """Labels of sample ``i`` of ``LabelLists``: a view, int32."""
    return labels.classes[labels.starts[i] : labels.starts[i + 1]]


@njit(**LEAN)
def share_of(labels, n_true):
    """What the loss of one of so many labels counts in the loss of their sample, float32."""
    return np.float32(1) / np.float32(n_true) if labels.averages else np.float32(1)


@njit(**LEAN)
def holds(labels, k):
    """Tell whether a class is among the few labels of a sample."""
    found = False
    for label in labels:
        found |= label == k
    return found


@njit(**OPTIONS)
def places_like(scores):
    """Make places for as many candidates as there are scores, in their precision."""
    return Draws(
        np.empty(scores.size, np.int64),
        np.zeros_like(scores),
        np.ones_like(scores),
        np.empty_like(scores),
        np.empty_like(scores),
        np.zeros(1, np.uint64),
    )


@njit(inline="always", **LEAN)
def as_candidates(places):
    """View places as the candidates of a step, the first of them as the true class."""
    n = places.classes.size
    return Candidates(places.classes, places.weights, places.scores, places.out, part_of(places, 1, n))


@lean
def coefficients_of_set(objective, optimizer, features, i, rate, states, log_q_true, share, places, n_true, total):
    """Fill ``places.out`` with the coefficients of all candidates of sample ``i``, which are scored.

    Parameters
    ----------
    states : ndarray of shape (n_true, n_auxiliary), float64
    log_q_true : ndarray of shape (n_true,), float32
    share : float32
        What the loss of one positive counts in that of the sample.
    places : Draws
        The positives, ``n_true`` of them, then the others, weighed.
    total : ndarray, float32 or float64
        Room for as many numbers as there are places.
    """


@overload(coefficients_of_set, jit_options=NO_COUNTS)
def _coefficients_of_set(objective, optimizer, features, i, rate, states, log_q_true, share, places, n_true, total):
    if getattr(objective.instance_class, "takes_sets", False):

        def together(objective, optimizer, features, i, rate, states, log_q_true, share, places, n_true, total):
            gradient_of_set(objective, share, n_true, places)

        return together
    # The coefficients of a proximal step hold the rate, of which a positive has its share.
    proximal = optimizer.instance_class.needs == "proximal"

    def one_by_one(objective, optimizer, features, i, rate, states, log_q_true, share, places, n_true, total):
        n = places.classes.size
        rest = part_of(places, n_true, n)
        others = part_of(places, 1, n)
        for j in range(n):
            total[j] = 0
        compete = labels_compete(objective) and not proximal
        for t in range(n_true):
            places.weights[t] = np.float32(compete)
        for t in range(n_true):
            _swap(places, t)
            score = places.scores[0]
            if excludes_true(objective) and not proximal:
                own = coefficients(optimizer, objective, features, i, rate, states[t], score, log_q_true[t], others)
                for j in range(1, n):
                    total[j if j != t else 0] += places.out[j]
            else:
                part = rate * share if proximal else rate
                own = coefficients(optimizer, objective, features, i, part, states[t], score, log_q_true[t], rest)
                for j in range(n_true, n):
                    total[j] += places.out[j]
            total[t] += own
            _swap(places, t)
        for j in range(n):
            places.out[j] = total[j] if proximal else share * total[j]
        for t in range(n_true):
            places.weights[t] = np.float32(1)

    return one_by_one


@njit(**LEAN)
def _swap(places, t):
    """Put positive ``t`` first, or back."""
    places.classes[0], places.classes[t] = places.classes[t], places.classes[0]
    places.scores[0], places.scores[t] = places.scores[t], places.scores[0]


@declared
def loss_of_labels(objective, states, log_q_true, share, places, n_true, every):
    """Loss of a sample of several labels, float64.

    ``places`` hold the positives and all other classes, with weight 1; ``every`` all classes with the proposal's
    probabilities as weights, for an objective that is a mean under it.
    """


@overload(loss_of_labels)
def _loss_of_labels(objective, states, log_q_true, share, places, n_true, every):
    if getattr(objective.instance_class, "takes_sets", False):

        def together(objective, states, log_q_true, share, places, n_true, every):
            return loss_of_set(objective, share, n_true, places)

        return together

    def one_by_one(objective, states, log_q_true, share, places, n_true, every):
        value, others = 0.0, part_of(places, 1, places.classes.size)
        for t in range(n_true):
            places.weights[t] = labels_compete(objective)
        for t in range(n_true):
            _swap(places, t)
            looked_at = others if excludes_true(objective) else every
            value += loss(objective, states[t], places.scores[0], log_q_true[t], looked_at)
            _swap(places, t)
        return share * value

    return one_by_one


@njit(**OPTIONS)
def gather_set(labels, scores, places):
    """Put a sample's labels, then all other classes, into ``places``, with their scores and weight 1."""
    for t in range(labels.size):
        places.classes[t] = labels[t]
        places.scores[t] = scores[labels[t]]
    n, t = labels.size, 0
    for k in range(scores.size):
        if t < labels.size and labels[t] == k:
            t += 1
        else:
            places.classes[n] = k
            places.scores[n] = scores[k]
            n += 1
    for j in range(n):
        places.weights[j] = 1

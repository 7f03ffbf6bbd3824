"""What the weights of a proposal's draws add up to, class by class."""

import numpy as np
from numba import njit

from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.draws import empty_draws
from xsoftmax.kernels.protocol import draw, n_exact
from xsoftmax.kernels.random import start, stream

KEY = np.uint64(stream(5, 6))


@njit(**OPTIONS)
def _add_steps(proposal, view, i, excluded, key, n_steps, n_sampled, total, squares, drawn):
    draws = empty_draws(n_exact(proposal) + n_sampled)
    step = np.empty(total.size)
    for t in range(n_steps):
        draw(proposal, view, i, excluded, np.float32(-np.inf), start(key, t), draws)
        step[:] = 0.0
        for j in range(draws.classes.size):
            step[draws.classes[j]] += draws.weights[j]
            if j >= n_exact(proposal):
                drawn[draws.classes[j]] += 1
        for k in range(total.size):
            total[k] += step[k]
            squares[k] += step[k] * step[k]


def mean_weights(kernel, i, excluded, n_classes, n_sampled, n_steps=40_000, view=None):
    """Mean weight that each class gets in a step, its standard error, and how often each was drawn."""
    total, squares, drawn = np.zeros(n_classes), np.zeros(n_classes), np.zeros(n_classes)
    _add_steps(kernel, view, np.int64(i), np.int64(excluded), KEY, n_steps, n_sampled, total, squares, drawn)
    mean = total / n_steps
    return mean, np.sqrt(np.maximum(squares / n_steps - mean**2, 0) / n_steps), drawn


def assert_each_counts_one(mean, error, but=()):
    others = np.setdiff1d(np.arange(mean.size), but)
    assert (np.abs(mean[others] - 1) <= 5 * error[others] + 1e-5).all(), (mean - 1) / np.maximum(error, 1e-9)


@njit(**OPTIONS)
def _count_steps(proposal, view, i, excluded, key, n_steps, n_sampled, steps_with):
    draws = empty_draws(n_exact(proposal) + n_sampled)
    seen = np.full(steps_with.size, -1)
    for t in range(n_steps):
        draw(proposal, view, i, excluded, np.float32(-np.inf), start(key, t), draws)
        for j in range(draws.classes.size):
            k = draws.classes[j]
            if draws.weights[j] > 0 and seen[k] < t:
                steps_with[k] += 1
                seen[k] = t


def share_of_steps(kernel, i, excluded, n_classes, n_sampled, n_steps=10_000, view=None):
    """Share of the steps in which each class is looked at."""
    steps_with = np.zeros(n_classes)
    _count_steps(kernel, view, np.int64(i), np.int64(excluded), KEY, n_steps, n_sampled, steps_with)
    return steps_with / n_steps

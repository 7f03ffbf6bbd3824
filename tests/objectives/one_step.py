"""One step of an objective's compiled code on draws that a test names, and many through the compiled loop."""

import numpy as np
from numba import njit

from kernels.layouts import laid_out
from kernels.loops import run_steps
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.protocol import Clock, Draws, gradient, loss, proximal, raise_bound
from xsoftmax.kernels.random import stream
from xsoftmax.kernels.rows import features_of
from xsoftmax.optimizers.sgd import Sgd
from xsoftmax.proposals.frequency import FittedFrequency

KEY = np.uint64(stream(11, 2))


@njit(**OPTIONS)
def loss_of(objective, state, score_true, log_q_true, draws):
    return loss(objective, state, score_true, log_q_true, draws)


@njit(**OPTIONS)
def gradient_of(objective, rate, state, score_true, log_q_true, draws):
    return gradient(objective, rate, state, score_true, log_q_true, draws)


@njit(**OPTIONS)
def raise_bound_of(objective, threshold, state, score_true, draws):
    raise_bound(objective, threshold, state, score_true, draws)


@njit(**OPTIONS)
def proximal_of(objective, rate, state, squared_norm, score_true, draws):
    return proximal(objective, rate, state, squared_norm, score_true, draws)


def even_draws(n_classes):
    """Draws of all classes alike, the true one too, as from frequencies: the loop over these is compiled anyway."""
    return FittedFrequency(np.full(n_classes, -np.log(n_classes), np.float32)).kernel(None)


def draws_of(objective, s, y, drawn, log_q, dtype=np.float64):
    """Draws weighed as the loop weighs them."""
    classes, n = np.array(drawn), len(drawn)
    weights = (
        np.exp(-np.asarray(log_q)[classes]) / n * (classes != y) if objective.excludes_true else np.full(n, 1 / n)
    )
    arrays = (np.asarray(log_q)[classes], weights, np.asarray(s)[classes], np.empty(n))
    return Draws(classes, *(array.astype(dtype) for array in arrays), np.zeros(1, np.uint64))


def every_class(objective, s, y, log_q):
    """All classes, weighed as in evaluation: the other ones by 1, or all by their probabilities."""
    classes = np.array([k for k in range(len(s)) if k != y or not objective.excludes_true])
    weights = np.ones(classes.size) if objective.excludes_true else np.exp(log_q)
    arrays = (np.asarray(log_q)[classes], weights, np.asarray(s)[classes].astype(float), np.empty(classes.size))
    return Draws(classes, *arrays, np.zeros(1, np.uint64))


def slopes_by_scores(draws, of_true, y, n_classes):
    slopes = np.zeros(n_classes)
    slopes[y] = of_true
    np.add.at(slopes, draws.classes, draws.out)
    return slopes


def step(objective, s, y, drawn, log_q, state=None, rate=0.0, dtype=np.float64):
    """Slopes by all scores, and the state after the step."""
    state = np.empty(0) if state is None else np.array(state, float)
    draws = draws_of(objective, s, y, drawn, log_q, dtype)
    of_true = gradient_of(objective, dtype(rate), state, dtype(s[y]), dtype(log_q[y]), draws)
    return slopes_by_scores(draws, of_true, y, len(s)), state


def full_loss(objective, s, y, log_q=None, state=None):
    """Value over all classes."""
    state = np.empty(0) if state is None else np.array(state, float)
    log_q = np.full(len(s), -np.log(len(s))) if log_q is None else log_q
    return loss_of(objective, state, s[y], log_q[y], every_class(objective, s, y, log_q))


COPIES = 1000
RATE = np.float32(1e-12)


def copies_of(x):
    """Rows that are all this one."""
    return np.repeat(np.asarray(x, np.float32)[None], COPIES, axis=0)


def mean_coefficients(objective, kernel, optimizer, x, y, state, W, n_steps, n_sampled=1):
    """Mean of the coefficients of all classes over many steps from the same weights, and its standard error.

    Each step has a copy of the row and of its state, and the kernel draws for ``copies_of(x)``. The rate is so low
    that no weight changes a score: biases that begin at 0, whose constant feature is 1, add up the coefficients.
    """
    features, labels = features_of(copies_of(np.append(x, 1)), True), np.full(COPIES, y, np.int32)
    order, means = np.arange(COPIES), []
    for first in range(0, n_steps, COPIES):
        layout = laid_out(optimizer, np.column_stack([W, np.zeros(len(W))]))
        auxiliary, clock = np.repeat(np.array([state], float), COPIES, axis=0), Clock(KEY, first, 0)
        arguments = (features, labels, auxiliary, layout, order, clock, RATE, n_sampled)
        assert run_steps(objective, kernel, optimizer, *arguments) == COPIES
        means.append(layout.weights()[:, -1].astype(float) / -float(RATE) / COPIES)
    return np.mean(means, axis=0), np.std(means, axis=0, ddof=1) / np.sqrt(len(means))


def mean_step(objective, kernel, s, y, n_steps, state=(), n_sampled=1):
    """Mean over the loop's own draws of the slopes by all scores, and its standard error.

    The row's one feature is 1, and its weights are the scores.
    """
    return mean_coefficients(objective, kernel, Sgd(), [], y, state, np.asarray(s)[:, None], n_steps, n_sampled)


def run(objective, kernel, optimizer, X, y, W, order, rate, auxiliary=None, n_sampled=1):
    """Weights, states, and steps taken by the compiled loop."""
    if auxiliary is None:
        auxiliary = objective.initial_auxiliary(len(X), len(W)) if objective.n_auxiliary else np.zeros((len(X), 0))
    layout = laid_out(optimizer, W)
    arguments = (
        features_of(np.asarray(X, np.float32), True),
        np.asarray(y, np.int32),
        auxiliary,
        layout,
        np.asarray(order),
    )
    taken = run_steps(objective, kernel, optimizer, *arguments, Clock(KEY, 0, 0), np.float32(rate), n_sampled)
    return layout.weights(), auxiliary, taken

"""One step of an objective's compiled code on draws that a test names, and many through the compiled loop."""

import numpy as np
from numba import njit

from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.random import stream
from xsoftmax.kernels.rows import features_of
from xsoftmax.kernels.steps import Clock, Draws, gradient, loss, proximal, raise_bound
from xsoftmax.kernels.sweep import room_ahead, sweep, sweep_in
from xsoftmax.optimizers.sgd import Sgd

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


@njit(**OPTIONS)
def _many_steps(objective, kernel, optimizer, features, y, states, W, i, clock, rate, n_steps, ahead, sums):
    room, moved, order = np.empty_like(W), np.empty_like(states), np.array([i])
    for t in range(n_steps):
        room[:], moved[:] = W, states
        now = Clock(clock.key, clock.position + t, 0)
        sweep_in(objective, kernel, optimizer, features, y, moved, room, order, now, rate, None, ahead)
        for k in range(len(W)):
            coefficient = np.float64(W[k, -1] - room[k, -1]) / np.float64(rate)
            sums[0, k] += coefficient
            sums[1, k] += coefficient**2


def mean_coefficients(objective, kernel, optimizer, features, y, states, W, i, clock, rate, n_steps):
    """Mean of the coefficients of all classes over many steps from the same weights, and its standard error.

    The biases' constant feature is 1, so that they show the coefficients.
    """
    sums = np.zeros((2, len(W)))
    ahead = room_ahead(objective, kernel)
    _many_steps(
        objective, kernel, optimizer, features, y, states, W, i, clock, np.float32(rate), n_steps, ahead, sums
    )
    mean, mean_square = sums / n_steps
    return mean, np.sqrt(np.maximum(mean_square - mean**2, 0) / n_steps)


def mean_step(objective, kernel, s, y, n_steps, state=()):
    """Mean over the loop's own draws of the slopes by all scores, and its standard error.

    The one row has no features: biases are the scores.
    """
    W = np.asarray(s, np.float32)[:, None]
    labels, states = np.array([y], np.int32), np.array([state], float).reshape(1, -1)
    features = features_of(np.zeros((1, 0), np.float32), True)
    return mean_coefficients(objective, kernel, Sgd(), features, labels, states, W, 0, Clock(KEY, 0, 0), 1.0, n_steps)


def run(objective, kernel, optimizer, X, y, W, order, rate, states=None):
    """Weights, states, and steps taken by the compiled loop."""
    if states is None:
        states = objective.initial_states(len(X), len(W)) if objective.n_states else np.zeros((len(X), 0))
    room = optimizer.layout.allocate(*W.shape, True, 0.0)
    weights = optimizer.layout.weights(room, True)
    weights[:] = W
    arguments = (
        features_of(np.asarray(X, np.float32), True),
        np.asarray(y, np.int32),
        states,
        room,
        np.asarray(order),
    )
    taken = sweep(objective, kernel, optimizer, *arguments, Clock(KEY, 0, 0), np.float32(rate))
    return optimizer.layout.weights(room, True), states, taken

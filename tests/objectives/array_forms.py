"""Slopes of objectives' array forms by differences, and what their compiled code says of the same scores."""

from typing import NamedTuple

import numpy as np
from numba import njit

from objectives.one_step import gradient_of, loss_of, raise_bound_of
from xsoftmax.internal import registry
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.noise import open_uniform
from xsoftmax.kernels.protocol import Draws
from xsoftmax.kernels.random import start
from xsoftmax.objectives import ScoredClasses
from xsoftmax.objectives.negative_sampling import NegativeSampling
from xsoftmax.proposals import TrainingSet

PACKAGE = "xsoftmax.objectives"
K = 30
# Of fourth-order differences: rounding leaves about 1e-11, truncation less.
STEP = 1e-4


def members():
    """Every objective with its defaults, and with every other number set to something else, fitted."""
    data = TrainingSet(np.zeros((K, 0), np.float32), np.arange(K, dtype=np.int32), K, n_sampled=3)
    found = []
    for name in registry.names(PACKAGE):
        member = registry.load(PACKAGE, name).MEMBER
        changed = {key: 0.07 for key, value in member._field_defaults.items() if type(value) is float}
        found += [each.fit(data) for each in (member(), *([member(**changed)] if changed else []))]
    return [*found, NegativeSampling(0.07, regularizes_log_q=False)]


def problem(objective, rng, n=20):
    """Scores of n samples, and their states.

    Some classes are drawn twice, and some are the true one, which is to count nothing; all are there once where the
    objective needs that.
    """
    score_true, log_q_true = rng.standard_normal(n), np.log(rng.uniform(0.01, 0.5, n))
    m = K - 1 if objective.needs_all_classes else 6
    classes = np.tile(np.arange(m), (n, 1)) if objective.needs_all_classes else rng.integers(0, 10, (n, m))
    of_class = rng.standard_normal((n, K))
    scores = np.take_along_axis(of_class, classes, axis=1)
    weights, log_q = rng.uniform(0.2, 1.2, (n, m)), np.log(rng.uniform(0.01, 0.5, (n, m)))
    if objective.needs_all_classes:
        weights[:] = 1.0
    else:
        masked = rng.random((n, m)) < 0.2
        weights[masked] = 0.0
        scores = np.where(masked, score_true[:, None], scores)
        log_q = np.where(masked, log_q_true[:, None], log_q)
    auxiliary = objective.initial_auxiliary(n, K) if objective.n_auxiliary else np.empty((n, 0))
    auxiliary = auxiliary + 0.3 * rng.random(auxiliary.shape)
    return ScoredClasses(score_true, log_q_true, classes, scores, weights, log_q), auxiliary


@njit(**OPTIONS)
def _fill(rng, out):
    for i in range(out.size):
        rng, out[i] = open_uniform(rng)


def noise_of(objective, n):
    """Uniform numbers that the compiled code draws for sample i from the random state ``start(7, i)``."""
    out = np.empty((n, objective.n_numbers))
    for i in range(n):
        _fill(np.uint64(start(np.uint64(7), i)), out[i])
    return out


class Slopes(NamedTuple):
    """Derivatives by the score of the true class, (n,), and of the others, (n, m)."""

    of_true: np.ndarray
    of_others: np.ndarray


def slopes(objective, at, draws):
    """By fourth-order differences of the array form."""

    def derivative(move):
        def change(step):
            return objective.value(np, at, move(step)) - objective.value(np, at, move(-step))

        return (8 * change(STEP) - change(2 * STEP)) / (12 * STEP)

    unit = np.eye(draws.scores.shape[1])
    of_others = [derivative(lambda h, e=e: draws._replace(scores=draws.scores + h * e)) for e in unit]
    of_true = derivative(lambda h: draws._replace(score_true=draws.score_true + h))
    return Slopes(of_true, np.reshape(of_others, draws.scores.shape[::-1]).T)


def _rows(draws):
    for i, y in enumerate(draws.score_true):
        arrays = (draws.log_q[i], draws.weights[i], draws.scores[i], np.empty(len(draws.scores[i])))
        yield (
            i,
            y,
            draws.log_q_true[i],
            Draws(draws.classes[i], *arrays, np.full(1, start(np.uint64(7), i), np.uint64)),
        )


def compiled_loss(objective, auxiliary, draws):
    """Loss of each sample, shape (n,)."""
    return np.array([loss_of(objective, auxiliary[i].copy(), y, q, of_one) for i, y, q, of_one in _rows(draws)])


def compiled_step(objective, rate, auxiliary, draws, threshold=None):
    """Slopes of each sample, and the states after the step."""
    auxiliary, of_true, of_others = auxiliary.copy(), [], []
    for i, y, q, of_one in _rows(draws):
        if threshold is not None:
            raise_bound_of(objective, threshold, auxiliary[i], y, of_one)
        of_true.append(gradient_of(objective, rate, auxiliary[i], y, q, of_one))
        of_others.append(of_one.out)
    return Slopes(np.array(of_true), np.array(of_others)), auxiliary

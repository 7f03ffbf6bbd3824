"""Loops of sampled steps, slow and in float64, on draws that a test names.

A sample's slopes are differences of its objective's array form, of which tests/objectives shows that it is what the
papers say; these loops show that the compiled ones draw, add up and move as they should. Draws come from outside: for
each sample its classes and the log-probabilities of all classes for this row.
"""

import numpy as np

import naive
from objectives.array_forms import slopes
from xsoftmax.objectives import ScoredClasses


def scored(objective, s, y, classes, log_q):
    """One sample's draws, of which the true class counts nothing where the sum is over the others."""
    classes, log_q = np.asarray(classes), np.asarray(log_q, float)
    n, counts = len(classes), (classes != y) | (not objective.excludes_true)
    weights = np.exp(-log_q[classes]) / n if objective.excludes_true else np.full(n, 1 / n)
    counted = np.where(counts, classes, y)
    arrays = (classes, s[counted], weights * counts, log_q[counted])
    return ScoredClasses(s[y, None], log_q[y, None], *(each[None] for each in arrays))


def step(objective, s, y, state, classes, log_q, rate, threshold=None):
    """Slopes of one sample's estimate by all scores, and its new state; a threshold is U-max's."""
    draws, lifting = scored(objective, s, y, classes, log_q), {} if threshold is None else {"threshold": threshold}
    at, after = objective.prepare(np, rate, state[None], draws, None, **lifting)
    found, by_scores = slopes(objective, at, draws), np.zeros(len(s))
    np.add.at(by_scores, classes, found.of_others[0])
    by_scores[y] += found.of_true[0]
    return by_scores, after[0]


def states_of(objective, n_samples, n_classes):
    """What an objective keeps of its samples before the first step."""
    return objective.initial_auxiliary(n_samples, n_classes) if objective.n_auxiliary else np.zeros((n_samples, 0))


def steps(objective, inputs, y, W, batches, rate, rule=None, threshold=None, l2=0.0, betas=None):
    """Take one step per batch of (sample, classes, log_q); return weights, accumulator (None without) and states.

    All samples of a batch look at the same weights; what a class gains from them is one gradient, which Adagrad
    squares as such. An L2 penalty shrinks the touched rows but for the last column: by ``betas``, or by the mean over
    the batch of 1 for the true class and 1 / (n q) for a drawn one. ``rule`` is Adagrad's accumulator, a function of
    weights and gradient that gives the new weights, or None for plain steps.
    """
    W, states = W.astype(float), states_of(objective, len(y), len(W))
    for batch in batches:
        gradient, weight = np.zeros(W.shape), np.zeros(len(W))
        for i, classes, log_q in batch:
            by_scores, states[i] = step(objective, W @ inputs[i], y[i], states[i], classes, log_q, rate, threshold)
            gradient += np.outer(by_scores, inputs[i]) / len(batch)
            weight[y[i]] += 1 / len(batch)
            for k in classes:
                weight[k] += (k != y[i]) * np.exp(-log_q[k]) / len(classes) / len(batch)
        touched = weight > 0
        if l2:
            W[touched, :-1] *= 1 - rate * l2 / len(y) * (weight if betas is None else betas)[touched, None]
        if callable(rule):
            W = rule(W, gradient)
        elif rule is None:
            W = W - rate * gradient
        else:
            W, rule = naive.adagrad(W, rule, gradient, rate)
    return W, rule, states

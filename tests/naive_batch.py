"""Minibatches and ridges on sampled steps, as slow loops in float64; nothing of the package is used.

Draws come from outside: for each sample its classes and the log-probabilities of all classes for this row.
"""

import numpy as np

import naive
import naive_augment_reduce
import naive_sampled


def slopes_of(objective, s, y, u, classes, log_q, rate, threshold):
    """Slopes of one sample's estimate by all scores, and its new u, or what else the objective keeps."""
    if objective == "one-vs-each":
        return naive.one_vs_each_draws(s, y, classes, log_q), u
    if objective == "negative-sampling":
        return naive.negative_sampling_draws(s, y, classes, log_q, 0.05), u
    if objective == "sampled-softmax":
        return naive_sampled.sampled_softmax_draws(s, y, classes, log_q)[1], u
    if objective == "augment-reduce":
        weights = [(k != y) * np.exp(-log_q[k]) / len(classes) for k in classes]
        slopes, eta, visits = naive_augment_reduce.softmax_step(s, y, np.exp(u[0]), u[1], classes, weights)
        return slopes, np.array([np.log(eta), visits])
    if threshold is not None:
        slopes, u = naive.u_max_draws(s, y, u, classes, log_q, rate, threshold)
        return slopes, u
    slopes, slope_u = naive.double_sum_draws(s, y, u, classes, log_q)
    return slopes, max(0.0, u - rate * slope_u)


def steps(objective, inputs, y, W, u, accumulator, batches, rate, threshold=None, ridge=0.0, betas=None):
    """Take one step per batch of (sample, classes, log_q); return weights, accumulator (None without) and u.

    All samples of a batch look at the same weights; what a class gains from them is one gradient, which Adagrad
    squares as such. A ridge shrinks the touched rows but for the last column: by ``betas``, or by the mean over the
    batch of 1 for the true class and 1 / (n q) for a drawn one. ``accumulator`` may be a rule of its own: a function
    of weights and gradient that gives the new weights.
    """
    W, u = W.astype(float), u.astype(float)
    for batch in batches:
        gradient, weight = np.zeros(W.shape), np.zeros(len(W))
        for i, classes, log_q in batch:
            slopes, u[i] = slopes_of(objective, W @ inputs[i], y[i], u[i], classes, log_q, rate, threshold)
            gradient += np.outer(slopes, inputs[i]) / len(batch)
            weight[y[i]] += 1 / len(batch)
            for k in classes:
                weight[k] += (k != y[i]) * np.exp(-log_q[k]) / len(classes) / len(batch)
        touched = weight > 0
        if ridge:
            W[touched, :-1] *= 1 - rate * ridge / len(y) * (weight if betas is None else betas)[touched, None]
        if callable(accumulator):
            W = accumulator(W, gradient)
        elif accumulator is None:
            W = W - rate * gradient
        else:
            W, accumulator = naive.adagrad(W, accumulator, gradient, rate)
    return W, accumulator, u

"""The driver of every sampled method: a batch type says how many samples make a step, and what they share.

    Single      a step per sample                                                   (here)
    Own         a step per minibatch, each sample with draws of its own             (``own_negatives``)
    Shared      a step per minibatch, which shares its draws                        (``shared_negatives``)
    Joint       a step per minibatch, solved for the weights that it ends at        (``implicit_batch``)

Methods that look at every class have a loop of their own (``full_softmax``), and share slopes and moves with these.
"""

from typing import NamedTuple

import numpy as np

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import LEAN, OPTIONS
from xsoftmax.kernels.coefficients import coefficients_of, excluded_of, lowest_of
from xsoftmax.kernels.dispatch import declared, implements, otherwise
from xsoftmax.kernels.draws import empty_candidates
from xsoftmax.kernels.layout import has_room
from xsoftmax.kernels.prefetch import prefetch_step
from xsoftmax.kernels.protocol import (
    Clock,
    DrawsAhead,
    Step,
    View,
    draw,
    draw_ahead,
    n_exact,
    reads_weights,
)
from xsoftmax.kernels.random import start
from xsoftmax.kernels.walk import move_step

AHEAD = 32


class Single(NamedTuple):
    """A step per sample, of which ``ahead`` have their classes drawn before the first is taken.

    So the rows of the next step can be asked for in advance, and proposals can overlap their own waiting for memory.
    A proposal that reads the weights draws just in time.
    """

    ahead: int
    size: int = 1


def single(proposal) -> Single:
    """Give the batch type of single steps for the kernel of a proposal."""
    return Single(1 if reads_weights(proposal) else AHEAD)


@declared
def workspace_for(batch, parts, samples, order):
    """Allocate what ``take`` needs beside its arguments."""


@declared
def take(batch, parts, samples, weights, some, clock, rate, workspace):
    """Take the steps of some samples, as many as ``batch.ahead`` steps have; return how many samples were used.

    It stops early only before a step whose scores are not finite, or that weights which grow have no room for.
    ``clock`` is at the first of the samples.
    """


@njit(**OPTIONS)
def run_steps(batch, parts, samples, weights, order, clock, rate):
    """Take the steps of all samples of ``order``; return how many samples were used.

    It stops early only before a step whose scores are not finite, or that weights which grow have no room for.

    Parameters
    ----------
    batch : Single, Own, Shared or Joint
    parts : Parts
        The method; types choose the code (see ``xsoftmax.kernels.protocol``).
    samples : Samples
    weights : NamedTuple
        In a layout that has what the optimizer accumulates (``xsoftmax.kernels.layout``); changed in place.
    order : ndarray of shape (n,), int64
        Samples to visit.
    clock : Clock
        Where this begins.
    rate : float32
    """
    workspace = workspace_for(batch, parts, samples, order)
    unit = batch.ahead * batch.size
    for first in range(0, order.size, unit):
        some = order[first : first + unit]
        now = Clock(clock.key, clock.position + first, clock.step + first // batch.size)
        used = take(batch, parts, samples, weights, some, now, rate, workspace)
        if used < some.size:
            return first + used
    return order.size


@implements(workspace_for, Single)
def _workspace(batch, parts, samples, order):
    return empty_draws_ahead(batch.ahead, parts.n_sampled + n_exact(parts.proposal))


@njit(**OPTIONS)
def empty_draws_ahead(n_steps, n_draws):
    """Room for the draws of several steps."""
    return DrawsAhead(
        np.empty((n_steps, n_draws), np.int64),
        np.empty((n_steps, n_draws), np.float32),
        np.empty((n_steps, n_draws), np.float32),
        np.empty(n_steps, np.int64),
        np.empty(n_steps, np.float32),
        np.empty(n_steps, np.uint64),
        empty_candidates(n_draws),
    )


@implements(take, Single)
def _take(batch, parts, samples, weights, some, clock, rate, workspace):
    return _take_steps(parts, samples, weights, some, clock, rate, workspace)


@njit(**LEAN)
def _take_steps(parts, samples, weights, some, clock, rate, ahead):
    features, labels, candidates = samples.features, samples.labels, ahead.step
    for b in range(some.size):
        y = np.int64(labels[some[b]])
        ahead.excluded[b] = excluded_of(parts.objective, y)
        ahead.lowest[b] = lowest_of(parts, features, weights, some[b], y)
        ahead.rng_states[b] = start(clock.key, clock.position + b)
    draw_ahead(parts.proposal, View(weights, features), some, ahead)
    for b in range(some.size):
        i = some[b]
        if b + 1 < some.size:
            following = some[b + 1]
            prefetch_step(features, following, weights, np.int64(labels[following]), ahead.classes[b + 1])
        candidates.classes[0], candidates.weights[0] = labels[i], np.float32(1)
        _copy_draws(ahead, b, candidates.draws)
        if not has_room(weights, features, i, candidates.classes):
            return b
        if not coefficients_of(
            parts, samples, features, i, weights, i, clock.key, clock.position + b, rate, candidates
        ):
            return b
        move_step(weights, features, parts.optimizer, i, Step(rate, clock.step + b), candidates)
    return some.size


@njit(**LEAN)
def _copy_draws(ahead, b, draws):
    for j in range(draws.classes.size):
        draws.classes[j] = ahead.classes[b, j]
        draws.log_q[j] = ahead.log_q[b, j]
        draws.weights[j] = ahead.weights[b, j]


@otherwise(draw_ahead)
def _draw_one_by_one(proposal, view, samples, ahead):
    draws = ahead.step.draws
    for b in range(samples.size):
        draw(proposal, view, samples[b], ahead.excluded[b], ahead.lowest[b], ahead.rng_states[b], draws)
        for j in range(draws.classes.size):
            ahead.classes[b, j] = draws.classes[j]
            ahead.log_q[b, j] = draws.log_q[j]
            ahead.weights[b, j] = draws.weights[j]

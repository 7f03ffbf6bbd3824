"""Minibatches that share their draws: a step is two small matrix products, and each class moves once.

The classes that a batch draws, each once, however often it was drawn, are gathered into a block. Scores of all
samples for all of these are one product, the gradients of all of these a second one: of the memory that single
steps go through for each pair of a sample and a class, only the rows of weights are left, once per batch. What an
objective makes of its scores it does sample by sample, as in single steps.

A true class that another sample drew is a class of the block like any other; a sample's own true class among the
draws is an accidental hit: it counts nothing in a sum over the others (its weight is 0 for this sample).
"""

from typing import Any, NamedTuple

import numpy as np

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import LEAN, OPTIONS, PART
from xsoftmax.kernels.block import move_drawn, score_drawn, take_samples, workspace_for_block
from xsoftmax.kernels.coefficients import OWN_NUMBERS
from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.draws import empty_draws, part_of, weigh_for
from xsoftmax.kernels.layout import age, shrink
from xsoftmax.kernels.mathematics import is_finite
from xsoftmax.kernels.own_negatives import sum_samples, workspace_for_sum
from xsoftmax.kernels.protocol import (
    NEGLIGIBLE,
    Draws,
    Step,
    View,
    coefficients,
    draw,
    draws_numbers,
    excludes_true,
    log_probability,
    n_exact,
    uses_log_q,
)
from xsoftmax.kernels.random import mix, start
from xsoftmax.kernels.run_steps import take, workspace_for
from xsoftmax.kernels.walk import move, score_class

_ONE = np.float32(1)


class Numbering(NamedTuple):
    """The classes of a batch, numbered as they come: first those drawn, then true classes that nobody drew.

    ``keys`` and ``numbers``, of the same length, a power of 2, are a hash table from class to number; free slots
    have the key -1. ``of_true``, int64 of shape (batch_size,), is the number of each sample's true class. The others
    are of the classes that nobody drew: ``classes``, and ``by_class``, the samples in order of these, those of class
    t being ``by_class[bounds[t] : bounds[t + 1]]``.
    """

    keys: np.ndarray
    numbers: np.ndarray
    of_true: np.ndarray
    classes: np.ndarray
    by_class: np.ndarray
    bounds: np.ndarray


class Batch(NamedTuple):
    """``samples``, the numbers of their true classes, and their scores.

    ``true`` is of shape (n_samples,), ``drawn`` (n_samples, n_drawn), float32.
    """

    samples: np.ndarray
    of_true: np.ndarray
    true: np.ndarray
    drawn: np.ndarray


class Slopes(NamedTuple):
    """Of one batch, float32: ``drawn`` (n_samples, n_drawn), ``true`` (n_samples,) where it is not among the drawn.

    ``touches``, of shape (n_drawn,), is by how much each drawn class was touched, where weights decay.
    """

    drawn: np.ndarray
    true: np.ndarray
    touches: np.ndarray


class Shared(NamedTuple):
    """A step per minibatch of ``size``, all of whose samples look at the same drawn classes, those of its first."""

    size: int
    ahead: int = 1


class Workspace(NamedTuple):
    """Of a batch: what is drawn, how it is numbered; scores and slopes, flat, float32; room for blocks and a row."""

    draws: Draws
    numbering: Numbering
    true_scores: np.ndarray
    scores: np.ndarray
    slopes: np.ndarray
    true_slopes: np.ndarray
    touched: np.ndarray
    block: Any
    summed: Any


@implements(workspace_for, Shared)
def _workspace(batch, parts, samples, order):
    size = max(1, min(batch.size, order.size))
    draws = empty_draws(parts.n_sampled + n_exact(parts.proposal))
    n = draws.classes.size
    return Workspace(
        draws,
        _empty_numbering(n, size),
        np.empty(size, np.float32),
        np.empty(size * n, np.float32),
        np.empty(size * n, np.float32),
        np.empty(size, np.float32),
        np.empty(n, np.float32),
        workspace_for_block(samples.features, order, size, n),
        workspace_for_sum(samples.features),
    )


@implements(take, Shared)
def _take(batch, parts, samples, weights, some, clock, rate, workspace):
    features, draws, numbering = samples.features, workspace.draws, workspace.numbering
    n, step = some.size, Step(rate, clock.step)
    view, rng = View(weights, features), start(clock.key, clock.position)
    draw(parts.proposal, view, some[0], np.int64(-1), np.float32(-np.inf), rng, draws)
    weigh_for(parts.objective, np.int64(-1), draws)
    n_drawn = merge_repeats(draws, numbering)
    drawn = part_of(draws, 0, n_drawn)
    n_others = _number_true_classes(samples.labels, some, n_drawn, numbering)
    rows, inside = take_samples(features, some, workspace.block)
    scores = workspace.scores[: n * n_drawn].reshape(n, n_drawn)
    score_drawn(weights, features, some, drawn.classes, scores, workspace.block)
    if not _score_true(weights, rows, inside, samples.labels, some, scores, workspace.true_scores):
        return 0
    slopes = Slopes(workspace.slopes[: n * n_drawn].reshape(n, n_drawn), workspace.true_slopes, workspace.touched)
    scored = Batch(some, numbering.of_true[:n], workspace.true_scores, scores)
    _slopes_of(parts, samples, view, clock, rate, drawn, scored, slopes)
    _weights_of_inclusion(drawn.weights, numbering.of_true[:n], slopes.touches)
    optimizer = parts.optimizer
    age(weights, step)
    move_drawn(weights, features, optimizer, some, step, drawn.classes, slopes.drawn, slopes.touches, workspace.block)
    for t in range(n_others):
        k = numbering.classes[t]
        entries = numbering.by_class[numbering.bounds[t] : numbering.bounds[t + 1]]
        shrink(weights, step, k, np.float32(entries.size) / np.float32(n))
        row = sum_samples(rows, inside, entries, workspace.true_slopes, 1, workspace.summed)
        move(weights, row, optimizer, 0, step, _ONE, k)
    return some.size


@njit(**OPTIONS)
def _empty_numbering(n_draws, batch_size):
    size = 2
    while size < 2 * (n_draws + batch_size):
        size *= 2
    return Numbering(
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.empty(batch_size, np.int64),
        np.empty(batch_size, np.int64),
        np.empty(batch_size, np.int64),
        np.empty(batch_size + 1, np.int64),
    )


@njit(**PART)
def _number_of(numbering, k, free):
    """Number of class ``k``; a class that has none gets ``free``."""
    mask = numbering.keys.size - 1
    slot = np.int64(mix(np.uint64(k)) & np.uint64(mask))
    while numbering.keys[slot] != k:
        if numbering.keys[slot] < 0:
            numbering.keys[slot] = k
            numbering.numbers[slot] = free
            break
        slot = (slot + 1) & mask
    return numbering.numbers[slot]


@njit(**LEAN)
def merge_repeats(draws, numbering):
    """Put each drawn class once to the front, with the sum of its weights; return how many these are.

    A sum over the draws is what it was. The numbering begins anew with these classes.
    """
    numbering.keys[:] = -1
    n = 0
    for j in range(draws.classes.size):
        k = draws.classes[j]
        number = _number_of(numbering, k, n)
        if number < n:
            draws.weights[number] += draws.weights[j]
            continue
        draws.classes[n], draws.log_q[n], draws.weights[n] = k, draws.log_q[j], draws.weights[j]
        n += 1
    return n


@njit(**LEAN)
def _number_true_classes(labels, samples, n_drawn, numbering):
    """Number the true classes after the ``n_drawn`` drawn ones; sort samples by those that nobody drew.

    Return how many of these there are.
    """
    n_others = 0
    for b in range(samples.size):
        y = np.int64(labels[samples[b]])
        number = _number_of(numbering, y, n_drawn + n_others)
        numbering.of_true[b] = number
        if number == n_drawn + n_others:
            numbering.classes[n_others] = y
            n_others += 1
    bounds = numbering.bounds[: n_others + 1]
    bounds[:] = 0
    for b in range(samples.size):
        if numbering.of_true[b] >= n_drawn:
            bounds[numbering.of_true[b] - n_drawn] += 1
    for t in range(n_others):
        bounds[t + 1] += bounds[t]
    for b in range(samples.size - 1, -1, -1):  # ends become beginnings
        if numbering.of_true[b] >= n_drawn:
            t = numbering.of_true[b] - n_drawn
            bounds[t] -= 1
            numbering.by_class[bounds[t]] = b
    return n_others


@njit(**LEAN)
def _score_true(weights, rows, inside, labels, samples, scores, true_scores):
    """Write the scores of the true classes; tell whether all scores of the batch are finite."""
    for b in range(samples.size):
        score = score_class(weights, rows, inside[b], np.int64(labels[samples[b]]))
        true_scores[b] = score
        for j in range(scores.shape[1]):
            score += scores[b, j]
        if not is_finite(score):
            return False
    return True


@njit(**LEAN)
def _slopes_of(parts, samples, view, clock, rate, drawn, batch, slopes):
    """Let the objective make slopes of the scores, sample by sample; each has its share of the batch's mean."""
    objective, proposal, optimizer, _ = parts
    some, of_true, true_scores, scores = batch
    by_drawn, by_true, _ = slopes
    n_drawn = scores.shape[1]
    share = _ONE / np.float32(some.size)
    for b in range(some.size):
        i, number = some[b], of_true[b]
        if draws_numbers(objective):
            drawn.rng[0] = start(clock.key ^ OWN_NUMBERS, clock.position + b)
        log_q_true = np.float32(0)
        if uses_log_q(objective):
            log_q_true = log_probability(proposal, view, i, np.int64(samples.labels[i]))
        for j in range(n_drawn):
            drawn.scores[j] = scores[b, j]
        is_drawn = number < n_drawn
        weight = drawn.weights[number] if is_drawn else np.float32(0)
        if is_drawn and excludes_true(objective):
            drawn.weights[number] = np.float32(0)
        score, state = true_scores[b], samples.auxiliary[i]
        of_y = np.float32(
            coefficients(optimizer, objective, samples.features, i, rate, state, score, log_q_true, drawn)
        )
        if is_drawn:
            drawn.weights[number] = weight
            drawn.out[number] += of_y
        by_true[b] = share * of_y
        for j in range(n_drawn):
            slope = share * drawn.out[j]
            by_drawn[b, j] = slope if abs(slope) > NEGLIGIBLE else np.float32(0)


@njit(**LEAN)
def _weights_of_inclusion(weights, of_true, out):
    """Mean over the samples of a draw's weight, or of 1 where it is the true class."""
    share = _ONE / np.float32(of_true.size)
    for j in range(weights.size):
        out[j] = weights[j]
    for number in of_true:
        if number < weights.size:
            out[number] += share * (_ONE - weights[number])

"""Single steps on samples that have several labels: these come first, and the classes drawn behind them.

Draws skip all labels of the sample, where the objective's sum is over the other classes: a label that is drawn weighs
nothing. So do labels among the classes that a search finds, which is asked for as many more.
"""

from typing import Any, NamedTuple

import numpy as np

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import LEAN, PART
from xsoftmax.kernels.coefficients import OWN_NUMBERS, all_finite, lowest_of
from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.draws import gather_repeats, part_of
from xsoftmax.kernels.label_sets import (
    as_candidates,
    coefficients_of_set,
    holds,
    labels_of,
    places_like,
    share_of,
)
from xsoftmax.kernels.layout import has_room
from xsoftmax.kernels.one_sample import fill_places, place_of
from xsoftmax.kernels.protocol import (
    Step,
    View,
    draw,
    draws_numbers,
    excludes_true,
    log_probability,
    n_exact,
    note_moved,
    reads_weights,
    searches,
    uses_log_q,
)
from xsoftmax.kernels.random import start
from xsoftmax.kernels.run_steps import take, workspace_for
from xsoftmax.kernels.walk import move_step, score_step


class LabelSteps(NamedTuple):
    """A step per sample, along all of its labels; none has more than ``most_labels``."""

    most_labels: int
    ahead: int = 1
    size: int = 1


class Workspace(NamedTuple):
    """Places for the candidates of a sample, and room for as many numbers, and for a number per label."""

    places: Any
    total: np.ndarray
    log_q: np.ndarray


@implements(workspace_for, LabelSteps)
def _workspace(batch, parts, samples, order):
    n = 2 * batch.most_labels + parts.n_sampled + n_exact(parts.proposal)
    total = np.empty(n, np.float32)
    return Workspace(places_like(total), total, np.zeros(batch.most_labels, np.float32))


@implements(take, LabelSteps)
def _take(batch, parts, samples, weights, some, clock, rate, workspace):
    i, features = some[0], samples.features
    n = fill_places(batch, parts, samples, features, i, weights, i, clock, rate, workspace)
    if n:
        candidates = as_candidates(part_of(workspace.places, 0, n))
        move_step(weights, features, parts.optimizer, i, Step(rate, clock.step), candidates)
    return np.int64(n > 0)


@implements(fill_places, LabelSteps)
def _fill_places(batch, parts, samples, features, row, weights, i, clock, rate, workspace):
    labels, first = labels_of(samples.labels, i), samples.labels.starts[i]
    n_true, asked = labels.size, place_of(parts, row, i)
    rng = start(clock.key, clock.position)
    n = draw_for_labels(parts, features, row, weights, asked, labels, rng, workspace.places)
    places = part_of(workspace.places, 0, n)
    if not has_room(weights, features, row, places.classes):
        return 0
    score_step(weights, features, row, places.classes, places.scores)
    if not all_finite(places.scores):
        return 0
    view = View(weights, features)
    if uses_log_q(parts.objective):
        for t in range(n_true):
            known = samples.log_q
            workspace.log_q[t] = _log_q_of(known, parts.proposal, view, asked, first + t, places.classes[t])
    if draws_numbers(parts.objective):
        places.rng[0] = start(clock.key ^ OWN_NUMBERS, clock.position)
    coefficients_of_set(
        parts.objective,
        parts.optimizer,
        features,
        row,
        rate,
        samples.auxiliary[first : first + n_true],
        workspace.log_q,
        share_of(samples.labels, n_true),
        places,
        n_true,
        workspace.total,
    )
    gather_repeats(as_candidates(places), n_true)
    if reads_weights(parts.proposal):
        for t in range(n_true):
            note_moved(parts.proposal, places.classes[t])
    return n


@njit(**PART)
def _log_q_of(known, proposal, view, i, place, k):
    return log_probability(proposal, view, i, k) if known is None else known[place]


@njit(**LEAN)
def draw_for_labels(parts, features, row, weights, asked, labels, rng, places):
    """Put the labels of a sample, with weight 1, and the classes drawn for it into places; return how many.

    The sample is ``row`` of the features, and ``asked`` to the proposal.
    """
    n_true, n_drawn = labels.size, parts.n_sampled + n_exact(parts.proposal)
    lowest = np.float32(np.inf)
    for t in range(n_true):
        places.classes[t], places.weights[t], places.log_q[t] = labels[t], np.float32(1), np.float32(0)
        lowest = min(lowest, lowest_of(parts, features, weights, row, np.int64(labels[t])))
    drawn = part_of(places, n_true, n_true + n_drawn + (n_true if searches(parts.proposal) else 0))
    draw(parts.proposal, View(weights, features), asked, np.int64(-1), lowest, rng, drawn)
    if not excludes_true(parts.objective):
        for j in range(n_drawn):
            drawn.weights[j] = np.float32(1) / np.float32(n_drawn)
    elif searches(parts.proposal):
        _keep_others(labels, drawn, n_drawn)
    else:
        for j in range(n_drawn):
            if holds(labels, drawn.classes[j]):
                drawn.weights[j] = np.float32(0)
    return n_true + n_drawn


@njit(**LEAN)
def _keep_others(labels, drawn, n):
    """Leave out the labels among the classes found; what is over of n places holds a label and weighs nothing."""
    n_kept = 0
    for j in range(drawn.classes.size):
        if n_kept < n and drawn.weights[j] > 0 and not holds(labels, drawn.classes[j]):
            drawn.classes[n_kept] = drawn.classes[j]
            n_kept += 1
    for j in range(n):
        drawn.weights[j] = np.float32(j < n_kept)
        if j >= n_kept:
            drawn.classes[j] = labels[0]

"""What one sample's step comes to before anything moves: its classes, and the coefficients along which they move.

A batch type of single steps says what labels samples have, ``OneLabel`` here or ``LabelSteps``. A solver may show a
sample in another form than its own, such as behind a table: ``row`` of ``features``.
"""

from typing import NamedTuple

import numpy as np

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import PART
from xsoftmax.kernels.coefficients import coefficients_of, excluded_of, lowest_of
from xsoftmax.kernels.dispatch import implements, lean
from xsoftmax.kernels.label_sets import as_candidates, places_like
from xsoftmax.kernels.protocol import Draws, View, draw, n_exact, reads_weights
from xsoftmax.kernels.random import start
from xsoftmax.kernels.run_steps import workspace_for


class OneLabel(NamedTuple):
    """The batch type of single steps of which each has its classes drawn just in time."""

    ahead: int = 1
    size: int = 1


class Workspace(NamedTuple):
    """Places for the candidates of a sample."""

    places: Draws


@lean
def fill_places(batch, parts, samples, features, row, weights, i, clock, rate, workspace):
    """Put the classes of sample ``i`` into ``workspace.places``, with their coefficients; repeats are gathered.

    Return how many places are filled; 0 if scores are not finite, or weights that grow have no room for the classes.
    ``row`` of ``features`` is what classes see of the sample.
    """


@implements(workspace_for, OneLabel)
def _workspace(batch, parts, samples, order):
    return Workspace(places_like(np.empty(1 + parts.n_sampled + n_exact(parts.proposal), np.float32)))


@implements(fill_places, OneLabel)
def _fill_places(batch, parts, samples, features, row, weights, i, clock, rate, workspace):
    candidates, y = as_candidates(workspace.places), np.int64(samples.labels[i])
    excluded, lowest = excluded_of(parts.objective, y), lowest_of(parts, features, weights, row, y)
    candidates.classes[0], candidates.weights[0] = y, np.float32(1)
    rng = start(clock.key, clock.position)
    draw(parts.proposal, View(weights, features), place_of(parts, row, i), excluded, lowest, rng, candidates.draws)
    finite = coefficients_of(parts, samples, features, row, weights, i, clock.key, clock.position, rate, candidates)
    return candidates.classes.size if finite else 0


@njit(**PART)
def place_of(parts, row, i):
    """Which sample a proposal is asked about: those that look at weights see its row, others know its number."""
    return row if reads_weights(parts.proposal) else i

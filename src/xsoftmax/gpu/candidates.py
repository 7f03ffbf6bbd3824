"""Scores of a few classes of each sample, and moves of these classes: weights with one class per row.

Where other processes have other classes, ``xsoftmax.gpu.own_candidates`` does it.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from xsoftmax.gpu import own_candidates
from xsoftmax.gpu.features import CsrRows, DenseRows, Rows
from xsoftmax.gpu.weights import Weights

# Numbers that are gathered at a time, for samples times classes times features.
MOST_GATHERED = 2**24


def score(weights: Weights, rows: Rows, classes: Tensor) -> Tensor:
    """Score n samples for classes of their own, (n, m)."""
    if weights.part is not None:
        return own_candidates.score(weights, rows, classes)
    if isinstance(rows, CsrRows):
        found = torch.zeros(classes.shape, dtype=weights.W.dtype, device=classes.device)
        entries = weights.W.view(-1)[_places(weights, rows, classes)] * rows.values[:, None]
        return found.index_add_(0, rows.rows, entries)
    x = rows.inputs
    parts = [torch.bmm(weights.W[classes[at]], x[at, :, None])[:, :, 0] for at in spans(x, classes.shape[1])]
    return torch.cat(parts)


def score_alike(weights: Weights, rows: DenseRows, classes: Tensor) -> Tensor:
    """Score n samples for the same m classes, (n, m): one product."""
    if weights.part is not None:
        return own_candidates.score_alike(weights, rows, classes)
    return rows.inputs @ weights.W[classes].T


def move(weights: Weights, rows: Rows, classes: Tensor, slopes: Tensor, rate: float, number: int) -> None:
    """Move each class once, along the sum of slope times sample over all places, (n, m), that name it."""
    if weights.part is not None:
        own_candidates.move(weights, rows, classes, slopes, rate, number)
        return
    if isinstance(rows, CsrRows):
        terms = slopes[rows.rows] * rows.values[:, None]
        if weights.adds_up:
            weights.add(_places(weights, rows, classes).view(-1), terms.view(-1), rate, flat=True)
            return
        places, of_place = torch.unique(_places(weights, rows, classes), return_inverse=True)
        g = torch.zeros(len(places), dtype=slopes.dtype, device=slopes.device)
        weights.move(places, g.index_add_(0, of_place.view(-1), terms.view(-1)), rate, number, flat=True)
        return
    if weights.adds_up:
        for part, terms in _terms(rows, classes, slopes):
            weights.add(part, terms, rate)
        return
    found, of_class = torch.unique(classes, return_inverse=True)
    g = _empty_gradient(rows, len(found))
    _add(g, rows, of_class, slopes)
    weights.move(found, g, rate, number)


def move_alike(
    weights: Weights,
    rows: DenseRows,
    classes: Tensor,
    slopes: Tensor,
    own: tuple[Tensor, Tensor],
    at: tuple[float, int],
) -> None:
    """Move m classes that all samples share, and each sample's own, once each.

    Parameters
    ----------
    weights : Weights
    rows : DenseRows
    classes, slopes : Tensor of shapes (m,), (n, m)
        The shared ones, each named once.
    own : tuple of Tensor, both of shape (n, 1)
        Class and slope of each sample's own, which may be among the shared ones.
    at : tuple
        Learning rate of the step, and steps before it.
    """
    if weights.part is not None:
        own_candidates.move_alike(weights, rows, classes, slopes, own, at)
        return
    n_shared = len(classes)
    if weights.adds_up:
        weights.add(classes, slopes.T @ rows.inputs, at[0])
        move(weights, rows, *own, *at)
        return
    found, of_class = torch.unique(torch.cat([classes, own[0][:, 0]]), return_inverse=True)
    g = _empty_gradient(rows, len(found))
    g[of_class[:n_shared]] = slopes.T @ rows.inputs
    _add(g, rows, of_class[n_shared:, None], own[1])
    weights.move(found, g, *at)


def _empty_gradient(rows: DenseRows, n: int) -> Tensor:
    return torch.zeros((n, rows.inputs.shape[1]), dtype=rows.inputs.dtype, device=rows.inputs.device)


def _add(g: Tensor, rows: DenseRows, of_class: Tensor, slopes: Tensor) -> None:
    """Add slope times sample to the row of ``g`` that each place, (n, m), names."""
    for part, terms in _terms(rows, of_class, slopes):
        g.index_add_(0, part, terms)


def _terms(rows: DenseRows, places: Tensor, slopes: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Give places, (n, m), and slope times sample of each, so many at a time that few are held."""
    for at in spans(rows.inputs, slopes.shape[1]):
        terms = slopes[at, :, None] * rows.inputs[at, None, :]
        yield places[at].reshape(-1), terms.view(-1, terms.shape[2])


def _places(weights: Weights, rows: CsrRows, classes: Tensor) -> Tensor:
    """Places in memory of the weights that each entry of a sample meets, (n_entries, m)."""
    return classes[rows.rows] * weights.W.shape[1] + rows.columns[:, None]


def spans(x: Tensor, m: int) -> Iterator[slice]:
    """Cut samples so that what is gathered for m classes of each stays small."""
    size = max(1, MOST_GATHERED // max(1, m * x.shape[1]))
    for first in range(0, len(x), size):
        yield slice(first, first + size)

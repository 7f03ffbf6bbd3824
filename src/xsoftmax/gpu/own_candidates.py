"""What ``xsoftmax.gpu.candidates`` does, by ranks that have some of the classes each: classes are numbers among all.

A rank gathers and moves the weights of its own classes only. Scores are added up over ranks.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from xsoftmax.gpu.features import CsrRows, DenseRows, Rows

# Numbers that are gathered at a time, for classes times features.
MOST_GATHERED = 2**24


class Entries(NamedTuple):
    """Weights that own classes have where sparse samples are not zero: of each, its entry, its place among a sample's
    classes, and its place in memory.
    """

    entries: Tensor
    columns: Tensor
    places: Tensor


def score(weights: Any, rows: Rows, classes: Tensor) -> Tensor:
    """Score n samples for classes of their own, (n, m)."""
    found = torch.zeros(classes.shape, dtype=weights.W.dtype, device=classes.device)
    if isinstance(rows, CsrRows):
        own = _entries(weights, rows, classes)
        terms = weights.W.view(-1)[own.places] * rows.values[own.entries]
        flat = rows.rows[own.entries] * classes.shape[1] + own.columns
        found.view(-1).index_add_(0, flat, terms)
    else:
        samples, columns, local = _pairs(weights, classes)
        for at in _spans(len(samples), rows):
            terms = (weights.W[local[at]] * rows.inputs[samples[at]]).sum(1)
            found[samples[at], columns[at]] = terms
    return weights.part.ranks.summed(found)


def score_alike(weights: Any, rows: DenseRows, classes: Tensor) -> Tensor:
    """Score n samples for the same m classes, (n, m)."""
    mine, first = weights.part.has(classes), weights.part.shard.first
    found = torch.zeros((rows.n, len(classes)), dtype=weights.W.dtype, device=classes.device)
    found[:, mine] = rows.inputs @ weights.W[classes[mine] - first].T
    return weights.part.ranks.summed(found)


def move(weights: Any, rows: Rows, classes: Tensor, slopes: Tensor, rate: float, number: int) -> None:
    """Move each own class once, along the sum of slope times sample over all places, (n, m), that name it."""
    if isinstance(rows, CsrRows):
        own = _entries(weights, rows, classes)
        places, of_place = torch.unique(own.places, return_inverse=True)
        terms = slopes[rows.rows[own.entries], own.columns] * rows.values[own.entries]
        g = torch.zeros(len(places), dtype=slopes.dtype, device=slopes.device)
        weights.move(places, g.index_add_(0, of_place, terms), rate, number, flat=True)
        return
    samples, columns, local = _pairs(weights, classes)
    found, of_class = torch.unique(local, return_inverse=True)
    g = torch.zeros((len(found), rows.inputs.shape[1]), dtype=rows.inputs.dtype, device=rows.inputs.device)
    for at in _spans(len(samples), rows):
        terms = slopes[samples[at], columns[at], None] * rows.inputs[samples[at]]
        g.index_add_(0, of_class[at], terms)
    weights.move(found, g, rate, number)


def move_alike(
    weights: Any, rows: DenseRows, classes: Tensor, slopes: Tensor, own: tuple[Tensor, Tensor], at: tuple[float, int]
) -> None:
    """Move own classes among m that all samples share, and among each sample's own, once each."""
    first, mine = weights.part.shard.first, weights.part.has(classes)
    theirs = weights.part.has(own[0][:, 0])
    shared, samples = classes[mine] - first, torch.nonzero(theirs)[:, 0]
    found, of_class = torch.unique(torch.cat([shared, own[0][samples, 0] - first]), return_inverse=True)
    g = torch.zeros((len(found), rows.inputs.shape[1]), dtype=rows.inputs.dtype, device=rows.inputs.device)
    g[of_class[: len(shared)]] = slopes[:, mine].T @ rows.inputs
    g.index_add_(0, of_class[len(shared) :], own[1][samples] * rows.inputs[samples])
    weights.move(found, g, *at)


def _pairs(weights: Any, classes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Find which places, (n, m), name own classes: samples, columns, and numbers of the classes among own ones."""
    samples, columns = torch.nonzero(weights.part.has(classes), as_tuple=True)
    return samples, columns, classes[samples, columns] - weights.part.shard.first


def _entries(weights: Any, rows: CsrRows, classes: Tensor) -> Entries:
    of_entries = classes[rows.rows]
    entries, columns = torch.nonzero(weights.part.has(of_entries), as_tuple=True)
    local = of_entries[entries, columns] - weights.part.shard.first
    return Entries(entries, columns, local * weights.W.shape[1] + rows.columns[entries])


def _spans(n: int, rows: DenseRows) -> list[slice]:
    """Cut n places so that what is gathered for them stays small."""
    size = max(1, MOST_GATHERED // rows.inputs.shape[1])
    return [slice(first, first + size) for first in range(0, n, size)]

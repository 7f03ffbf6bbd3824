"""Steps over all classes, minibatch by minibatch and block by block of classes, on a device.

Of an objective whose slopes follow from sums of exponentials, such as the softmax, no more scores are held than those
of a block: a first pass has the logarithm of each block's sum, a second one scores the block anew and
moves it. Of the others, the scores of a minibatch are held.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from xsoftmax.gpu.layouts import Layout, cut
from xsoftmax.gpu.slopes import slopes_of
from xsoftmax.objectives import ScoredClasses


class Labels(NamedTuple):
    """Labels of n samples: pairs of a sample and a class, what each counts, and what all of a sample do, (n,)."""

    samples: Tensor
    classes: Tensor
    shares: Tensor
    sums: Tensor


class FullSteps:
    """A method's steps.

    Parameters
    ----------
    objective : NamedTuple
        As fitted to the data.
    layout : Layout
    auxiliary : Tensor of shape (n_labels, n_auxiliary), float64
        Changed in place.
    decay : float
        What weights lose in a step, per unit of the learning rate.
    most : int
        Scores that are held at a time, of an objective that can do with a block's.
    """

    def __init__(self, objective: Any, layout: Layout, auxiliary: Tensor, decay: float, most: int) -> None:
        self._objective, self._layout, self._auxiliary, self._decay = objective, layout, auxiliary, decay
        self._most, self._part = most, layout.part
        self._first = 0 if layout.part is None else layout.part.shard.first

    def take(self, rows: Any, samples: Tensor, labels: Labels, rate: float, number: int) -> Tensor:
        """Take one step along the mean over a minibatch; tell whether its scores are finite, a Tensor of one bool.

        ``rows`` are the samples' on the device, ``samples`` their numbers; ``number`` is of the steps before.
        """
        batch = self._layout.opened(rows)
        if not self._objective.sums_exponentials:
            return self._at_once(batch, samples, labels, rate, number)
        blocks = cut(self._layout.n_classes, self._most // batch.n)
        kept = self._layout.scores(batch, *blocks[0]) if len(blocks) == 1 else None
        log_sums = self._log_sums(batch, blocks, kept)
        offsets = log_sums - torch.log(labels.sums / batch.n)
        for first, stop in blocks:
            scores = self._layout.scores(batch, first, stop) if kept is None else kept
            slopes = scores.sub_(offsets[:, None]).exp_()
            self._move(batch, _less(slopes, labels, self._first + first), (first, stop), rate, number)
        self._layout.closed(batch, rate, number)
        return torch.isfinite(log_sums).all()

    def _log_sums(self, batch: Any, blocks: list[tuple[int, int]], kept: Tensor | None) -> Tensor:
        """Logarithm of the sum of e^score over all classes, (n,)."""
        of_blocks = []
        for block in blocks:
            scores = self._layout.scores(batch, *block) if kept is None else kept
            of_blocks.append(torch.logsumexp(scores, 1))
        own = torch.logsumexp(torch.stack(of_blocks), 0)
        return own if self._part is None else self._part.log_sums(own)

    def _at_once(self, batch: Any, samples: Tensor, labels: Labels, rate: float, number: int) -> Tensor:
        """As ``take``, of an objective that sees all scores of a sample."""
        n_own, y = self._layout.n_classes, labels.classes[:, None]
        scores = self._layout.scores(batch, 0, n_own)
        if self._part is not None:
            scores = self._part.joined(scores)
        classes = torch.arange(scores.shape[1], device=y.device).expand(scores.shape)
        weights = torch.ones_like(scores).scatter_(1, y, 0.0)
        of_true = scores.gather(1, y)[:, 0]
        nothing = torch.zeros_like(scores)
        draws = ScoredClasses(of_true, torch.zeros_like(of_true), classes, scores, weights, nothing)
        found = slopes_of(self._objective, rate, self._auxiliary[samples], draws)
        self._auxiliary[samples] = found.state
        slopes = found.of_others.scatter(1, y, found.of_true[:, None]) / batch.n
        self._move(batch, slopes[:, self._first : self._first + n_own], (0, n_own), rate, number)
        self._layout.closed(batch, rate, number)
        return torch.isfinite(scores).all()

    def _move(self, batch: Any, slopes: Tensor, block: tuple[int, int], rate: float, number: int) -> None:
        """Let the weights of a block of classes decay, and move them along the sum of slope times sample."""
        if self._decay:
            self._layout.shrink(*block, 1 - rate * self._decay, number)
        self._layout.move(batch, slopes, *block, rate, number)


def _less(slopes: Tensor, labels: Labels, first: int) -> Tensor:
    """Take the labels' shares of a batch's mean from the slopes of a block of classes, those outside it left out."""
    places = labels.classes - first
    inside = (places >= 0) & (places < slopes.shape[1])
    places = places.clamp(0, slopes.shape[1] - 1)
    shares = torch.where(inside, -labels.shares / len(slopes), 0.0).to(slopes.dtype)
    return slopes.index_put_((labels.samples, places), shares, accumulate=True)

"""Sampled and adaptive softmax for sparse rows, which never become dense: the same steps as those for dense rows."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, cast

import numpy as np
import torch
from protocol import Data
from pytorch_models import AdaptiveSoftmax, Batch, Model, SampledSoftmax, bag
from torch import Tensor, nn
from torch.nn import functional

EPSILON = 1e-10  # torch.optim.Adagrad's


class SampledSoftmaxOfSparseRows(SampledSoftmax):
    """The same; a step takes the block of weights of the features and classes that occur, and moves it.

    All other weights have no gradient: this is ``torch.optim.Adagrad``'s step, without rows of all features.
    """

    def __init__(self, data: Data, settings: dict[str, Any], counts: np.ndarray) -> None:
        Model.__init__(self, data, settings, counts)
        self.cumulative = torch.cumsum(self.log_q.double().exp(), 0)
        self.blocks = [Blocks(self.n_features, self.n_classes), Blocks(1, self.n_classes)]

    def loss(self, batch: Batch, y: Tensor) -> Tensor:
        """Mean over the batch."""
        others = self.draw(self.settings["n_sampled"])
        classes, places = torch.unique(torch.cat([y, others]), return_inverse=True)
        features, columns = torch.unique(batch.indices.long(), return_inverse=True)
        weights, bias = self.blocks[0].take(features, classes), self.blocks[1].take(torch.zeros(1).long(), classes)
        scores = bag(batch._replace(indices=columns, offsets=batch.offsets.long()), weights) + bias
        true = scores.gather(1, places[: batch.n, None])[:, 0]
        return self.corrected(true, scores[:, places[batch.n :]], y, others)

    def scores(self, batch: Batch) -> Tensor:
        """Scores of all classes, shape (n, n_classes)."""
        return bag(batch, self.blocks[0].weights) + self.blocks[1].weights

    def optimizer(self) -> Any:
        """Adagrad, of blocks."""
        return AdagradOfBlocks(self.blocks, self.settings["learning_rate"])


class Blocks:
    """A matrix of weights, at zero, with Adagrad's sums; a block of it is taken, and moved by its gradient."""

    def __init__(self, n_rows: int, n_columns: int) -> None:
        self.weights, self.sums = torch.zeros(n_rows, n_columns), torch.zeros(n_rows, n_columns)

    def take(self, rows: Tensor, columns: Tensor) -> Tensor:
        """Weights of some rows and columns, each named once."""
        self.cells = rows[:, None] * self.weights.shape[1] + columns
        self.block = self.weights.take(self.cells).requires_grad_()
        return self.block

    def move(self, rate: float) -> None:
        """Put the block back, a step of Adagrad further."""
        gradient = cast(Tensor, self.block.grad)
        sums = self.sums.take(self.cells) + gradient * gradient
        self.sums.put_(self.cells, sums)
        self.weights.put_(self.cells, self.block.detach() - rate * gradient / (sums.sqrt() + EPSILON))


class AdagradOfBlocks:
    """What ``step`` asks of an optimizer."""

    def __init__(self, blocks: list[Blocks], rate: float) -> None:
        self.blocks, self.rate = blocks, rate

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Do nothing: blocks are new ones each time."""

    def step(self) -> None:
        """Move all blocks."""
        for block in self.blocks:
            block.move(self.rate)


class AdaptiveSoftmaxOfSparseRows(AdaptiveSoftmax):
    """The same; the layers that see features are lookups with sparse gradients."""

    def __init__(self, data: Data, settings: dict[str, Any], counts: np.ndarray) -> None:
        super().__init__(data, settings, counts)
        whole, self.cutoffs = self.head, self.head.cutoffs
        self.bias = nn.Parameter(whole.head.bias.detach().clone())
        self.inner = nn.ParameterList([_turned(layer.weight) for layer in (whole.head, *(t[0] for t in whole.tail))])
        self.outer = nn.ModuleList([tail[1] for tail in whole.tail])
        self.shortlist = whole.shortlist_size
        del self.head

    def loss(self, batch: Batch, y: Tensor) -> Tensor:
        """Mean over the batch."""
        places = self.place[y]
        head = functional.log_softmax(bag(batch, self.inner[0], sparse=True) + self.bias, 1)
        found = head.gather(1, places.clamp(max=self.shortlist - 1)[:, None])[:, 0] * (places < self.shortlist)
        for i, (low, high) in enumerate(pairwise(self.cutoffs)):
            rows = ((places >= low) & (places < high)).nonzero()[:, 0]
            if len(rows):
                tail = self.tail(i, chosen_rows(batch, rows)).gather(1, places[rows, None] - low)[:, 0]
                found = found.index_add(0, rows, head[rows, self.shortlist + i] + tail)
        return -found.mean()

    def tail(self, i: int, batch: Batch) -> Tensor:
        """Log-probabilities within a cluster of classes."""
        return functional.log_softmax(self.outer[i](bag(batch, self.inner[i + 1], sparse=True)), 1)

    def scores(self, batch: Batch) -> Tensor:
        """Log-probabilities, shape (n, n_classes)."""
        head = functional.log_softmax(bag(batch, self.inner[0]) + self.bias, 1)
        tails = [self.tail(i, batch) + head[:, self.shortlist + i, None] for i in range(len(self.outer))]
        return torch.cat([head[:, : self.shortlist], *tails], 1)[:, self.place]


def chosen_rows(batch: Batch, rows: Tensor) -> Batch:
    """Some of a batch's sparse rows."""
    ends = torch.cat([batch.offsets[1:], torch.tensor([len(batch.indices)], dtype=torch.int32)])
    starts, lengths = batch.offsets[rows].long(), (ends - batch.offsets)[rows].long()
    offsets = lengths.cumsum(0) - lengths
    entries = torch.arange(int(lengths.sum())) + torch.repeat_interleave(starts - offsets, lengths)
    return Batch(None, batch.indices[entries], offsets.to(torch.int32), batch.values[entries], len(rows))


def _turned(weight: Tensor) -> nn.Parameter:
    return nn.Parameter(weight.detach().t().contiguous())


OF_SPARSE_ROWS: dict[str, Callable[..., Any]] = {
    "sampled-softmax": SampledSoftmaxOfSparseRows,
    "adaptive-softmax": AdaptiveSoftmaxOfSparseRows,
}

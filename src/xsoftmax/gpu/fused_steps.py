"""Steps of exact softmax over dense rows on a device, in any precision: those of ``xsoftmax.gpu.fused_softmax``."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from xsoftmax.gpu.features import DenseRows
from xsoftmax.gpu.full_steps import Labels
from xsoftmax.gpu.fused_softmax import move, step, sums_of
from xsoftmax.gpu.precision import ClassWeights
from xsoftmax.gpu.sharded import combined
from xsoftmax.gpu.weights import WeightsAndBiases


class FusedSteps:
    """A method's steps: as ``xsoftmax.gpu.full_steps.FullSteps``, of samples with one label each.

    Parameters
    ----------
    weights : WeightsAndBiases
    has_biases : bool
        Without them they stay 0.
    decay : float
        What weights lose in a step, per unit of the learning rate.
    block : int
        How many classes are scored at a time.
    seed : int
        Of the fit, for stochastic rounding.
    """

    def __init__(self, weights: WeightsAndBiases, has_biases: bool, decay: float, block: int, seed: int) -> None:
        self._weights, self._has_biases, self._decay = weights, has_biases, decay
        self._block, self._seed = block, seed

    def take(self, rows: DenseRows, samples: Any, labels: Labels, rate: float, number: int) -> Tensor:
        """See ``FullSteps``."""
        W = self._weights.of_samples.rows
        b = self._weights.biases.W[:, 0] if self._has_biases else None
        X = rows.inputs[:, :-1].to(W.precision.factors).contiguous()
        W.begin_step(self._seed, number)
        rule = _Rule(self._weights, rate, rate * self._decay, number)
        part = self._weights.of_samples.part
        if part is None:
            return torch.isfinite(step(X, labels.classes, W, b, rule, block=self._block))
        own = {"first_class": part.shard.first, "block": self._block}
        sums = combined(sums_of(X, labels.classes, W, b, **own), part.ranks)
        move(X, labels.classes, W, b, sums.log_partition, rule, **own)
        return torch.isfinite(sums.log_likelihood.mean())


class _Rule(NamedTuple):
    """That of the weights' optimizer, after they have lost a share."""

    weights: WeightsAndBiases
    rate: float
    lost: float
    number: int

    def move(self, W: ClassWeights, b: Tensor | None, rows: slice, of_W: Tensor, of_b: Tensor | None) -> None:
        """See ``xsoftmax.gpu.fused_softmax.Rule``."""
        if self.lost:
            self.weights.of_samples.shrink(rows, 1 - self.lost, self.number)
        self.weights.of_samples.move(rows, of_W, self.rate, self.number)
        if of_b is not None:
            self.weights.biases.move(rows, of_b[:, None], self.rate, self.number)

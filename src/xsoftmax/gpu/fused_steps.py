"""Steps of exact softmax over dense rows on a device, in any precision: those of ``xsoftmax.gpu.fused_softmax``."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from xsoftmax.gpu.elementwise import Block, Elementwise, chosen
from xsoftmax.gpu.features import DenseRows
from xsoftmax.gpu.full_steps import Labels
from xsoftmax.gpu.fused_softmax import move, step, sums_of
from xsoftmax.gpu.precision import ClassWeights
from xsoftmax.gpu.replay import Replayed
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
    elementwise : Elementwise, optional
        What computes on a block's scores; by default what ``xsoftmax.gpu.elementwise.chosen`` gives.
    """

    def __init__(
        self,
        weights: WeightsAndBiases,
        has_biases: bool,
        decay: float,
        block: int,
        seed: int,
        elementwise: Elementwise | None = None,
    ) -> None:
        self._weights, self._has_biases, self._decay = weights, has_biases, decay
        self._block, self._seed = block, seed
        self._elementwise = elementwise
        generator = weights.of_samples.rows.generator
        self._replayed = Replayed([] if generator is None else [generator])
        self._n_replayed = 0

    def get_ready(self, n_samples: int) -> Elementwise:
        """Give what computes on scores, chosen for minibatches of a size, which are replayed, when first asked for.

        On a card that takes up to a minute.
        """
        if self._elementwise is None:
            rows = self._weights.of_samples.rows
            block = Block(n_samples, self._block, rows.precision, self._has_biases)
            self._elementwise = chosen(rows.values.device, block)
        self._n_replayed = self._n_replayed or n_samples
        return self._elementwise

    def take(self, rows: DenseRows, samples: Any, labels: Labels, rate: float, number: int) -> Tensor:
        """See ``FullSteps``."""
        W = self._weights.of_samples.rows
        X = rows.inputs[:, :-1].to(W.precision.factors).contiguous()
        self.get_ready(len(X))
        W.begin_step(self._seed, number)
        # tensors, as what is replayed has the same numbers each time
        of_period = number - int(self._weights.period[0])
        at = (torch.full((), each, dtype=W.precision.sums, device=X.device) for each in (rate, of_period))
        if self._weights.of_samples.part is not None or len(X) != self._n_replayed:
            return self._take(X, labels.classes, *at)
        return self._replayed(self._take, X, labels.classes, *at)

    def _take(self, X: Tensor, classes: Tensor, rate: Tensor, number: Tensor) -> Tensor:
        W, part = self._weights.of_samples.rows, self._weights.of_samples.part
        b = self._weights.biases.W[:, 0] if self._has_biases else None
        rule = _Rule(self._weights, rate, rate * self._decay if self._decay else None, number)
        how: dict[str, Any] = {"block": self._block, "elementwise": self.get_ready(len(X))}
        if part is None:
            return torch.isfinite(step(X, classes, W, b, rule, **how))
        own = how | {"first_class": part.shard.first}
        sums = combined(sums_of(X, classes, W, b, **own), part.ranks)
        move(X, classes, W, b, sums.log_partition, rule, **own)
        return torch.isfinite(sums.log_likelihood.mean())


class _Rule(NamedTuple):
    """That of the weights' optimizer, after they have lost a share."""

    weights: WeightsAndBiases
    rate: Tensor
    lost: Tensor | None
    number: Tensor

    def move(self, W: ClassWeights, b: Tensor | None, rows: slice, of_W: Tensor, of_b: Tensor | None) -> None:
        """See ``xsoftmax.gpu.fused_softmax.Rule``."""
        if self.lost is not None:
            self.weights.of_samples.shrink(rows, 1 - self.lost, self.number)
        self.weights.of_samples.move(rows, of_W, self.rate, self.number)
        if of_b is not None:
            self.weights.biases.move(rows, of_b[:, None], self.rate, self.number)

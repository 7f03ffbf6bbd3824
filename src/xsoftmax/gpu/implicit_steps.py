"""Minibatches whose step is solved for the weights that it ends at, on a device: see ``gpu/implicit_batch.py``."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from xsoftmax.gpu.draws import Sampler, UniformSampler
from xsoftmax.gpu.features import DenseRows, Rows
from xsoftmax.gpu.implicit_batch import Metric, Problem, solve
from xsoftmax.gpu.sampled_steps import Chosen, Clock
from xsoftmax.gpu.weights import Weights


class Penalty(NamedTuple):
    """What weights lose: l2 per training row, and b_k: see ``xsoftmax.kernels.implicit_batch.Inclusion``.

    ``inverse``, float64 of shape (2, n_classes), is of a full batch and of the last one; ``share``, two floats, what
    b_k takes for the probability of a draw outside the labels, or 0.
    """

    l2: float
    inverse: Tensor
    share: tuple[float, float]


class Classes(NamedTuple):
    """Classes of a batch: its distinct labels, sorted, and behind them what is drawn; and their weights, float64."""

    numbers: Tensor
    weights: Tensor
    n_labels: int
    own: Tensor


class Compact(NamedTuple):
    """Samples by the features that one of them has, (n, m), and where these are; the constant one is the last."""

    inputs: Tensor
    columns: Tensor | slice


class JointSteps:
    """A method's steps; a batch shares its draws.

    Parameters
    ----------
    size : int
        Samples of a batch.
    n_draws : int
    sampler : Sampler
    weights : Weights
        Of shape (n_classes, n_features + 1).
    auxiliary : Tensor of shape (n_samples, 1), float64
        Changed in place.
    penalty : Penalty
    """

    def __init__(
        self, size: int, n_draws: int, sampler: Sampler, weights: Weights, auxiliary: Tensor, penalty: Penalty
    ) -> None:
        self._size, self._n_draws, self._sampler = size, n_draws, sampler
        self._weights, self._auxiliary, self._penalty = weights, auxiliary, penalty

    def run(self, chosen: Chosen, clock: Clock, rate: float) -> Tensor:
        """See ``xsoftmax.gpu.sampled_steps.SampledSteps``."""
        n, finite = len(chosen.y), []
        for number, first in enumerate(range(0, n, self._size), clock.number):
            finite.append(self._take(chosen.cut(first, min(first + self._size, n)), rate, number))
        return torch.stack(finite)

    def _take(self, batch: Chosen, rate: float, number: int) -> Tensor:
        classes = self._classes_of(batch)
        divisors = self._divisors(classes, len(batch.y), rate)
        if self._penalty.l2:
            left = (1.0 / divisors)[:, None].to(self._weights.W.dtype)
            self._weights.shrink((classes.numbers, slice(0, -1)), left, number)
        rows = compacted(batch.rows)
        scores = (self._weights.W[_places(classes.numbers, rows.columns)] @ rows.inputs.T).double()
        finite = torch.isfinite(scores).all()
        if not finite:
            return finite
        inputs = rows.inputs.double()
        constant, features = float(inputs[0, -1]), inputs[:, :-1]
        metric = Metric(features @ features.T, divisors[:, None], constant)
        u, kappa = self._auxiliary[batch.samples, 0], rate / len(batch.y)
        pulls, u = solve(Problem(classes.own, torch.log(classes.weights), u, kappa, metric), scores)
        self._auxiliary[batch.samples, 0] = u
        moves = pulls / divisors[:, None] @ inputs
        moves[:, -1] = constant * pulls.sum(1)  # biases do not shrink
        self._weights.move(_places(classes.numbers, rows.columns), -moves.to(self._weights.W.dtype), 1.0, number)
        return finite

    def _classes_of(self, batch: Chosen) -> Classes:
        """Find the labels, and draw classes outside of them, repeats gathered."""
        labels, own = torch.unique(batch.y, return_inverse=True)
        if isinstance(self._sampler, UniformSampler):
            drawn, weights = self._sampler.draw_outside(labels, batch.states[:1], self._n_draws)
        else:
            found = self._sampler.draw(batch.samples[:1], batch.y[:1], batch.states[:1], self._n_draws)
            counts = (found.weights[0] > 0) & ~torch.isin(found.classes[0], labels)
            drawn, of_class = torch.unique(found.classes[0][counts], return_inverse=True)
            weights = torch.zeros(len(drawn), dtype=torch.float64, device=drawn.device)
            weights.index_add_(0, of_class, found.weights[0][counts].double())
        ones = torch.ones(len(labels), dtype=torch.float64, device=labels.device)
        return Classes(torch.cat([labels, drawn]), torch.cat([ones, weights.double()]), len(labels), own)

    def _divisors(self, classes: Classes, n: int, rate: float) -> Tensor:
        """Give c_k, float64."""
        kind = int(n != self._size)
        b, share = self._penalty.inverse[kind][classes.numbers], self._penalty.share[kind]
        if share > 0.0:
            b[classes.n_labels :] *= share * classes.weights[classes.n_labels :]
        return 1.0 + rate * self._penalty.l2 * b


def compacted(rows: Rows) -> Compact:
    """Give a minibatch by the features that it has."""
    if isinstance(rows, DenseRows):
        return Compact(rows.inputs, slice(None))
    columns, of_column = torch.unique(rows.columns, return_inverse=True)
    inputs = torch.zeros((rows.n, len(columns)), dtype=rows.values.dtype, device=columns.device)
    inputs.index_put_((rows.rows, of_column), rows.values, accumulate=True)
    return Compact(inputs, columns)


def _places(classes: Tensor, columns: Any) -> Any:
    return classes if isinstance(columns, slice) else (classes[:, None], columns[None, :])

"""Steps on a few drawn classes, minibatch by minibatch: those of ``xsoftmax.solvers.sampled``, on a device."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from xsoftmax.gpu import bits
from xsoftmax.gpu.candidates import move, move_alike, score, score_alike
from xsoftmax.gpu.draws import Drawn, Sampler
from xsoftmax.gpu.features import CsrRows
from xsoftmax.gpu.shrinkage import Shrinkage
from xsoftmax.gpu.slopes import Slopes, slopes_of
from xsoftmax.gpu.table import BehindTable
from xsoftmax.gpu.weights import Weights
from xsoftmax.objectives import ScoredClasses

# Parts an objective's own random numbers from those of the proposal: as in ``xsoftmax.kernels.coefficients``.
_OWN_NUMBERS = 0x5851F42D4C957F2D


class Clock(NamedTuple):
    """Where in a fit some steps begin.

    ``key`` is that of the epoch's random numbers, as int64; ``position``, samples of the epoch before; ``number``,
    steps of the fit before.
    """

    key: int
    position: int
    number: int


class Chosen(NamedTuple):
    """Some training rows on the device, their numbers, their classes, and the random states of their steps."""

    rows: Any
    samples: Tensor
    y: Tensor
    states: Tensor

    def cut(self, first: int, stop: int) -> "Chosen":
        """Rows ``first`` to ``stop``."""
        return Chosen(self.rows.cut(first, stop), *(each[first:stop] for each in self[1:]))


class SampledSteps:
    """A method's steps.

    Parameters
    ----------
    method : Method
    objective : NamedTuple
        As fitted to the data.
    sampler : Sampler
    n_draws : int
        Classes that a sample's step looks at beside its own.
    weights : Weights
        Of shape (n_classes, n_features + 1).
    auxiliary : Tensor of shape (n_samples, n_auxiliary), float64
        Changed in place.
    shrinkage : Shrinkage
    table : BehindTable, optional
        What rows go through, and what moves along with the classes.
    """

    def __init__(
        self,
        method: Any,
        objective: Any,
        sampler: Sampler,
        n_draws: int,
        weights: Weights,
        auxiliary: Tensor,
        shrinkage: Shrinkage,
        table: BehindTable | None = None,
    ) -> None:
        self._objective, self._sampler, self._n_draws = objective, sampler, n_draws
        self._size, self._shared = method.batch
        self._weights, self._auxiliary, self._shrinkage = weights, auxiliary, shrinkage
        self._table = table
        self._threshold = getattr(method.optimizer, "threshold", None)

    def run(self, chosen: Chosen, clock: Clock, rate: float) -> Tensor:
        """Take the steps of some rows; tell of each step whether its scores are finite, a Tensor of bool."""
        drawn, log_q = self._drawn(chosen), self._log_q_of(chosen)
        noise = self._noise(chosen, clock)
        finite = []
        for number, first in enumerate(range(0, len(chosen.y), self._size), clock.number):
            at = slice(first, first + self._size)
            here = slice(first // self._size, first // self._size + 1) if self._shared else at
            of_batch = Drawn(*(each[here] for each in drawn))
            step = self._take_shared if self._shared else self._take_own
            finite.append(
                step(
                    self._opened(chosen.cut(first, min(at.stop, len(chosen.y)))),
                    of_batch,
                    log_q[at],
                    None if noise is None else noise[at],
                    (rate, number),
                )
            )
        return torch.stack(finite)

    def _drawn(self, chosen: Chosen) -> Drawn:
        """Draw for all rows, or, where a batch shares its draws, for the first row of each."""
        every = self._size if self._shared else 1
        rows, states = chosen.samples[::every], chosen.states[::every]
        leaves_out = self._objective.excludes_true and not self._shared
        excluded = chosen.y if leaves_out else torch.full_like(rows, -1)
        drawn = self._sampler.draw(rows, excluded, states, self._n_draws)
        if self._objective.excludes_true:
            return drawn
        return drawn._replace(weights=torch.full_like(drawn.log_q, 1 / self._n_draws))

    def _log_q_of(self, chosen: Chosen) -> Tensor:
        if self._objective.uses_log_q:
            return self._sampler.log_probability(chosen.samples, chosen.y).double()
        return torch.zeros(len(chosen.y), dtype=torch.float64, device=chosen.y.device)

    def _noise(self, chosen: Chosen, clock: Clock) -> Tensor | None:
        if not self._objective.n_numbers:
            return None
        positions = clock.position + torch.arange(len(chosen.y), device=chosen.y.device)
        states = bits.starts(clock.key ^ _OWN_NUMBERS, positions)
        return bits.open_uniform(bits.numbers(states, self._objective.n_numbers))

    def _opened(self, batch: Chosen) -> Chosen:
        """Show a batch as classes see it."""
        return batch if self._table is None else batch._replace(rows=self._table.opened(batch.rows))

    def _take_own(
        self, batch: Chosen, drawn: Drawn, log_q: Tensor, noise: Tensor | None, at: tuple[float, int]
    ) -> Tensor:
        """Take a step whose samples have draws of their own."""
        classes = torch.cat([batch.y[:, None], drawn.classes], 1)
        scores = score(self._weights, batch.rows, classes)
        draws = self._scored(batch, drawn, log_q, scores)
        of_true, of_others, _ = self._slopes(batch, draws, noise, at[0])
        slopes = torch.cat([of_true[:, None], of_others], 1).to(scores.dtype) / len(batch.y)
        self._shrink(batch, drawn, *at)
        at = self._moved_at(at)
        if self._table is not None:
            self._table.pull_each(batch.rows, classes, slopes)
        move(self._weights, batch.rows, classes, slopes, *at)
        self._closed(batch, at)
        return torch.isfinite(scores).all()

    def _take_shared(
        self, batch: Chosen, drawn: Drawn, log_q: Tensor, noise: Tensor | None, at: tuple[float, int]
    ) -> Tensor:
        """Take a step whose samples look at the same drawn classes."""
        classes, of_class = torch.unique(drawn.classes[0], return_inverse=True)
        merged = torch.zeros(len(classes), device=classes.device).index_add_(0, of_class, drawn.weights[0])
        alike = torch.zeros_like(merged).index_copy_(0, of_class, drawn.log_q[0])
        n = len(batch.y)
        each = Drawn(*(array.expand(n, -1) for array in (classes, alike, merged)))
        own = batch.y[:, None]
        if isinstance(batch.rows, CsrRows):
            return self._take_own(batch, each, log_q, noise, at)
        shared = score_alike(self._weights, batch.rows, classes)
        scores = torch.cat([score(self._weights, batch.rows, own), shared], 1)
        of_true, of_others, _ = self._slopes(batch, self._scored(batch, each, log_q, scores), noise, at[0])
        of_true, of_others = (array.to(scores.dtype) / n for array in (of_true, of_others))
        self._shrink(batch, each, *at)
        if self._table is not None:
            self._table.pull_each(batch.rows, own, of_true[:, None])
            self._table.pull_alike(batch.rows, classes, of_others)
        move_alike(self._weights, batch.rows, classes, of_others, (own, of_true[:, None]), at)
        self._closed(batch, at)
        return torch.isfinite(scores).all()

    def _closed(self, batch: Chosen, at: tuple[float, int]) -> None:
        if self._table is not None:
            self._table.closed(batch.rows, *at)

    def _shrink(self, batch: Chosen, drawn: Drawn, rate: float, number: int) -> None:
        """Let weights shrink, before they move: a sample's own class weighs 1, among its draws nothing."""
        own = batch.y[:, None]
        others = torch.where(drawn.classes == own, 0.0, drawn.weights)
        touches = torch.cat([torch.ones_like(others[:, :1]), others], 1) / len(own)
        self._shrinkage.apply(self._weights, torch.cat([own, drawn.classes], 1), touches, rate, number)

    def _scored(self, batch: Chosen, drawn: Drawn, log_q: Tensor, scores: Tensor) -> ScoredClasses:
        """Describe the classes of a batch to the objective, float64; the true one's are the first of the scores."""
        weights = drawn.weights
        if self._objective.excludes_true:
            weights = torch.where(drawn.classes == batch.y[:, None], 0.0, weights)
        scores = scores.double()
        others = (scores[:, 1:], weights.double(), drawn.log_q.double())
        return ScoredClasses(scores[:, 0], log_q, drawn.classes, *others)

    def _moved_at(self, at: tuple[float, int]) -> tuple[float, int]:
        """Give the rate that slopes are multiplied by, and the steps before."""
        return at

    def _slopes(self, batch: Chosen, draws: ScoredClasses, noise: Tensor | None, rate: float) -> Slopes:
        """Differentiate, and keep what the objective keeps of each sample."""
        state = self._auxiliary[batch.samples]
        found = slopes_of(self._objective, rate, state, draws, noise, self._threshold)
        self._auxiliary[batch.samples] = found.state
        return found

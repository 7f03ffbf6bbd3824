"""The solver of methods that look at a few drawn classes: single steps or minibatches, class-major weights."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numba import njit

from xsoftmax.internal.threads import Team, split_evenly
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.batch import sweep_batches
from xsoftmax.kernels.implicit_batch import Touch, sweep_implicit
from xsoftmax.kernels.layout import Scaled
from xsoftmax.kernels.random import stream
from xsoftmax.kernels.ridge import Ridge
from xsoftmax.kernels.rows import Csr, Dense, n_columns
from xsoftmax.kernels.shared_batch import sweep_shared
from xsoftmax.kernels.steps import Clock, log_probability
from xsoftmax.kernels.sweep import sweep
from xsoftmax.methods import Method, solves_batches
from xsoftmax.proposals import Proposal, TrainingSet
from xsoftmax.training.implicit import touch_of

DEFAULT_CHUNK = 2**15
# Of a call, which nothing interrupts; of many draws a step there are fewer steps.
MOST_DRAWS = 2**23


class SampledSolver:
    """Steps on a few drawn classes, of one sample or a minibatch; class-major weights in the optimizer's layout."""

    converged = False

    def __init__(
        self,
        method: Method,
        objective: Any,
        proposal: Proposal,
        data: TrainingSet,
        features: Dense | Csr,
        y: np.ndarray,
        states: np.ndarray,
        team: Team,
    ) -> None:
        self.states, self._team = states, team
        self._batch, self._seed = method.batch, data.seed
        n_draws = method.batch.size * method.objective.n_sampled
        steps = max(1, min(DEFAULT_CHUNK // method.batch.size, MOST_DRAWS // n_draws))
        self._refresh: Callable[[np.ndarray], None] | None = None
        if method.proposal.adaptive:
            steps, self._refresh = proposal.refresh_steps, proposal.refresh  # type: ignore[attr-defined]
        self.chunk = steps * method.batch.size
        self._batches_per_epoch = -(-y.size // method.batch.size)
        draws_from = proposal.kernel(data.X)
        optimizer = method.optimizer.fit(data)
        if method.ridge:
            optimizer = with_ridge(method, proposal, data.class_counts)
        self._touch: Touch | None = None
        if solves_batches(method):
            optimizer = Ridge(method.optimizer, np.float32(method.ridge / max(1, y.size)), np.empty(0, np.float32))
            n_sampled = method.objective.n_sampled
            self._touch = touch_of(proposal, draws_from, data.class_counts, n_sampled, method.batch.size)
        self._parts = (objective, draws_from, optimizer, features, y)
        self._layout = Scaled if method.ridge or self._touch is not None else method.optimizer.layout
        self._dense = isinstance(features, Dense)
        accumulator = getattr(method.optimizer, "initial_accumulator", 0.0)
        self._W = self._layout.allocate(data.n_classes, n_columns(features) + 1, self._dense, accumulator)
        log_q = log_q_of(draws_from, y) if method.objective.uses_log_q or method.bias_start != "zero" else None
        self._log_q = log_q if method.objective.uses_log_q else None
        if log_q is not None and method.bias_start == "minus-log-q":
            self._layout.start_biases(self._W, self._dense, minus_mean_log_q(log_q, y, data.n_classes))

    def advance(self, samples: np.ndarray, epoch: int, first: int, rate: float) -> int:
        """See ``Solver``."""
        if self._refresh is not None:
            self._refresh(self.weights())
        size = self._batch.size
        parts = [slice(part.start * size, part.stop * size) for part in self._parts_of(-(-samples.size // size))]
        used = self._team.run([self._task(samples[part], epoch, first + part.start, rate) for part in parts])
        return sum(used)

    def _parts_of(self, n_steps: int) -> list[slice]:
        """What each thread does of some steps; they change the weights without locks."""
        return split_evenly(n_steps, self._team.n_threads) if n_steps else [slice(0, 0)]

    def _task(self, samples: np.ndarray, epoch: int, first: int, rate: float) -> Callable[[], int]:
        """The steps of one thread, and how many samples they used."""
        size, shared = self._batch
        clock = Clock(np.uint64(stream(self._seed, epoch)), first, epoch * self._batches_per_epoch + first // size)
        arguments = (*self._parts, self.states, self._W, samples, clock, np.float32(rate))
        if self._touch is not None:
            return partial(sweep_implicit, *arguments, size, self._touch)
        if shared:
            return partial(sweep_shared, *arguments, size)
        if size > 1:
            return partial(sweep_batches, *arguments, size)
        return partial(sweep, *arguments, self._log_q)

    def weights(self) -> np.ndarray:
        """See ``Solver``; a view."""
        return self._layout.weights(self._W, self._dense)

    def arrays(self) -> Mapping[str, np.ndarray]:
        """See ``Solver``."""
        return {"W": self._W, "states": self.states}


def with_ridge(method: Method, proposal: Proposal, class_counts: np.ndarray) -> Any:
    """The optimizer of single steps, with the method's ridge.

    A step touches class k with probability n_k / N + (1 - n_k / N) P(k is drawn): Fagan and Iyengar 2018, eq. 6.
    """
    n_samples = class_counts.sum()
    inclusion = proposal.inclusion(method.objective.n_sampled) if method.batch.size == 1 else None
    share = class_counts / n_samples
    touch = np.empty(0) if inclusion is None else share + (1 - share) * inclusion
    inverse = np.divide(1, touch, where=touch > 0, out=np.zeros_like(touch))
    return Ridge(method.optimizer, np.float32(method.ridge / n_samples), inverse.astype(np.float32))


@njit(**OPTIONS)
def log_q_of(draws_from, labels):
    """Log-probability of each row's own label, float32."""
    log_q = np.empty(labels.size, np.float32)
    for i in range(labels.size):
        log_q[i] = log_probability(draws_from, i, np.int64(labels[i]))
    return log_q


def minus_mean_log_q(log_q: np.ndarray, labels: np.ndarray, n_classes: int) -> np.ndarray:
    """Minus the mean of log q over the training rows of each class; 0 for a class without rows."""
    total = np.bincount(labels, -log_q.astype(np.float64), n_classes)
    return total / np.maximum(np.bincount(labels, minlength=n_classes), 1)

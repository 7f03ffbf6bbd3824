"""What turns samples into better weights: the sampled loop, minibatches over all classes, or L-BFGS."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from numba import njit

from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.batch import sweep_batches
from xsoftmax.kernels.implicit_batch import Touch, sweep_implicit
from xsoftmax.kernels.layout import Scaled
from xsoftmax.kernels.minibatch import sweep_all
from xsoftmax.kernels.random import stream
from xsoftmax.kernels.ridge import Ridge
from xsoftmax.kernels.rows import Csr, Dense, features_of
from xsoftmax.kernels.steps import Clock, log_probability
from xsoftmax.kernels.sweep import sweep
from xsoftmax.methods import Method, solves_batches
from xsoftmax.proposals import Proposal, TrainingSet
from xsoftmax.training.implicit import touch_of
from xsoftmax.training.lbfgs import LbfgsSolver

DEFAULT_CHUNK = 2**15


class Solver(Protocol):
    """Moves its weights by chunks of an epoch.

    Attributes
    ----------
    chunk : int
        Samples per call of ``advance``: part of a fit's identity.
    states : ndarray of shape (n_samples, n_states), float64
        What the objective keeps per sample.
    """

    chunk: int
    states: np.ndarray

    @property
    def converged(self) -> bool:
        """Whether going on would change nothing."""

    def advance(self, samples: np.ndarray, epoch: int, first: int, rate: float) -> int:
        """Use ``samples``, from position ``first`` of ``epoch``; fewer are used only if scores are not finite."""

    def weights(self) -> np.ndarray:
        """Weights with one class per row, float32 of shape (n_classes, n_features + 1); perhaps a view."""

    def arrays(self) -> Mapping[str, np.ndarray]:
        """Everything that changes: saved in a checkpoint, and written back into by one."""


def make_solver(method: Method, objective: Any, proposal: Proposal, data: TrainingSet) -> Solver:
    """Choose the solver that a method needs; ``objective`` and ``proposal`` are those fitted to the data."""
    X, y, n_classes = data.X, np.ascontiguousarray(data.y, np.int32), data.n_classes
    states = initial_states(method, y.size, n_classes)
    if method.optimizer.layout is None:
        return LbfgsSolver(objective, method.optimizer, X, y, n_classes, method.bias, method.ridge, states)
    features = features_of(X, method.bias)
    if method.proposal.draws:
        return SampledSolver(method, objective, proposal, data, features, y, states)
    return MinibatchSolver(method, objective, features, y, states, n_classes)


def initial_states(method: Method, n_samples: int, n_classes: int) -> np.ndarray:
    """What the objective keeps per sample, before the first step: float64 of shape (n_samples, n_states)."""
    if method.objective.n_states:
        return method.objective.initial_states(n_samples, n_classes)
    return np.zeros((n_samples, 0))


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
def minus_mean_log_q(draws_from, labels, n_classes):
    """Minus the mean of log q(k | x) over the training rows x of each class k; 0 for a class without rows."""
    total, count = np.zeros(n_classes), np.zeros(n_classes)
    for i in range(labels.size):
        total[labels[i]] -= log_probability(draws_from, i, np.int64(labels[i]))
        count[labels[i]] += 1
    return total / np.maximum(count, 1.0)


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
    ) -> None:
        self.states = states
        self._batch, self._seed = method.batch, data.seed
        steps = max(1, DEFAULT_CHUNK // method.batch.size)
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
        if method.bias_start == "minus-log-q":
            self._layout.start_biases(self._W, self._dense, minus_mean_log_q(draws_from, y, data.n_classes))

    def advance(self, samples: np.ndarray, epoch: int, first: int, rate: float) -> int:
        """See ``Solver``."""
        if self._refresh is not None:
            self._refresh(self.weights())
        size, shared = self._batch
        step = epoch * self._batches_per_epoch + first // size
        clock = Clock(np.uint64(stream(self._seed, epoch)), first, step)
        arguments = (*self._parts, self.states, self._W, samples, clock, np.float32(rate))
        if self._touch is not None:
            return sweep_implicit(*arguments, size, self._touch)
        return sweep(*arguments) if size == 1 else sweep_batches(*arguments, size, shared)

    def weights(self) -> np.ndarray:
        """See ``Solver``; a view."""
        return self._layout.weights(self._W, self._dense)

    def arrays(self) -> Mapping[str, np.ndarray]:
        """See ``Solver``."""
        return {"W": self._W, "states": self.states}


class MinibatchSolver:
    """Minibatches over all classes; feature-major weights."""

    converged = False

    def __init__(
        self,
        method: Method,
        objective: Any,
        features: Dense | Csr,
        y: np.ndarray,
        states: np.ndarray,
        n_classes: int,
    ) -> None:
        self.states = states
        self._parts = (objective, method.optimizer, features, y)
        self._decay = np.float32(method.ridge / max(1, y.size))
        self._batch_size = method.proposal.batch_size
        self.chunk = self._batch_size * max(1, 2048 // self._batch_size)
        self._W = np.zeros((n_columns(features) + 1, n_classes), np.float32)
        accumulates = method.optimizer.layout.copies == 2
        initial = getattr(method.optimizer, "initial_accumulator", 0.0)
        self._accumulator = np.full_like(self._W, initial) if accumulates else self._W

    def advance(self, samples: np.ndarray, epoch: int, first: int, rate: float) -> int:
        """See ``Solver``."""
        weights = (self.states, self._W, self._accumulator)
        return sweep_all(*self._parts, *weights, samples, self._batch_size, np.float32(rate), self._decay)

    def weights(self) -> np.ndarray:
        """See ``Solver``; a copy."""
        return np.ascontiguousarray(self._W.T)

    def arrays(self) -> Mapping[str, np.ndarray]:
        """See ``Solver``."""
        return {"W": self._W, "accumulator": self._accumulator, "states": self.states}


def n_columns(features: Dense | Csr) -> int:
    """Number of features, the bias not counted."""
    return features.X.shape[1] if isinstance(features, Dense) else features.n_features

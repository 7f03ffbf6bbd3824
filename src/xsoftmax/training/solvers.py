"""What turns samples into better weights: the sampled loop, minibatches over all classes, or L-BFGS."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from xsoftmax.kernels.minibatch import sweep_all
from xsoftmax.kernels.random import stream
from xsoftmax.kernels.rows import Csr, Dense, features_of
from xsoftmax.kernels.sweep import sweep
from xsoftmax.methods import Method
from xsoftmax.proposals import Proposal
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


def make_solver(method: Method, proposal: Proposal, X: Any, y: np.ndarray, n_classes: int, seed: int) -> Solver:
    """Choose the solver that a method needs.

    Parameters
    ----------
    X : sparse array or ndarray of shape (n_samples, n_features), float32
    y : ndarray of shape (n_samples,), int32
    """
    features = features_of(X, method.bias)
    y = np.ascontiguousarray(y, np.int32)
    states = initial_states(method, y.size, n_classes)
    if method.optimizer.layout is None:
        return LbfgsSolver(method.objective, method.optimizer, X, y, n_classes, method.bias, states)
    if method.proposal.draws:
        return SampledSolver(method, proposal.kernel(X), features, y, states, n_classes, seed)
    return MinibatchSolver(method, features, y, states, n_classes)


def initial_states(method: Method, n_samples: int, n_classes: int) -> np.ndarray:
    """What the objective keeps per sample, before the first step: float64 of shape (n_samples, n_states)."""
    if method.objective.n_states:
        return method.objective.initial_states(n_samples, n_classes)
    return np.zeros((n_samples, 0))


class SampledSolver:
    """Single steps on a few drawn classes; class-major weights in the optimizer's layout."""

    chunk = DEFAULT_CHUNK
    converged = False

    def __init__(
        self,
        method: Method,
        draws_from: Any,
        features: Dense | Csr,
        y: np.ndarray,
        states: np.ndarray,
        n_classes: int,
        seed: int,
    ) -> None:
        self.states = states
        self._parts = (method.objective, draws_from, method.optimizer, features, y)
        self._layout = method.optimizer.layout
        self._dense = isinstance(features, Dense)
        self._seed = seed
        accumulator = getattr(method.optimizer, "initial_accumulator", 0.0)
        self._W = self._layout.allocate(n_classes, n_columns(features) + 1, self._dense, accumulator)

    def advance(self, samples: np.ndarray, epoch: int, first: int, rate: float) -> int:
        """See ``Solver``."""
        key = np.uint64(stream(self._seed, epoch))
        return sweep(*self._parts, self.states, self._W, samples, first, key, np.float32(rate))

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
        self, method: Method, features: Dense | Csr, y: np.ndarray, states: np.ndarray, n_classes: int
    ) -> None:
        self.states = states
        self._parts = (method.objective, method.optimizer, features, y)
        self._batch_size = method.proposal.batch_size
        self.chunk = self._batch_size * max(1, 2048 // self._batch_size)
        self._W = np.zeros((n_columns(features) + 1, n_classes), np.float32)
        accumulates = method.optimizer.layout.copies == 2
        initial = getattr(method.optimizer, "initial_accumulator", 0.0)
        self._accumulator = np.full_like(self._W, initial) if accumulates else self._W

    def advance(self, samples: np.ndarray, epoch: int, first: int, rate: float) -> int:
        """See ``Solver``."""
        weights = (self.states, self._W, self._accumulator)
        return sweep_all(*self._parts, *weights, samples, self._batch_size, np.float32(rate))

    def weights(self) -> np.ndarray:
        """See ``Solver``; a copy."""
        return np.ascontiguousarray(self._W.T)

    def arrays(self) -> Mapping[str, np.ndarray]:
        """See ``Solver``."""
        return {"W": self._W, "accumulator": self._accumulator, "states": self.states}


def n_columns(features: Dense | Csr) -> int:
    """Number of features, the bias not counted."""
    return features.X.shape[1] if isinstance(features, Dense) else features.n_features

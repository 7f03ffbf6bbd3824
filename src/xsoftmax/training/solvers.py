"""What turns samples into better weights: the sampled loop, minibatches over all classes, or L-BFGS."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from xsoftmax.internal.threads import Team
from xsoftmax.kernels.rows import features_of
from xsoftmax.methods import Method
from xsoftmax.proposals import Proposal, TrainingSet
from xsoftmax.training.minibatches import MinibatchSolver
from xsoftmax.training.sampled import SampledSolver


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


def make_solver(
    method: Method, objective: Any, proposal: Proposal, data: TrainingSet, team: Team | None = None
) -> Solver:
    """Choose the solver that a method needs; ``objective`` and ``proposal`` are those fitted to the data."""
    team = team or Team()
    X, y, n_classes = data.X, np.ascontiguousarray(data.y, np.int32), data.n_classes
    states = initial_states(method, y.size, n_classes)
    if method.optimizer.layout is None:
        from xsoftmax.training.lbfgs import LbfgsSolver  # imports scipy.optimize, which takes a tenth of a second

        return LbfgsSolver(objective, method.optimizer, X, y, n_classes, method.bias, method.ridge, states, team)
    features = features_of(X, method.bias)
    if method.proposal.draws:
        return SampledSolver(method, objective, proposal, data, features, y, states, team)
    return MinibatchSolver(method, objective, features, y, states, n_classes, team)


def initial_states(method: Method, n_samples: int, n_classes: int) -> np.ndarray:
    """What the objective keeps per sample, before the first step: float64 of shape (n_samples, n_states)."""
    if method.objective.n_states:
        return method.objective.initial_states(n_samples, n_classes)
    return np.zeros((n_samples, 0))

"""The solver of methods that look at every class: minibatches, feature-major weights."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from xsoftmax.kernels.minibatch import sweep_all
from xsoftmax.kernels.rows import Csr, Dense, n_columns
from xsoftmax.methods import Method
from xsoftmax.threads import Team


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
        team: Team,
    ) -> None:
        self.states, self._team = states, team
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

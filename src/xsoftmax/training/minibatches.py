"""The solver of methods that look at every class: minibatches, in blocks of classes that threads share."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from xsoftmax.kernels.minibatch import (
    Pace,
    classes_of_a_block,
    gather_block,
    move_classes_block,
    score_classes_block,
    slope_block,
    sweep_all,
)
from xsoftmax.kernels.rows import Csr, Dense, n_columns
from xsoftmax.methods import Method
from xsoftmax.threads import Team, split_evenly

# Multiplications in a batch, below which handing it to threads costs more than it gains.
WORTH_THREADS = 2**23


class MinibatchSolver:
    """Minibatches over all classes; class-major weights for dense rows, feature-major ones for sparse rows."""

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
        self.states, self._team, self._features = states, team, features
        self._parts = (objective, method.optimizer, features, y)
        self._decay = np.float32(method.ridge / max(1, y.size))
        self._batch_size = method.proposal.batch_size
        self.chunk = self._batch_size * max(1, 2048 // self._batch_size)
        width = n_columns(features) + 1
        self._W = np.zeros((n_classes, width) if isinstance(features, Dense) else (width, n_classes), np.float32)
        accumulates = method.optimizer.layout.copies == 2
        initial = getattr(method.optimizer, "initial_accumulator", 0.0)
        self._accumulator = np.full_like(self._W, initial) if accumulates else self._W
        self._scores = np.empty((min(self._batch_size, max(1, y.size)), n_classes), np.float32)

    def advance(self, samples: np.ndarray, epoch: int, first: int, rate: float) -> int:
        """See ``Solver``; the number of threads changes no bit."""
        pace = Pace(np.float32(rate), self._decay)
        if self._team.n_threads > 1 and self._work() >= WORTH_THREADS:
            return self._advance_together(samples, pace)
        weights = (self.states, self._W, self._accumulator, self._scores)
        return sweep_all(*self._parts, *weights, samples, self._batch_size, pace)

    def weights(self) -> np.ndarray:
        """See ``Solver``; a view."""
        return self._W if isinstance(self._features, Dense) else self._W.T

    def arrays(self) -> Mapping[str, np.ndarray]:
        """See ``Solver``."""
        return {"W": self._W, "accumulator": self._accumulator, "states": self.states}

    def _work(self) -> float:
        """Multiplications for the scores of a batch."""
        if isinstance(self._features, Dense):
            return float(self._scores.size * self._features.X.shape[1])
        n_samples = max(1, self._features.indptr.size - 1)
        return self._scores.size * self._features.data.size / n_samples

    def _advance_together(self, samples: np.ndarray, pace: Pace) -> int:
        """As ``sweep_all``: threads share the classes for scores and moves, the rows for slopes."""
        n_threads, n_classes = self._team.n_threads, self._scores.shape[1]
        size = classes_of_a_block(n_classes)
        cuts = split_evenly(-(-n_classes // size), n_threads)
        classes = [(size * cut.start, min(size * cut.stop, n_classes)) for cut in cuts]
        for first in range(0, samples.size, self._batch_size):
            chosen = samples[first : first + self._batch_size]
            scores, batch = self._scores[: chosen.size], gather_block(self._features, chosen)
            score = partial(score_classes_block, batch, self._W)
            if not all(self._team.run([partial(score, *part, scores) for part in classes])):
                return first
            rows = split_evenly(chosen.size, n_threads)
            self._team.run([self._slopes(chosen[part], scores[part], pace) for part in rows])
            move = partial(move_classes_block, batch, self._parts[1], pace, scores, self._W, self._accumulator)
            self._team.run([partial(move, *part) for part in classes])
        return samples.size

    def _slopes(self, samples: np.ndarray, scores: np.ndarray, pace: Pace) -> Callable[[], None]:
        objective, _, _, y = self._parts
        return partial(slope_block, objective, pace.rate, y, self.states, samples, scores)

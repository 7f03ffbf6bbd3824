"""L-BFGS on the full objective, blocked: the reference optimum that the sampled methods are held against.

Liu and Nocedal 1989. One iteration is one epoch. Everything is float64, feature-major; what is kept between
iterations are plain arrays, so that a fit can be stopped and resumed.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import line_search

from xsoftmax.kernels.minibatch import loss_block, slope_block

BLOCK_BYTES = 2**26
# Of dense rows, which a product copies as float64: the copy stays in the cache, on mnist 3 times as fast as in one.
DENSE_BLOCK_BYTES = 2**22


class FullObjective:
    """Mean loss over all samples plus ridge, and its gradient.

        f(W) = (1 / n) [sum_i L_i(W) + (ridge / 2) ||W without biases||^2]

    Variables per sample are minimised over: the objective solves for them.

    Parameters
    ----------
    X : sparse array or ndarray of shape (n_samples, n_features), float32
    y : ndarray of shape (n_samples,), int32
    """

    def __init__(
        self,
        objective: Any,
        X: Any,
        y: np.ndarray,
        n_classes: int,
        bias: bool,
        ridge: float = 0.0,
        states: np.ndarray | None = None,
    ) -> None:
        self._objective, self._y, self._bias, self._ridge = objective, y, bias, ridge
        self._states = np.empty((len(y), 0)) if states is None else states
        self._X = X.tocsr().astype(np.float64) if sparse.issparse(X) else np.asarray(X)
        self.shape = (X.shape[1] + 1, n_classes)
        self._rows = max(1, BLOCK_BYTES // (8 * n_classes))
        if not sparse.issparse(X):
            self._rows = max(1, min(self._rows, DENSE_BLOCK_BYTES // (8 * max(1, X.shape[1]))))

    def compile(self) -> None:
        """Compile what ``value_and_gradient`` runs, on no rows."""
        none, scores = np.arange(0), np.empty((0, self.shape[1]))
        loss_block(self._objective, self._y, self._states, none, scores, np.zeros((1, 1)))
        slope_block(self._objective, np.float32(0), self._y, self._states, none, scores)

    def value_and_gradient(self, W: np.ndarray) -> tuple[float, np.ndarray]:
        """Value, and gradient of the same shape as W, (n_features + 1, n_classes), float64."""
        n_samples = len(self._y)
        total, gradient = 0.0, np.zeros(self.shape)
        for first in range(0, n_samples, self._rows):
            block = slice(first, first + self._rows)
            X, y, states = self._X[block], self._y[block], self._states[block]
            samples = np.arange(len(y))
            scores = np.ascontiguousarray(X @ W[:-1] + self._bias * W[-1])
            total += loss_block(self._objective, y, states, samples, scores.copy(), np.zeros((1, 1))).sum()
            slope_block(self._objective, np.float32(0), y, states, samples, scores)  # scores become slopes
            gradient[:-1] += X.T @ scores
            gradient[-1] += self._bias * scores.sum(axis=0)
        ridge = self._ridge
        gradient[:-1] += ridge * W[:-1]
        value = (total + 0.5 * ridge * np.vdot(W[:-1], W[:-1])) / n_samples
        gradient /= n_samples
        return value, gradient


class LbfgsSolver:
    """Iterations of L-BFGS; each call of ``advance`` is one."""

    def __init__(
        self,
        objective: Any,
        optimizer: Any,
        X: Any,
        y: np.ndarray,
        n_classes: int,
        bias: bool,
        ridge: float,
        states: np.ndarray,
    ) -> None:
        self.states = states
        self.chunk = max(1, len(y))
        self._full = FullObjective(objective, X, y, n_classes, bias, ridge, states)
        self._tolerance = optimizer.tolerance
        size = self._full.shape[0] * self._full.shape[1]
        self._W = np.zeros(size)
        self._gradient = np.zeros(size)
        self._steps = np.zeros((optimizer.memory, size))
        self._changes = np.zeros((optimizer.memory, size))
        self._values = np.full(2, np.nan)  # before the last iteration, and now
        self._counts = np.zeros(2, np.int64)  # iterations done, and 1 once converged

    @property
    def converged(self) -> bool:
        """Whether the gradient is below tolerance, or no lower value was found along a descent direction."""
        return bool(self._counts[1])

    def advance(self, samples: np.ndarray, epoch: int, first: int, rate: float) -> int:
        """Take one iteration on all samples; ``samples`` only says how many there are."""
        if samples.size == 0:
            self._full.compile()
        if samples.size == 0 or self.converged:
            return samples.size
        if self._counts[0] == 0:
            self._values[1], self._gradient[:] = self._evaluate(self._W)
            # As scipy's minimizers: makes the first trial step of length about one.
            self._values[0] = self._values[1] + np.linalg.norm(self._gradient) / 2
        if np.abs(self._gradient).max() <= self._tolerance:
            self._counts[1] = 1
        else:
            self._iterate()
        return samples.size if np.isfinite(self._values[1]) else 0

    def weights(self) -> np.ndarray:
        """See ``Solver``; a copy."""
        return np.ascontiguousarray(self._W.reshape(self._full.shape).T, np.float32)

    def arrays(self) -> Mapping[str, np.ndarray]:
        """See ``Solver``."""
        return {
            "W": self._W,
            "states": self.states,
            "gradient": self._gradient,
            "steps": self._steps,
            "changes": self._changes,
            "values": self._values,
            "counts": self._counts,
        }

    def _evaluate(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = self._full.value_and_gradient(w.reshape(self._full.shape))
        return value, gradient.ravel()

    def _iterate(self) -> None:
        """Go along the two-loop direction to a point that meets Wolfe's conditions."""
        direction = self._direction()
        last = _Memo(self._evaluate)
        length = line_search(
            last.value, last.gradient, self._W, direction, self._gradient, self._values[1], self._values[0]
        )[0]
        if length is None:
            self._counts[1] = 1
            return
        W = self._W + length * direction
        value, gradient = last.at(W)
        slot = self._counts[0] % len(self._steps)
        self._steps[slot] = W - self._W
        self._changes[slot] = gradient - self._gradient
        self._W[:], self._gradient[:] = W, gradient
        self._values[:] = self._values[1], value
        self._counts[0] += 1

    def _direction(self) -> np.ndarray:
        """Minus the gradient times the inverse Hessian that the kept pairs suggest (two-loop recursion)."""
        memory, done = len(self._steps), int(self._counts[0])
        slots = [i % memory for i in range(max(0, done - memory), done)]
        direction = -self._gradient
        weights = {}
        for slot in reversed(slots):
            weights[slot] = (self._steps[slot] @ direction) / (self._steps[slot] @ self._changes[slot])
            direction -= weights[slot] * self._changes[slot]
        if slots:
            step, change = self._steps[slots[-1]], self._changes[slots[-1]]
            direction *= (step @ change) / (change @ change)
        for slot in slots:
            correction = (self._changes[slot] @ direction) / (self._steps[slot] @ self._changes[slot])
            direction += (weights[slot] - correction) * self._steps[slot]
        return direction


class _Memo:
    """Value and gradient of the last point asked for: a line search asks for one, then for the other."""

    def __init__(self, evaluate: Callable[[np.ndarray], tuple[float, np.ndarray]]) -> None:
        self._evaluate = evaluate
        self._point = np.empty(0)
        self._result = (np.nan, np.empty(0))

    def at(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        if not np.array_equal(w, self._point):
            self._point, self._result = w.copy(), self._evaluate(w)
        return self._result

    def value(self, w: np.ndarray) -> float:
        return self.at(w)[0]

    def gradient(self, w: np.ndarray) -> np.ndarray:
        return self.at(w)[1]

"""L-BFGS on the full objective, blocked: the reference optimum that the sampled methods are compared with.

Liu and Nocedal 1989. One iteration is one epoch. Everything is float64, feature-major; what is kept between
iterations are plain arrays, so that a fit can be stopped and resumed.
"""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from xsoftmax.gpu.device import NUMBA
from xsoftmax.internal.hdf5_checks import copy_arrays
from xsoftmax.internal.threads import ThreadPool, split_evenly
from xsoftmax.kernels.full_softmax import add_product, classes_of_a_block, loss_block, slope_block
from xsoftmax.kernels.rows import features_of
from xsoftmax.optimizers._schedules import Constant
from xsoftmax.optimizers.lbfgs import BLOCK_BYTES
from xsoftmax.proposals import Proposal, TrainingSet
from xsoftmax.solvers import PRODUCTS_A_SECOND, Size, initial_auxiliary
from xsoftmax.solvers._labels import labels_for
from xsoftmax.solvers._rules import first_broken, missing_offer, named, not_excluding, rules_of_all_classes
from xsoftmax.starts import load_start

# Of dense rows, which a product copies as float64: the copy stays in the cache, on mnist 3 times as fast as in one.
DENSE_BLOCK_BYTES = 2**22


class FullObjective:
    """Mean loss over all samples plus an L2 penalty, and its gradient.

        f(W) = (1 / n) [sum_i L_i(W) + (l2 / 2) ||W without biases||^2]

    Variables per sample are minimised over: the objective solves for them. The number of threads changes no bit.

    Parameters
    ----------
    X : sparse array or ndarray of shape (n_samples, n_features), float32
    y : ndarray of shape (n_samples,), int32, or LabelLists
    """

    def __init__(
        self,
        objective: Any,
        X: Any,
        y: Any,
        n_classes: int,
        bias: bool,
        l2: float = 0.0,
        auxiliary: np.ndarray | None = None,
        pool: ThreadPool | None = None,
    ) -> None:
        self._objective, self._y, self._bias, self._l2 = objective, y, bias, l2
        self._auxiliary = np.empty((len(y), 0)) if auxiliary is None else auxiliary
        self._n_samples = X.shape[0]
        self._pool = pool or ThreadPool()
        self.shape = (X.shape[1] + 1, n_classes)
        self._rows = max(1, BLOCK_BYTES // (8 * n_classes))
        self._sparse = sparse.issparse(X)
        self._X = X.tocsr() if self._sparse else np.asarray(X)
        if not self._sparse:
            self._rows = max(1, min(self._rows, DENSE_BLOCK_BYTES // (8 * max(1, X.shape[1]))))

    def compile(self) -> None:
        """Compile what ``value_and_gradient`` runs, on no rows."""
        self._add_block(slice(0, 0), np.zeros(self.shape), np.zeros(self.shape))

    def value_and_gradient(self, W: np.ndarray) -> tuple[float, np.ndarray]:
        """Value, and gradient of the same shape as W, (n_features + 1, n_classes), float64."""
        n_samples, l2 = self._n_samples, self._l2
        gradient = l2 * W
        gradient[-1] = 0
        total = 0.5 * l2 * np.vdot(W[:-1], W[:-1])
        for first in range(0, n_samples, self._rows):
            total += self._add_block(slice(first, min(first + self._rows, n_samples)), W, gradient)
        gradient /= n_samples
        return total / n_samples, gradient

    def _add_block(self, block: slice, W: np.ndarray, gradient: np.ndarray) -> float:
        """Add what some rows give to the gradient; return their losses' sum."""
        samples, X = np.arange(block.start, block.stop), self._X[block]
        X = X if self._sparse else X.astype(np.float64)
        add_to = partial(_add_sparse_product if self._sparse else _add_dense_product, pool=self._pool)
        scores = np.empty((samples.size, self.shape[1]))
        scores[:] = self._bias * W[-1]
        add_to(X, W[:-1], scores)
        parts = split_evenly(len(scores), self._pool.n_threads) or [slice(0, 0)]
        losses = self._pool.run([partial(self._losses, samples[part], scores[part]) for part in parts])
        add_to(X.T, scores, gradient[:-1])
        gradient[-1] += self._bias * scores.sum(axis=0)
        return np.concatenate(losses).sum()

    def _losses(self, samples: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Losses of samples; their scores become slopes."""
        labels, auxiliary = self._y, self._auxiliary
        losses = loss_block(self._objective, labels, auxiliary, samples, scores.copy(), np.zeros((1, 1)))
        slope_block(self._objective, np.float32(0), labels, auxiliary, samples, scores)
        return losses


def _add_sparse_product(A: Any, B: np.ndarray, out: np.ndarray, pool: ThreadPool) -> None:
    """Add A B to ``out``: threads share its rows, each those of as many entries of A, near enough."""
    rows: Any = features_of(A, False)
    cuts = np.searchsorted(rows.indptr, np.linspace(0, rows.indptr[-1], pool.n_threads + 1))
    cuts[0], cuts[-1] = 0, len(out)
    pool.run([partial(add_product, rows, first, last, B, out) for first, last in pairwise(cuts.tolist())])


def _add_dense_product(A: np.ndarray, B: np.ndarray, out: np.ndarray, pool: ThreadPool) -> None:
    """Add A B to ``out``: threads share its columns, in blocks whose size does not depend on their number."""
    n, size = out.shape[1] if A.size else 0, classes_of_a_block(out.shape[1])

    def add(columns: slice) -> None:
        out[:, columns] += A @ B[:, columns]

    pool.run([partial(add, slice(first, min(first + size, n))) for first in range(0, n, size)])


class LbfgsSolver:
    """Iterations of L-BFGS; each call of ``advance`` is one."""

    devices = (NUMBA,)
    streams = False

    @staticmethod
    def takes(method: Any) -> bool:
        """See ``Solver``."""
        return method.optimizer.needs == "full_gradient"

    @staticmethod
    def refuses(method: Any) -> str:
        """See ``Solver``."""
        objective, proposal, optimizer = named(method)
        of, how = method.objective, method.optimizer
        return first_broken(
            [
                (
                    method.proposal.draws,
                    f"{optimizer} needs the full gradient, {proposal} draws a few; take proposal all",
                ),
                not_excluding(method),
                missing_offer(method),
                (
                    of.n_auxiliary and not of.solves_auxiliary,
                    f"{objective} keeps variables per sample, which {optimizer} does not move; take objective "
                    "softmax",
                ),
                *rules_of_all_classes(method),
                (
                    method.decay or method.average != "none",
                    f"{optimizer} goes to the optimum itself; set l2 in place of decay, and leave average out",
                ),
                (
                    how.learning_rate != 1 or not isinstance(method.schedule, Constant),
                    f"{optimizer} finds the length of its steps by itself; leave out learning_rate and schedule",
                ),
            ]
        )

    @staticmethod
    def copies(method: Any) -> int:
        """See ``Solver``: of float64."""
        return 2 * (2 * method.optimizer.memory + 8)

    @staticmethod
    def memory(method: Any, size: Size, threads: int) -> dict[str, int]:
        """See ``Solver``: and a copy."""
        return {"scores of a block": 2 * min(BLOCK_BYTES, 8 * size.n_samples * size.n_classes)}

    @staticmethod
    def seconds(method: Any, size: Size) -> float:
        """See ``Solver``: scores, and the products of slopes with features, of float64."""
        return size.n_samples * 4 * size.n_classes * size.n_entries / PRODUCTS_A_SECOND

    def __init__(self, method: Any, objective: Any, proposal: Proposal, data: TrainingSet, pool: ThreadPool) -> None:
        optimizer, y = method.optimizer, labels_for(method, data)
        self.auxiliary = initial_auxiliary(method, data)
        self.chunk = max(1, data.n_samples)
        self._full = FullObjective(objective, data.X, y, data.n_classes, method.bias, method.l2, self.auxiliary, pool)
        self._tolerance = optimizer.tolerance
        size = self._full.shape[0] * self._full.shape[1]
        self._W = np.zeros(size)
        if data.start is not None:
            load_start(data.start, self._W.reshape(self._full.shape).T)
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
            "auxiliary": self.auxiliary,
            "gradient": self._gradient,
            "steps": self._steps,
            "changes": self._changes,
            "values": self._values,
            "counts": self._counts,
        }

    def restore(self, arrays: Mapping[str, Any]) -> None:
        """See ``Solver``."""
        copy_arrays(self.arrays(), arrays)

    def _evaluate(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = self._full.value_and_gradient(w.reshape(self._full.shape))
        return value, gradient.ravel()

    def _iterate(self) -> None:
        """Go along the two-loop direction to a point that meets Wolfe's conditions."""
        from scipy.optimize import line_search  # takes a tenth of a second to import

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


MEMBER = LbfgsSolver


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

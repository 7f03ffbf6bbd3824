"""Minibatches over all classes, in blocks of classes that threads share."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from xsoftmax.gpu.device import NUMBA
from xsoftmax.internal.hdf5_checks import copy_arrays
from xsoftmax.internal.threads import ThreadPool, split_evenly
from xsoftmax.kernels.full_softmax import (
    CLASSES_OF_A_LARGE_BLOCK,
    Pace,
    classes_of_a_block,
    gather_block,
    move_classes_block,
    run_all_classes,
    score_classes_block,
    slope_block,
)
from xsoftmax.kernels.layout import allocate_whole, arrays_of
from xsoftmax.kernels.protocol import Step
from xsoftmax.kernels.rows import Dense, features_of, n_columns
from xsoftmax.kernels.softmax_passes import empty_sums, move_by_shares, shares_of, sum_classes
from xsoftmax.proposals import Proposal, TrainingSet
from xsoftmax.solvers import PRODUCTS_A_SECOND, Size, initial_auxiliary
from xsoftmax.solvers._average import Average
from xsoftmax.solvers._labels import labels_for
from xsoftmax.solvers._rules import first_broken, rules_of_minibatches
from xsoftmax.starts import load_start

# Scores of a minibatch that are held, at most, if the objective can do with fewer.
MOST_SCORES = 2**26
# Multiplications in a batch, below which handing it to threads costs more than it gains.
WORTH_THREADS = 2**23


class FullSolver:
    """Class-major weights for dense rows, feature-major ones for sparse rows."""

    devices = (NUMBA,)
    streams = True
    converged = False

    @staticmethod
    def takes(method: Any) -> bool:
        """See ``Solver``."""
        return not method.proposal.draws and method.optimizer.needs != "full_gradient"

    @staticmethod
    def refuses(method: Any) -> str:
        """See ``Solver``."""
        return first_broken(rules_of_minibatches(method, "sgd, adagrad or lbfgs"))

    @staticmethod
    def copies(method: Any) -> int:
        """See ``Solver``: totals are divided to be looked at."""
        return method.optimizer.copies + 2 * (method.average != "none")

    @staticmethod
    def memory(method: Any, size: Size, threads: int) -> dict[str, int]:
        """See ``Solver``."""
        n_rows = min(method.proposal.batch_size, size.n_samples)
        passes = in_passes(method, n_rows, size.n_classes)
        held = threads * CLASSES_OF_A_LARGE_BLOCK if passes else size.n_classes
        return {"scores of a minibatch": 4 * n_rows * held}

    @staticmethod
    def seconds(method: Any, size: Size) -> float:
        """See ``Solver``: scores, and the products of slopes with features."""
        return size.n_samples * 2 * size.n_classes * size.n_entries / PRODUCTS_A_SECOND

    def __init__(self, method: Any, objective: Any, proposal: Proposal, data: TrainingSet, pool: ThreadPool) -> None:
        n_classes, features = data.n_classes, features_of(data.X, method.bias)
        y = labels_for(method, data)
        self.auxiliary, self._pool, self._features = initial_auxiliary(method, data), pool, features
        self._parts = (objective, method.optimizer, features, y)
        self._decay = np.float32(method.shrinkage / max(1, data.n_samples))
        self._batch_size = method.proposal.batch_size
        self.chunk = self._batch_size * max(1, 2048 // self._batch_size)
        width = n_columns(features) + 1
        shape = (n_classes, width) if isinstance(features, Dense) else (width, n_classes)
        self._average = Average(method, allocate_whole(method.optimizer, shape))
        self._weights = self._average.weights
        self._W = self._weights.weights()
        if data.start is not None:
            load_start(data.start, self._W if isinstance(features, Dense) else self._W.T)
        self._batches_per_epoch = -(-data.n_samples // self._batch_size)
        n_rows = min(self._batch_size, max(1, data.n_samples))
        self._in_passes = data.label_sets is None and in_passes(method, n_rows, n_classes)
        n_held = pool.n_threads * classes_of_a_block(n_classes) if self._in_passes else n_classes
        self._scores = np.empty((n_rows, n_held), np.float32)
        self._n_classes = n_classes

    def advance(self, samples: np.ndarray, epoch: int, first: int, rate: float) -> int:
        """See ``Solver``; the number of threads changes no bit."""
        n_steps = epoch * self._batches_per_epoch + first // self._batch_size
        self._average.begin(samples, epoch, first)
        used = self._advanced(samples, Pace(Step(np.float32(rate), n_steps), self._decay))
        self._average.end(n_steps - -used // self._batch_size)
        return used

    def _advanced(self, samples: np.ndarray, pace: Pace) -> int:
        """Choose who makes the steps, of which ``pace`` is that of the first."""
        if self._in_passes:
            return self._advance_in_passes(samples, pace)
        if self._pool.n_threads > 1 and self._work() >= WORTH_THREADS:
            return self._advance_together(samples, pace)
        weights = (self.auxiliary, self._weights, self._scores)
        return run_all_classes(*self._parts, *weights, samples, self._batch_size, pace)

    def weights(self) -> np.ndarray:
        """See ``Solver``; a view, unless they are averaged."""
        weights = self._average.of_weights()
        return weights if isinstance(self._features, Dense) else weights.T

    def arrays(self) -> Mapping[str, np.ndarray]:
        """See ``Solver``."""
        return arrays_of(self._weights) | {"auxiliary": self.auxiliary}

    def restore(self, arrays: Mapping[str, Any]) -> None:
        """See ``Solver``."""
        copy_arrays(self.arrays(), arrays)

    def _work(self) -> float:
        """Multiplications for the scores of a batch."""
        if isinstance(self._features, Dense):
            return float(self._scores.size * self._features.X.shape[1])
        n_samples = max(1, self._features.indptr.size - 1)
        return self._scores.size * self._features.data.size / n_samples

    def _advance_together(self, samples: np.ndarray, pace: Pace) -> int:
        """As ``run_all_classes``: threads share the classes for scores and moves, the rows for slopes."""
        n_threads, classes = self._pool.n_threads, self._shares_of_classes()
        for first in range(0, samples.size, self._batch_size):
            chosen = samples[first : first + self._batch_size]
            scores, batch = self._scores[: chosen.size], gather_block(self._features, chosen)
            score = partial(score_classes_block, batch, self._W)
            if not all(self._pool.run([partial(score, *part, scores) for part in classes])):
                return first
            rows = split_evenly(chosen.size, n_threads)
            self._pool.run([self._slopes(chosen[part], scores[part], pace) for part in rows])
            now = self._later(pace, first)
            move = partial(move_classes_block, batch, self._parts[1], now, scores, self._weights)
            self._pool.run([partial(move, *part) for part in classes])
        return samples.size

    def _advance_in_passes(self, samples: np.ndarray, pace: Pace) -> int:
        """As ``run_all_classes`` for the softmax, holding a block of scores for each thread."""
        (_, optimizer, features, y), size = self._parts, classes_of_a_block(self._n_classes)
        for first in range(0, samples.size, self._batch_size):
            chosen = samples[first : first + self._batch_size]
            labels, batch = y[chosen], gather_block(features, chosen)
            n = chosen.size
            workspaces = self._scores.ravel()[: self._pool.n_threads * n * size].reshape(
                self._pool.n_threads, n, size
            )
            sums, shared = (
                empty_sums(n, self._n_classes),
                list(zip(workspaces, self._shares_of_classes(), strict=False)),
            )
            evaluation = partial(sum_classes, batch, self._W, labels)
            if not all(
                self._pool.run([partial(evaluation, workspace, sums, size, *part) for workspace, part in shared])
            ):
                return first
            shares = shares_of(sums)
            move = partial(move_by_shares, batch, optimizer, self._later(pace, first), self._weights, labels)
            self._pool.run([partial(move, workspace, shares, size, *part) for workspace, part in shared])
        return samples.size

    def _later(self, pace: Pace, n_samples: int) -> Pace:
        """The pace of the step so many samples later."""
        return Pace(Step(pace.step.rate, pace.step.number + n_samples // self._batch_size), pace.decay)

    def _shares_of_classes(self) -> list[tuple[int, int]]:
        """Classes of each thread, in whole blocks."""
        size = classes_of_a_block(self._n_classes)
        cuts = split_evenly(-(-self._n_classes // size), self._pool.n_threads)
        return [(size * cut.start, min(size * cut.stop, self._n_classes)) for cut in cuts]

    def _slopes(self, samples: np.ndarray, scores: np.ndarray, pace: Pace) -> Callable[[], None]:
        objective, _, _, y = self._parts
        return partial(slope_block, objective, pace.step.rate, y, self.auxiliary, samples, scores)


MEMBER = FullSolver


def in_passes(method: Any, n_rows: int, n_classes: int) -> bool:
    """Whether a minibatch has more scores than are to be held, and its objective is a function of their sums."""
    return n_rows * n_classes > MOST_SCORES and method.objective.sums_exponentials

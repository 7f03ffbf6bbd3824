"""Minibatches over all classes, behind a table: see ``xsoftmax.kernels.encoded``."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from xsoftmax.gpu.device import NUMBA
from xsoftmax.internal.hdf5_checks import copy_arrays
from xsoftmax.internal.threads import ThreadPool, split_evenly
from xsoftmax.kernels.encoded import EncodedWeights, encoded_batch, pull_block, share_out_batch
from xsoftmax.kernels.full_softmax import (
    SHARED_BY,
    Pace,
    classes_of_a_block,
    move_classes_block,
    score_classes_block,
    slope_block,
)
from xsoftmax.kernels.layout import allocate_whole, arrays_of
from xsoftmax.kernels.protocol import Step
from xsoftmax.proposals import Proposal, TrainingSet
from xsoftmax.solvers import PRODUCTS_A_SECOND, Size, initial_auxiliary
from xsoftmax.solvers._average import Average
from xsoftmax.solvers._encoder import memory_of_table, rules_of_encoders
from xsoftmax.solvers._labels import labels_for
from xsoftmax.solvers._rules import first_broken, rules_of_minibatches
from xsoftmax.solvers._table import embedded
from xsoftmax.solvers.full import FullSolver


class EncodedFullSolver:
    """The table is a layout like the classes': each of its rows moves once for a batch, along the mean gradient."""

    devices = (NUMBA,)
    streams = True
    converged = False
    encodes = True
    copies = staticmethod(FullSolver.copies)

    @staticmethod
    def takes(method: Any) -> bool:
        """See ``Solver``: those with an encoder whose proposal looks at all classes."""
        return method.encoder is not None and not method.proposal.draws

    @staticmethod
    def refuses(method: Any) -> str:
        """See ``Solver``."""
        return first_broken([*rules_of_encoders(method), *rules_of_minibatches(method, "sgd or adagrad")])

    @staticmethod
    def memory(method: Any, size: Size, threads: int) -> dict[str, int]:
        """See ``Solver``: all scores of a batch, which are slopes then, and its rows behind the table, in parts."""
        n_rows = min(method.proposal.batch_size, size.n_samples)
        width = (SHARED_BY + 2) * (method.encoder.dimension + 1)
        batch = {"scores of a minibatch": 4 * n_rows * size.n_classes, "rows behind the table": 4 * n_rows * width}
        return batch | memory_of_table(method, size)

    @staticmethod
    def seconds(method: Any, size: Size) -> float:
        """See ``Solver``: scores, the products of slopes with rows, and those with weights."""
        per_sample = 3 * size.n_classes + 2 * size.n_entries
        return size.n_samples * per_sample * method.encoder.dimension / PRODUCTS_A_SECOND

    def __init__(self, method: Any, objective: Any, proposal: Proposal, data: TrainingSet, pool: ThreadPool) -> None:
        n_classes, n_features, dimension = data.n_classes, data.X.shape[1], method.encoder.dimension
        self._objective, self._optimizer, self._pool = objective, method.optimizer, pool
        self._y, self.auxiliary = labels_for(method, data), initial_auxiliary(method, data)
        self._batch_size = method.proposal.batch_size
        self.chunk = self._batch_size * max(1, 2048 // self._batch_size)
        self._batches_per_epoch = -(-data.n_samples // self._batch_size)
        self._average = Average(method, allocate_whole(method.optimizer, (n_classes, dimension + 1)))
        self._of_table = Average(method, allocate_whole(method.optimizer, (n_features, dimension)))
        self._features = embedded(method, data, self._of_table.weights)
        n_rows = min(self._batch_size, max(1, data.n_samples))
        self._scores = np.empty((n_rows, n_classes), np.float32)
        self._pulled = np.empty((SHARED_BY, n_rows, dimension), np.float32)

    def advance(self, samples: np.ndarray, epoch: int, first: int, rate: float) -> int:
        """See ``Solver``; the number of threads changes no bit."""
        n_steps, used = epoch * self._batches_per_epoch + first // self._batch_size, 0
        for each in (self._average, self._of_table):
            each.begin(samples, epoch, first)
        for start in range(0, max(1, samples.size), self._batch_size):
            chosen = samples[start : start + self._batch_size]
            if not self._take(chosen, Step(np.float32(rate), n_steps + start // self._batch_size)):
                break
            used += chosen.size
        for each in (self._average, self._of_table):
            each.end(n_steps - -used // self._batch_size)
        return used

    def _take(self, samples: np.ndarray, step: Step) -> bool:
        """Take the step of one batch; whether its scores are finite, without which nothing moves."""
        weights, table = self._average.weights, self._features
        W, n, classes = weights.weights(), samples.size, self._shares_of_classes()
        scores, batch = self._scores[:n], encoded_batch(table, samples)
        if not all(self._pool.run([partial(score_classes_block, batch, W, *part, scores) for part in classes])):
            return False
        slopes = partial(slope_block, self._objective, step.rate, self._y, self.auxiliary)
        parts = split_evenly(n, self._pool.n_threads) if n else [slice(0, 0)]
        self._pool.run([partial(slopes, samples[part], scores[part]) for part in parts])
        if table.trained:
            pulled = self._pulled[: len(classes), :n]
            self._pool.run([partial(pull_block, scores, W, *part, pulled[j]) for j, part in enumerate(classes)])
        move = partial(move_classes_block, batch, self._optimizer, Pace(step, np.float32(0)), scores, weights)
        self._pool.run([partial(move, *part) for part in classes])
        if table.trained:
            share_out_batch(table, self._optimizer, step, samples, pulled.sum(axis=0))
        return True

    def _shares_of_classes(self) -> list[tuple[int, int]]:
        """Stretches of whole blocks of classes, as many whatever the number of threads: sums are made of theirs."""
        n_classes = self._scores.shape[1]
        size = classes_of_a_block(n_classes)
        cuts = split_evenly(-(-n_classes // size), SHARED_BY)
        return [(size * cut.start, min(size * cut.stop, n_classes)) for cut in cuts]

    def weights(self) -> EncodedWeights:
        """See ``Solver``; the table beside them."""
        return EncodedWeights(self._average.of_weights(), self._of_table.of_weights())

    def arrays(self) -> Mapping[str, np.ndarray]:
        """See ``Solver``."""
        table = {f"table_{name}": array for name, array in arrays_of(self._of_table.weights).items()}
        return arrays_of(self._average.weights) | table | {"auxiliary": self.auxiliary}

    def restore(self, arrays: Mapping[str, Any]) -> None:
        """See ``Solver``."""
        copy_arrays(self.arrays(), arrays)


MEMBER = EncodedFullSolver

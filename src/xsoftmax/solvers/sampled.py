"""Single steps, or minibatches, on a few drawn classes: class-major weights."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from xsoftmax.gpu.device import NUMBA
from xsoftmax.internal.compiled import njit
from xsoftmax.internal.hdf5_checks import copy_arrays
from xsoftmax.internal.threads import ThreadPool, split_evenly
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.found import found_shares
from xsoftmax.kernels.label_sets import LabelLists
from xsoftmax.kernels.label_steps import LabelSteps
from xsoftmax.kernels.layout import Decayed, allocate, arrays_of
from xsoftmax.kernels.own_negatives import Own
from xsoftmax.kernels.protocol import Clock, Parts, Samples, View, log_probability
from xsoftmax.kernels.random import stream
from xsoftmax.kernels.rows import Dense, features_of, n_columns
from xsoftmax.kernels.run_steps import AHEAD, run_steps, single
from xsoftmax.kernels.scaled import fold, later, scale_of, scaled, steps_of_a_stretch
from xsoftmax.kernels.shared_negatives import Shared
from xsoftmax.proposals import Proposal, TrainingSet, memory_of
from xsoftmax.solvers import BYTES_A_SECOND, Size, initial_auxiliary
from xsoftmax.solvers._average import Average
from xsoftmax.solvers._labels import labels_for
from xsoftmax.solvers._rules import first_broken, rules_of_draws
from xsoftmax.starts import load_start

DEFAULT_CHUNK = 2**15
# What is measured of a search: see ``xsoftmax.kernels.found``.
FOUND = ("search_recall", "gradient_found")
# Of a call, which nothing interrupts; of many draws a step there are fewer steps.
MOST_DRAWS = 2**23


class SampledSolver:
    """Steps along gradients, or solved in closed form for one class; threads change weights without locks."""

    devices = (NUMBA,)
    streams = True
    converged = False

    @staticmethod
    def takes(method: Any) -> bool:
        """See ``Solver``: those whose proposal draws, unless implicit steps are for batches."""
        steps = method.proposal.draws and method.optimizer.needs != "full_gradient"
        return steps and method.weights == "dense" and not solves_batches(method)

    @staticmethod
    def refuses(method: Any) -> str:
        """See ``Solver``."""
        return first_broken(rules_of_draws(method))

    @staticmethod
    def copies(method: Any) -> int:
        """See ``Solver``: decaying rows are multiplied out to be looked at, and totals divided."""
        return method.optimizer.copies + (method.shrinkage > 0) + 2 * (method.average != "none")

    @staticmethod
    def memory(method: Any, size: Size, threads: int) -> dict[str, int]:
        """See ``Solver``: the draws that a thread makes ahead, or those of a minibatch, with their scores."""
        n_draws = method.n_sampled + sum(getattr(method.proposal, key, 0) for key in ("n_head", "n_found"))
        batch = method.batch.size
        ahead = AHEAD * 16 if batch == 1 else 24 * batch
        held = {"draws": threads * n_draws * (ahead + 8 * batch * method.batch.shared + 48)}
        return held | memory_of(method.proposal, size)

    @staticmethod
    def seconds(method: Any, size: Size) -> float:
        """See ``Solver``: what is touched is read and written."""
        touched = (method.n_sampled + 1) * size.n_entries * 4 * method.optimizer.copies
        return size.n_samples * 2 * touched / BYTES_A_SECOND

    @staticmethod
    def labels_of_a_step(method: Any) -> int:
        """Count the labels whose classes a sample's step looks at."""
        return 1

    def __init__(self, method: Any, objective: Any, proposal: Proposal, data: TrainingSet, pool: ThreadPool) -> None:
        self._pool, self._batch, self._seed, self._proposal = pool, method.batch, data.seed, proposal
        labels, features = labels_for(method, data), self._features_of(method, data)
        self.auxiliary, self._n_classes = initial_auxiliary(method, data), data.n_classes
        n_draws = method.batch.size * method.n_sampled
        steps = max(1, min(DEFAULT_CHUNK // method.batch.size, MOST_DRAWS // n_draws))
        self._adaptive = method.proposal.adaptive
        if self._adaptive:
            steps = proposal.refresh_steps  # type: ignore[attr-defined]
        self.chunk = steps * method.batch.size
        self._batches_per_epoch = -(-data.n_samples // method.batch.size)
        draws_from = proposal.kernel(data.X)
        self._parts = Parts(objective, draws_from, method.optimizer.fit(data), method.n_sampled)
        self._weights: Any = self._allocated(method, proposal, data, features, draws_from)
        self._average = Average(method, self._weights)
        self._weights = self._average.weights
        uses_log_q, view = method.objective.uses_log_q, View(self._weights, features)
        log_q = log_q_of(draws_from, view, *_pairs_of(data)) if uses_log_q or method.bias_start != "zero" else None
        self._samples = Samples(features, labels, self.auxiliary, log_q if uses_log_q else None)
        self._kind = self._batch_type(method, proposal, data)
        given = data.start is not None and data.start.b is not None
        if log_q is not None and method.bias_start == "minus-log-q" and not given:
            self._load_biases(minus_mean_log_q(log_q, data.all_labels, data.n_classes))

    def _features_of(self, method: Any, data: TrainingSet) -> Any:
        """Wrap the rows for the kernels."""
        return features_of(data.X, method.bias, method.frequency_power)

    def _allocated(self, method: Any, proposal: Proposal, data: TrainingSet, features: Any, kernel: Any) -> Any:
        """Make the layout that the optimizer needs for such rows, and load it with where weights begin."""
        width, dense = n_columns(features) + 1, isinstance(features, Dense)
        weights = allocate(method.optimizer, data.n_classes, width, dense)
        if data.start is not None:
            load_start(data.start, weights.weights())
        if method.decay:
            return scaled(weights, decay_per_step(method, data))
        inverse_inclusion = self._inverse_inclusion(method, proposal, kernel, data)
        if inverse_inclusion is None:
            return weights
        l2 = np.float32(method.l2 / max(1, data.n_samples))
        return Decayed(weights, np.ones(data.n_classes, np.float32), l2, inverse_inclusion)

    def _load_biases(self, biases: np.ndarray) -> None:
        stored = self._weights.inner if hasattr(self._weights, "inner") else self._weights
        stored.weights()[:, -1] = biases

    @staticmethod
    def weighed_by(method: Any, proposal: Proposal, draws_from: Any, data: TrainingSet) -> Any:
        """Give what an L2 penalty is weighted by, how often steps touch each class; None without any."""
        return inverse_inclusion_of(method, proposal, data.class_counts, data.n_samples) if method.l2 else None

    def _inverse_inclusion(self, method: Any, proposal: Proposal, draws_from: Any, data: TrainingSet) -> Any:
        """Give what the layout's l2 is weighted by; None if there is none."""
        return self.weighed_by(method, proposal, draws_from, data)

    def advance(self, samples: np.ndarray, epoch: int, first: int, rate: float) -> int:
        """See ``Solver``; every so many steps of an epoch, a proposal that follows the weights looks at them."""
        begins, used = [0], 0
        if self._adaptive:
            begins += range(self.chunk - first % self.chunk, samples.size, self.chunk)
            if first % self.chunk == 0 or not getattr(self._proposal, "kept", False):
                self._refresh()
        self._average.begin(samples, epoch, first)
        for begin, stretch in zip(begins, np.split(samples, begins[1:]), strict=True):
            if begin:
                self._refresh()
            used += self._advanced(stretch, epoch, first + begin, rate)
            if isinstance(self._weights, Decayed):
                self._weights.fold()
            if used < begin + stretch.size:
                break
        self._average.end(epoch * self._batches_per_epoch + -(-(first + used) // self._batch.size))
        return used

    def _refresh(self) -> None:
        """Let an adaptive proposal look at the weights."""
        self._proposal.refresh(self._weights)  # type: ignore[attr-defined]

    def _advanced(self, samples: np.ndarray, epoch: int, first: int, rate: float) -> int:
        """Use samples, as many at a time as decay lets weights shrink before they are multiplied out."""
        n_steps = steps_of_a_stretch(self._weights, rate)
        size, used = samples.size if n_steps is None else n_steps * self._batch.size, 0
        while True:
            stretch = samples[used : used + size]
            used_here = self._swept(stretch, epoch, first + used, rate)
            used += used_here
            self._fold()
            if used_here < stretch.size or used == samples.size:
                return used

    def _fold(self) -> None:
        fold(self._weights)

    def _swept(self, samples: np.ndarray, epoch: int, first: int, rate: float) -> int:
        """Take the steps of all threads; return how many samples they used."""
        size, weights = self._batch.size, [self._weights]
        parts = self._parts_of(-(-samples.size // size))
        if len(parts) > 1:
            weights = [later(self._weights, part.start, rate) for part in parts]
        tasks = [
            self._task(samples[part.start * size : part.stop * size], epoch, first + part.start * size, rate, of_part)
            for part, of_part in zip(parts, weights, strict=True)
        ]
        used = sum(self._pool.run(tasks))
        scale_of(self._weights)[:] = scale_of(weights[-1])
        return used

    def _parts_of(self, n_steps: int) -> list[slice]:
        """What each thread does of some steps; they change the weights without locks."""
        return split_evenly(n_steps, self._pool.n_threads) if n_steps else [slice(0, 0)]

    def _task(self, samples: np.ndarray, epoch: int, first: int, rate: float, weights: Any) -> Callable[[], int]:
        """The steps of one thread, and how many samples they used."""
        size = self._batch.size
        clock = Clock(np.uint64(stream(self._seed, epoch)), first, epoch * self._batches_per_epoch + first // size)
        arguments = (self._kind, self._parts, self._samples, weights, samples, clock, np.float32(rate))
        return partial(run_steps, *arguments)

    def _batch_type(self, method: Any, proposal: Proposal, data: TrainingSet) -> Any:
        """Choose what samples share in a step: see ``xsoftmax.kernels.run_steps``."""
        size, shared = method.batch
        if data.label_sets is not None:
            return LabelSteps(int(np.diff(data.label_sets.starts).max(initial=1)))
        if shared:
            return Shared(size)
        return Own(size) if size > 1 else single(self._parts.proposal)

    def weights(self) -> np.ndarray:
        """See ``Solver``; a view, unless they are averaged or decay."""
        return self._average.of_weights()

    def found(self, rows: np.ndarray) -> dict[str, float]:
        """Measure a search on some samples: means of what ``found_shares`` tells; what nothing tells is left out."""
        if isinstance(self._samples.labels, LabelLists):
            return {}
        kept = {name: array.copy() for name, array in getattr(self._proposal, "arrays", dict)().items()}
        shares = found_shares(self._parts, self._samples, self._weights, self._n_classes, rows)
        if kept:  # what was looked at has not moved
            copy_arrays(self._proposal.arrays(), kept)  # type: ignore[attr-defined]
        means = {name: shares[~np.isnan(shares[:, c]), c] for c, name in enumerate(FOUND)}
        return {name: float(values.mean()) for name, values in means.items() if values.size}

    def arrays(self) -> Mapping[str, np.ndarray]:
        """See ``Solver``."""
        return arrays_of(self._weights) | {"auxiliary": self.auxiliary} | self._learned()

    def _learned(self) -> dict[str, np.ndarray]:
        """Give what changes of the proposal and of the objective."""
        parts = (self._proposal, self._parts.objective)
        return {name: array for part in parts for name, array in getattr(part, "arrays", dict)().items()}

    def restore(self, arrays: Mapping[str, Any]) -> None:
        """See ``Solver``."""
        copy_arrays(self.arrays(), arrays)
        if hasattr(self._proposal, "restored"):
            self._proposal.restored()


MEMBER = SampledSolver


def solves_batches(method: Any) -> bool:
    """Whether its implicit steps are those for batches, many classes and an L2 penalty, not the closed form."""
    several_classes = method.n_sampled > 1 or not (method.proposal.distribution or method.proposal.finds)
    more = method.batch.size > 1 or several_classes or method.l2 > 0
    return method.optimizer.needs == "proximal" and more


def inverse_inclusion_of(method: Any, proposal: Proposal, class_counts: np.ndarray, n_samples: int) -> np.ndarray:
    """Inverse of the probability that a step touches each class, float32; empty where that differs from row to row.

    A step touches class k with probability n_k / N + (1 - n_k / N) P(k is drawn): Fagan and Iyengar 2018, eq. 6.
    """
    inclusion = proposal.inclusion(method.n_sampled) if method.batch.size == 1 else None
    share = class_counts / n_samples
    inclusion = np.empty(0) if inclusion is None else share + (1 - share) * inclusion
    return np.divide(1, inclusion, where=inclusion > 0, out=np.zeros_like(inclusion)).astype(np.float32)


def decay_per_step(method: Any, data: TrainingSet) -> float:
    """Give what weights lose in a step, per unit of the learning rate."""
    return float(method.decay) / max(1, data.n_samples)


def _pairs_of(data: TrainingSet) -> tuple[np.ndarray, np.ndarray]:
    """Number the row of each label, int64, and give the labels, int32."""
    labels = np.ascontiguousarray(data.all_labels, np.int32)
    return np.arange(len(labels)) if data.label_sets is None else data.label_sets.rows, labels


@njit(**OPTIONS)
def log_q_of(draws_from, view, rows, labels):
    """Log-probability of labels for their rows, float32."""
    log_q = np.empty(labels.size, np.float32)
    for j in range(labels.size):
        log_q[j] = log_probability(draws_from, view, rows[j], np.int64(labels[j]))
    return log_q


def minus_mean_log_q(log_q: np.ndarray, labels: np.ndarray, n_classes: int) -> np.ndarray:
    """Minus the mean of log q over the training rows of each class; 0 for a class without rows."""
    total = np.bincount(labels, -log_q.astype(np.float64), n_classes)
    return total / np.maximum(np.bincount(labels, minlength=n_classes), 1)

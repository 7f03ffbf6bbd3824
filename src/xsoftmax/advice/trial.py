"""A short run of a method, judged by some validation rows: no test rows, nothing kept."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from xsoftmax.data.dataset import Dataset, Split
from xsoftmax.data.windows import taken
from xsoftmax.evaluation.calibration import rows_for
from xsoftmax.evaluation.frequency_calibration import calibrated, frequencies_of
from xsoftmax.evaluation.likelihood import evaluate
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.methods import Method
from xsoftmax.model import Model
from xsoftmax.proposals import Proposal, TrainingSet
from xsoftmax.solvers import make_solver
from xsoftmax.training.beginning import Beginning, find_beginning
from xsoftmax.training.epoch_sampler import EpochSampler

ROWS = 2000  # of validation, at most
PROBED = 50  # of these, to see how long all of them take


@dataclass(frozen=True)
class TrialContext:
    """What trials of one method at several rates share.

    Attributes
    ----------
    data : Dataset
    train : Split
    sampler : EpochSampler
    method : Method
    seed : int
    pool : ThreadPool
    known : dict
        Where other methods on the same rows begin, and what their proposals fitted, by settings: not done again.
    """

    data: Dataset
    train: Split
    sampler: EpochSampler
    method: Method
    seed: int
    pool: ThreadPool
    known: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def validation(self) -> Split:
        """Rows that trials are judged by: drawn, as files are often sorted, and always the same."""
        rows = self._validation
        chosen = np.random.default_rng(0).permutation(rows.n_samples)[: min(ROWS, rows_for(self.data.n_classes))]
        return taken(rows, np.sort(chosen))

    @cached_property
    def class_counts(self) -> np.ndarray | None:
        """Training rows of each class, where they are frequencies."""
        return frequencies_of(self.train.class_counts(self.data.n_classes), self._validation.y)

    @cached_property
    def _validation(self) -> Split:
        return self.data.split("validation")

    @cached_property
    def training_set(self) -> TrainingSet:
        """Training rows as the members of the method learn from them."""
        rows, n_sampled, start = self.train, self.method.n_sampled, self.beginning.start
        return TrainingSet(rows.X, rows.y, self.data.n_classes, self.seed, n_sampled=n_sampled, start=start)

    @cached_property
    def beginning(self) -> Beginning:
        """Where weights begin."""
        rows, found = self.train, partial(find_beginning, self.method, self.data)
        return self._known_by(
            json.dumps(self.method.settings["start"], sort_keys=True), make=lambda: found(rows, self.pool)
        )

    @property
    def objective(self) -> Any:
        """The objective, fitted anew: steps may change what it holds."""
        return self.method.objective.fit(self.training_set)

    @cached_property
    def proposal(self) -> Proposal:
        """The fitted proposal."""
        proposal = self.method.proposal
        if proposal.adaptive and not getattr(proposal, "shortlist", 0):  # it changes as weights do
            return proposal.fit(self.training_set)
        return self._known_by(_of_proposal(self.method), make=lambda: proposal.fit(self.training_set))

    @property
    def prepared(self) -> bool:
        """Whether shortlists are known, or not asked for: to find them takes longer than anything else."""
        return not getattr(self.method.proposal, "shortlist", 0) or _of_proposal(self.method) in self.known

    def _known_by(self, key: str, make: Callable[[], Any]) -> Any:
        """Make something that depends on these settings alone, or take it from where another method has left it."""
        if key not in self.known:
            self.known[key] = make()
        return self.known[key]


def _of_proposal(method: Method) -> str:
    """Settings that the fit of its proposal depends on: how many of a shortlist are taken makes no difference."""
    settings = [dict(method.settings[key]) for key in ("start", "proposal")]
    if settings[1].get("shortlist"):
        del settings[1]["n_sampled"]
    return json.dumps(settings, sort_keys=True)


def known_proposal(method: Method, known: Mapping[str, Any]) -> Proposal | None:
    """Give what a method's proposal fitted in a trial, as one that takes no more seconds, if that can be."""
    found: Any = known.get(_of_proposal(method))
    return replace(found, seconds=0.0) if "seconds" in getattr(found, "__dataclass_fields__", ()) else None


class Trial:
    """Steps of a method at one learning rate, from the start.

    A schedule by progress stays at its beginning, as of a long fit of which a trial is the first steps.
    ``samples`` and ``seconds`` (of steps) are what was used so far; ``finite`` whether all scores and weights were.
    """

    def __init__(self, context: TrialContext, rate: float) -> None:
        self.rate, self.samples, self.seconds, self.finite = rate, 0, 0.0, True
        self.minibatch_size, self._context = context.method.minibatch_size, context
        self._solver = make_solver(
            context.method, context.objective, context.proposal, context.training_set, context.pool
        )
        self._solver.advance(np.empty(0, np.int64), 0, 0, 0.0)  # compiles

    def advance(self, at_most: int) -> None:
        """Take steps for so many samples, or for one chunk of the solver, or to the end of the epoch."""
        context = self._context
        epoch, position = divmod(self.samples, context.train.n_samples)
        rate = self.rate * context.method.schedule.factor(epoch, self.samples, progress=0.0)
        start = time.perf_counter()
        samples = context.sampler.samples(epoch, position, min(self._solver.chunk, at_most))
        used = self._solver.advance(samples, epoch, position, rate)
        self.seconds += time.perf_counter() - start
        self.samples += used
        self.finite = used == samples.size

    @property
    def pace(self) -> float:
        """Seconds of a sample, so far."""
        return self.seconds / max(1, self.samples)

    def scoring_seconds(self) -> float:
        """Estimate how long ``log_likelihood`` takes, from a few rows, which are scored twice: once to compile."""
        n_samples, seconds = self._context.validation.n_samples, 0.0
        for _ in range(2):
            begin = time.perf_counter()
            self.log_likelihood(PROBED)
            seconds = time.perf_counter() - begin
        return seconds * max(1.0, n_samples / PROBED)

    def log_likelihood(self, at_most: int = ROWS) -> float | None:
        """Mean log-likelihood (nats) of the validation rows, or so many of them; None if the trial diverged."""
        context, method = self._context, self._context.method
        if not self.finite:
            return None
        model = Model.of_rows(
            self._solver.weights(),
            context.data.class_names,
            context.data.n_features,
            bias=method.bias,
            correction=context.proposal if method.objective.adds_log_q else None,
            transform=context.data.transform,
            link=method.objective.link,
        )
        with np.errstate(all="ignore"):
            X, y = context.validation.X[:at_most], context.validation.y[:at_most]
            model = calibrated(model, method.calibration, X, y, context.class_counts, context.pool)
            value = evaluate(model, X, y, context.pool)["log_likelihood"]
        self.finite = bool(np.isfinite(value))
        return float(value) if self.finite else None

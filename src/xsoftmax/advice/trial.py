"""A short run of a method, judged by some validation rows: no test rows, nothing kept."""

import time
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from xsoftmax.data.dataset import Dataset, Split
from xsoftmax.data.windows import taken
from xsoftmax.evaluation.metrics import evaluate
from xsoftmax.internal.threads import Team
from xsoftmax.methods import Method
from xsoftmax.model import Model
from xsoftmax.proposals import Proposal, TrainingSet
from xsoftmax.solvers import make_solver
from xsoftmax.training.visits import Visits

ROWS = 2000  # of validation, at most
PROBED = 50  # of these, to see how long all of them take


@dataclass(frozen=True)
class Ground:
    """What trials of one method at several rates share.

    Attributes
    ----------
    data : Dataset
    train : Split
    visits : Visits
    method : Method
    seed : int
    team : Team
    """

    data: Dataset
    train: Split
    visits: Visits
    method: Method
    seed: int
    team: Team

    @cached_property
    def validation(self) -> Split:
        """Rows that trials are judged by: drawn, as files are often sorted, and always the same."""
        rows = self.data.split("validation")
        chosen = np.random.default_rng(0).permutation(rows.n_samples)[:ROWS]
        return taken(rows, np.sort(chosen))

    @cached_property
    def training_set(self) -> TrainingSet:
        """Training rows as the members of the method learn from them."""
        rows, n_sampled = self.train, self.method.n_sampled
        return TrainingSet(rows.X, rows.y, self.data.n_classes, self.seed, n_sampled=n_sampled)

    @cached_property
    def objective(self) -> Any:
        """The fitted objective."""
        return self.method.objective.fit(self.training_set)

    @cached_property
    def proposal(self) -> Proposal:
        """The fitted proposal."""
        return self.method.proposal.fit(self.training_set)


class Trial:
    """Steps of a method at one learning rate, from the start.

    ``samples`` and ``seconds`` (of steps) are what was used so far; ``finite`` whether all scores and weights were.
    """

    def __init__(self, ground: Ground, rate: float) -> None:
        self.rate, self.samples, self.seconds, self.finite = rate, 0, 0.0, True
        self.minibatch_size, self._ground = ground.method.minibatch_size, ground
        self._solver = make_solver(ground.method, ground.objective, ground.proposal, ground.training_set, ground.team)
        self._solver.advance(np.empty(0, np.int64), 0, 0, 0.0)  # compiles

    def advance(self, at_most: int) -> None:
        """Take steps for so many samples, or for one chunk of the solver, or to the end of the epoch."""
        ground = self._ground
        epoch, position = divmod(self.samples, ground.train.n_samples)
        rate = self.rate * ground.method.schedule.factor(epoch, self.samples)
        start = time.perf_counter()
        samples = ground.visits.samples(epoch, position, min(self._solver.chunk, at_most))
        used = self._solver.advance(samples, epoch, position, rate)
        self.seconds += time.perf_counter() - start
        self.samples += used
        self.finite = used == samples.size

    def scoring_seconds(self) -> float:
        """Estimate how long ``log_likelihood`` takes, from a few rows, which are scored twice: once to compile."""
        n_samples, seconds = self._ground.validation.n_samples, 0.0
        for _ in range(2):
            begin = time.perf_counter()
            self.log_likelihood(PROBED)
            seconds = time.perf_counter() - begin
        return seconds * max(1.0, n_samples / PROBED)

    def log_likelihood(self, at_most: int = ROWS) -> float | None:
        """Mean log-likelihood (nats) of the validation rows, or so many of them; None if the trial diverged."""
        ground, method = self._ground, self._ground.method
        if not self.finite:
            return None
        model = Model.of_rows(
            self._solver.weights(),
            ground.data.class_names,
            ground.data.n_features,
            bias=method.bias,
            correction=ground.proposal if method.objective.adds_log_q else None,
            transform=ground.data.transform,
            link=method.objective.link,
        )
        with np.errstate(all="ignore"):
            X, y = ground.validation.X[:at_most], ground.validation.y[:at_most]
            value = evaluate(model, X, y, ground.team)["log_likelihood"]
        self.finite = bool(np.isfinite(value))
        return float(value) if self.finite else None

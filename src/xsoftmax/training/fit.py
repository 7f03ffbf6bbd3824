"""The one training loop: epochs or a time budget, evaluation off the clock, checkpoints, early stopping."""

import hashlib
import json
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from xsoftmax.data.dataset import Dataset, Split
from xsoftmax.data.windows import taken, training_windows
from xsoftmax.gpu.device import NUMBA
from xsoftmax.gpu.ranks import ALONE, Group
from xsoftmax.internal import registry
from xsoftmax.internal.errors import InputError, suggestion
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.methods import Method
from xsoftmax.model import Model
from xsoftmax.proposals import Proposal, TrainingSet, fitted
from xsoftmax.proposals._file import StoredProposal, known_beforehand
from xsoftmax.solvers import (
    Solver,
    make_solver,
    place_of,
)
from xsoftmax.solvers._encoder import seen_by
from xsoftmax.starts import Start, digest_of
from xsoftmax.training.beginning import Beginning, find_beginning
from xsoftmax.training.best import BestWeights, best_of
from xsoftmax.training.budget import Budget
from xsoftmax.training.callbacks import Callback
from xsoftmax.training.callbacks.evaluate import Evaluate, StopConverged
from xsoftmax.training.callbacks.guarded import guarded
from xsoftmax.training.callbacks.judge import Judge, KeepBest, StopEarly
from xsoftmax.training.callbacks.save import Checkpoint
from xsoftmax.training.checkpoint import check_checkpoint
from xsoftmax.training.checkpoint_parts import PartedCheckpoint
from xsoftmax.training.epoch_sampler import EpochSampler, ShuffledSampler, WindowSampler
from xsoftmax.training.evaluator import Evaluator, all_finite
from xsoftmax.training.plan import STATUSES, FitState, Plan
from xsoftmax.training.preparations import Preparations
from xsoftmax.training.pretrained import pretrained_table
from xsoftmax.training.ranks import agreed, check_ranks
from xsoftmax.training.refusals import check_fit, streams
from xsoftmax.training.snapshot import Snapshot
from xsoftmax.training.trained_models import TrainedModels

_NOT_IDENTITY = {"checkpoint", "checkpoint_seconds", "memory", "spent"}


@dataclass(frozen=True)
class FitResult:
    """A trained model, and how it came about.

    Attributes
    ----------
    model : Model or None
        None if it diverged.
    setup_seconds : float
        Of the proposal's fit, and of what the plan says was spent before.
    state : FitState
    kept : dict
        The row of the history whose weights the model has, by its ``epoch``; ``by`` which of its values it was
        chosen, "last" if by none; and that ``value``, if any. Empty if it diverged.
    compile_seconds : float
    pruning : dict
        What pruning left and cost, as ``cost_of_pruning`` says; empty without any.
    streamed : bool
        Whether training rows stayed in their file.
    """

    model: Model | None
    setup_seconds: float
    state: FitState
    kept: dict[str, Any]
    compile_seconds: float = 0.0
    streamed: bool = False
    pruning: dict[str, Any] = field(default_factory=dict)


def fit(
    data: Dataset,
    method: Method,
    seed: int,
    plan: Plan,
    proposal: Proposal | None = None,
    stop: threading.Event | None = None,
    callbacks: Sequence[Callback] = (),
    beforehand: Mapping[str | Path, StoredProposal] | None = None,
    start: Start | None = None,
    carried: Mapping[str, Any] | None = None,
    ranks: Group = ALONE,
) -> FitResult:
    """Train one method on prepared data.

    The result depends on data, method, seed and (for a time budget) the machine's speed; a fit that was killed
    and resumes from ``plan.checkpoint`` gives the same weights as one that was not. Nothing is said along the way but
    warnings, unless one of ``callbacks`` does.

    Parameters
    ----------
    data : Dataset
        Rows to train on, and those that judge.
    method : Method
        What to train.
    seed : int
        Of the order of rows, and of all draws; 0 or more.
    plan : Plan
        The budget, when to evaluate, which weights to keep, where to keep checkpoints.
    proposal : Proposal, optional
        The method's, if it has been fitted to these rows with this seed before.
    stop : threading.Event, optional
        Once it is set, a checkpoint is written and the fit given up.
    callbacks : sequence of Callback
        See ``xsoftmax.training.callbacks``. One that fails is left out, with a warning.
    beforehand : mapping of path to StoredProposal, optional
        Parts of the proposal, by the files that they were read from.
    start : Start, optional
        Where weights begin, instead of where the method says.
    carried : mapping of str to ndarray, optional
        What another fit of the method has ended with (``RunningFit.arrays``).
    ranks : Group, optional
        Processes that train together: each calls this with the same arguments, and has a part of the model in the
        end (see ``xsoftmax.training.ranks.write_together``).

    Returns
    -------
    FitResult

    Raises
    ------
    InputError
        If the method does not suit the data, or memory does not suffice.
    StoppedError
        If ``stop`` was set.
    """
    identity = [method.settings, data.identity, seed, plan.epochs, plan.seconds, plan.at, plan.identity]
    check_ranks(ranks, method, data.n_classes, start is not None, identity)
    check_fit(data, method, seed, start is not None)
    stream = streams(data, method, plan, ranks)
    running = _Fit(data, method, seed, replace(plan, stream=stream), proposal, beforehand or {}, start, ranks)
    if carried is not None:
        running.solver.restore({**carried, "auxiliary": running.solver.auxiliary})
    return running.run(stop or threading.Event(), callbacks)


class _Fit:
    """One run of ``fit``: what ``RunningFit`` says of it, and the loop."""

    def __init__(
        self,
        data: Dataset,
        method: Method,
        seed: int,
        plan: Plan,
        proposal: Proposal | None,
        beforehand: Mapping[str | Path, StoredProposal],
        start: Start | None = None,
        ranks: Group = ALONE,
    ) -> None:
        self.data, self.method, self.seed, self.plan, self.ranks = data, method, seed, plan, ranks
        self.dataset, self.name = data.name, f"{data.name} {method.name} seed {seed}"
        self.place = place_of(method)
        self.train, self.sampler = training_rows(data, method, seed, bool(plan.stream), plan)
        X, y = self.train.X, self.train.y
        self.pool = ThreadPool(plan.threads)
        beginning = find_beginning(method, data, self.train, self.pool) if start is None else Beginning(start)
        self.start = "" if start is None else digest_of(start)
        self.beforehand = list(beforehand.values())
        known = known_beforehand(beforehand, method.proposal, data, plan.share)
        self.table = pretrained_table(method, data)
        training_set = TrainingSet(
            X,
            y,
            data.n_classes,
            seed,
            method.n_sampled,
            beginning.start,
            known,
            label_sets=self.train.label_sets,
            table=self.table.rows,
            ranks=ranks,
            # All ranks draw from one tree: on devices that differ, each would have another.
            engine=self._tree_engine() if ranks.n_ranks == 1 else None,
        )
        self.objective = method.objective.fit(training_set)
        begin = time.perf_counter()
        self.proposal: Proposal = proposal or fitted(method.proposal, seen_by(method, training_set))
        proposal_seconds = self.proposal.seconds + sum(each.attributes["seconds"] for each in self.beforehand)
        proposal_seconds = ranks.latest(proposal_seconds)
        compiled = 0.0 if proposal or beforehand else time.perf_counter() - begin - self.proposal.seconds
        self.solver: Solver = make_solver(method, self.objective, self.proposal, training_set, self.pool)
        parts = (self.objective, self.proposal, method, self.pool)
        self.evaluator = Evaluator(data, self.train, *parts, plan.rows, self.place)
        self.models = TrainedModels(data, method, self.proposal, self.evaluator, self.pool, ranks)
        begin = time.perf_counter()
        self.solver.advance(np.empty(0, np.int64), 0, 0, 0.0)  # compiles, off the clock
        compiled = max(0.0, compiled) + time.perf_counter() - begin
        beginning, self.table = beginning.without_weights(), self.table.without_rows()
        self.preparations = Preparations(method, plan, self.proposal.name, proposal_seconds, beginning, compiled)
        self.budget = Budget(plan, self.train.n_samples, self.preparations.seconds)
        self.state, self.resumed = FitState(seconds=self.preparations.seconds), False
        self._make_callbacks()

    def _tree_engine(self) -> Any:
        """Give what fits trees on the device, loaded by name: an edit of it is an edit of fits with a tree there."""
        return None if self.place == NUMBA else registry.load("xsoftmax.gpu", "tree-engine").engine_on(self.place)

    def _make_callbacks(self) -> None:
        """Make those of the plan that decide what the fit comes to; without validation rows training rows judge."""
        data, plan = self.data, self.plan
        n_validation = data.n_samples("validation")
        self.judge = Judge(f"{'validation' if n_validation else 'train'}_{plan.judge}")
        self.best: BestWeights | None = None
        self.deciding: list[Callback] = [Evaluate()]
        keeps_best = plan.keeps_best(n_validation)
        if keeps_best or plan.patience is not None:
            self.deciding.append(self.judge)
        if keeps_best:
            self.best = best_of(self.method, self.ranks.shard(data.n_classes).n, data.n_features)
            self.deciding.append(KeepBest(self.best))
        if plan.patience is not None:
            self.deciding.append(StopEarly(plan.patience, self.judge.column))
        self.deciding.append(StopConverged())

    def run(self, stop: threading.Event, given: Sequence[Callback]) -> FitResult:
        """Train until the budget is spent, a callback stops the fit, or the weights are no longer finite."""
        guards = guarded(given)
        self.callbacks = [*self.deciding, *guards, Checkpoint(stop, self.ranks)]
        self.snapshot = Snapshot(self.solver, self.best, guards)
        self._resume()
        if not self.state.step:
            self.preparations.check(self.dataset)
        try:
            for each in self.callbacks:
                each.begin(self)
            self._train()
        finally:
            for each in self.callbacks:
                each.end(self)
            self.sampler.close()
        return self._result()

    def _train(self) -> None:
        """Go on chunk by chunk; begin and end with an evaluation."""
        state = self.state
        if not state.history:
            self.evaluate()
        while state.status == "running":
            if self.budget.share_done(state) >= 1:
                state.status = "finished"
                break
            self._advance(self.budget.chunk(self.method, state, self.solver.chunk))
            for each in self.callbacks:
                each.advanced(self)
        if state.status != "diverged" and state.history[-1]["step"] < state.step:  # someone stopped between two
            self.evaluate()

    def _advance(self, chunk: int) -> None:
        """Use one chunk of samples, or what is left of the epoch, and time it."""
        state = self.state
        start = time.perf_counter()
        samples = self.sampler.samples(state.epoch, state.position, chunk)
        used = self.solver.advance(samples, state.epoch, state.position, self.rate)
        state.seconds = self.ranks.latest(state.seconds + time.perf_counter() - start)
        state.step += used
        state.position += used
        if used < samples.size:
            self._diverge("its scores are not finite")
        elif state.position >= self.train.n_samples:
            state.epoch, state.position = state.epoch + 1, 0

    def evaluate(self) -> None:
        """Add a row to the history, exact on all rows, and tell it to all callbacks."""
        state, begin = self.state, time.perf_counter()
        row = {"epoch": self.epochs, "step": state.step, "seconds": state.seconds}
        W = self.solver.weights()
        finite = not self.ranks.latest(not all_finite(W))
        row |= {"learning_rate": self.rate} | self.evaluator.evaluate(self.models.of(W), self.solver.auxiliary)
        if self.evaluator.searched.size and finite:
            row |= self.solver.found(self.evaluator.searched)  # type: ignore[attr-defined]
        row = agreed(self.ranks, row)
        state.history.append(row)
        state.evaluation_seconds += time.perf_counter() - begin
        if not finite:
            self._diverge("its weights are not finite")
        elif not all(np.isfinite(row[key]) for key in ("train_log_likelihood", *self.evaluator.watched)):
            self._diverge(f"its training log-likelihood is {row['train_log_likelihood']}")
        for each in self.callbacks:
            each.evaluated(self, row)

    def stop(self, status: str, message: str) -> None:
        """End the fit, unless something else has."""
        if status not in STATUSES:
            raise InputError(f"status of a fit is {status!r}; {suggestion(status, STATUSES)}")
        if self.state.status == "running":
            self.state.status, self.state.message = status, message

    def _diverge(self, reason: str) -> None:
        """End the fit without a model, whatever else has ended it."""
        state = self.state
        state.status = "diverged"
        rate = self.method.optimizer.learning_rate
        step = f"{self.method.name} diverged at step {state.step}"
        state.message = f"{step} ({reason}); lower learning_rate (now {rate:g})"

    def _result(self) -> FitResult:
        """Make the model to keep, the best one or the last; there is none after divergence."""
        before, model = self.preparations, None
        pruning: dict[str, Any] = {}
        if self.state.status != "diverged":
            model, pruning = self.models.last(self.best.W if self.best else self.solver.weights())
        streamed = bool(self.plan.stream)
        return FitResult(model, before.seconds, self.state, self._kept(), before.compile_seconds, streamed, pruning)

    def _kept(self) -> dict[str, Any]:
        """Say which row of the history has the model's weights, and why."""
        if self.state.status == "diverged":
            return {}
        if self.best:
            return {
                "epoch": self.state.best_epoch,
                "by": self.judge.column,
                "value": self.judge.sign * self.state.best,
            }
        return {"epoch": self.state.history[-1]["epoch"], "by": "last"}

    def weights(self) -> Any:
        """Return the current weights."""
        return self.solver.weights()

    def arrays(self) -> Mapping[str, np.ndarray]:
        """Return all that steps change."""
        return self.solver.arrays()

    def model(self) -> Model:
        """Return the model of the current weights."""
        return self.evaluator.calibrated(self.models.of(self.solver.weights()))

    @property
    def rate(self) -> float:
        """Learning rate of the next step."""
        return self.budget.rate(self.method, self.state)

    @property
    def epochs(self) -> float:
        """Epochs so far, and the part of the current one."""
        return self.budget.epochs(self.state)

    @property
    def spent(self) -> float:
        """Epochs or seconds so far, as the budget is given."""
        return self.budget.spent(self.state)

    @property
    def converged(self) -> bool:
        """Whether going on would change nothing."""
        return self.solver.converged

    def _identity(self) -> str:
        """Hash of everything that the bits of a fit depend on."""
        plan = {key: value for key, value in asdict(self.plan).items() if key not in _NOT_IDENTITY}
        files = sorted(each.digest for each in self.beforehand)
        parts = [self.method.settings, self.seed, plan, self.solver.chunk, self.data.identity, files]
        parts += [each for each in (self.table.digest, self.start) if each]
        parts += [self.place] if self.place != NUMBA else []
        return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()

    def save(self) -> bool:
        """Write a checkpoint, if the fit is to go on; whether that worked. Training goes on without."""
        if not self.plan.checkpoint or self.state.status != "running":
            return False
        try:
            self._checkpoint(self.plan.checkpoint).write(self.snapshot.arrays(), asdict(self.state))
        except OSError as error:
            reason = f"cannot be written ({error.strerror or error}); training goes on, and an older one is kept"
            print(f"warning: {self.plan.checkpoint}: {reason}", file=sys.stderr)
            return False
        return True

    def _checkpoint(self, path: Path) -> PartedCheckpoint:
        return PartedCheckpoint(path, self._identity(), self.ranks, self.data.n_classes, self.snapshot.class_axis)

    def _resume(self) -> None:
        if not self.plan.checkpoint:
            return
        check_checkpoint(self.plan.checkpoint)
        found = self._checkpoint(self.plan.checkpoint).read(self.snapshot.restore, FitState)
        if found is not None:
            self.state, self.resumed = found, True


def training_rows(
    data: Dataset, method: Method, seed: int, stream: bool, plan: Plan | None = None
) -> tuple[Split, EpochSampler]:
    """Read the training rows, or a plan's share, or leave them in their file; say in which order they are visited."""
    if stream:
        windows = training_windows(data, method.minibatch_size)
        return windows.split, WindowSampler(windows, seed)
    train = data.split("train")
    if plan is not None and plan.share < 1:
        drawn = np.random.default_rng([seed, train.n_samples]).permutation(train.n_samples)
        train = taken(train, np.sort(drawn[: plan.n_training(train.n_samples)]))
    return train, ShuffledSampler(train.n_samples, seed, train.weight)

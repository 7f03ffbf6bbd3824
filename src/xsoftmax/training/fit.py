"""The one training loop: epochs or a time budget, evaluation off the clock, checkpoints, early stopping."""

import hashlib
import json
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from xsoftmax.data.dataset import Dataset, Split, check_plain
from xsoftmax.data.training_set import check_seed
from xsoftmax.data.windows import taken, training_windows
from xsoftmax.evaluation import metrics
from xsoftmax.evaluation.pruning import cost_of_pruning, pruned
from xsoftmax.internal.errors import InputError, StoppedError
from xsoftmax.internal.free_memory import check_free
from xsoftmax.internal.parameters import MOST_NUMBER
from xsoftmax.internal.progress import Progress
from xsoftmax.internal.text import pruning_in_words
from xsoftmax.internal.threads import Team
from xsoftmax.methods import Method
from xsoftmax.model import Model
from xsoftmax.optimizers._schedules import BY_PROGRESS
from xsoftmax.proposals import Proposal, TrainingSet, fitted
from xsoftmax.proposals._file import StoredProposal, known_beforehand
from xsoftmax.solvers import Solver, make_solver, solver_of
from xsoftmax.training.beginning import find_beginning
from xsoftmax.training.best import BestWeights
from xsoftmax.training.checkpoint import check_checkpoint, read_checkpoint, write_checkpoint
from xsoftmax.training.looks import Looks, all_finite
from xsoftmax.training.memory import check_memory, must_stream, size_of
from xsoftmax.training.plan import FitState, Plan
from xsoftmax.training.visits import Shuffled, Visits, Windowed

# Of a fit by epochs whose rate falls by progress: it is set anew so many times.
PARTS = 100
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
    beforehand: Mapping[str | Path, StoredProposal] | None = None,
) -> FitResult:
    """Train one method on prepared data.

    The result depends on data, method, seed and (for a time budget) the machine's speed; a fit that was killed
    and resumes from ``plan.checkpoint`` gives the same weights as one that was not. ``proposal`` is the method's,
    if it has been fitted to these rows with this seed before; ``beforehand`` has parts of it, by the files that they
    were read from. Once ``stop`` is set, a checkpoint is written and the
    fit given up.

    Raises
    ------
    InputError
        If the method does not suit the data, or memory does not suffice.
    StoppedError
        If ``stop`` was set.
    """
    check_question(data, seed)
    if method.calibration != "none" and not data.n_samples("validation"):
        raise InputError(
            f"method {method.name}: calibration is {method.calibration}, which validation rows decide, and "
            f"{data.name} has none; keep some rows for validation, or leave calibration out"
        )
    keeps_best = plan.keeps_best(data.n_samples("validation"))
    stream = plan.stream if plan.share == 1 else False
    if stream is None:
        stream = must_stream(method, data, keeps_best, plan.memory, plan.threads)
    elif stream and not solver_of(method, size_of(data)).streams:
        name = method.settings["optimizer"]["name"]
        raise InputError(f"method {method.name}: {name} needs all training rows in memory; leave --stream out")
    check_memory(method, data, keeps_best, plan.memory, stream, plan.threads)
    plan = replace(plan, stream=stream)
    return _Fit(data, method, seed, plan, proposal, beforehand or {}).run(stop or threading.Event())


def check_question(data: Dataset, seed: int) -> None:
    """Make sure that there is something to train, and a seed.

    Raises
    ------
    InputError
        If not.
    """
    if data.n_classes < 2:
        raise InputError(f"{data.name} has {data.n_classes} class; a softmax needs at least 2")
    if data.n_samples("train") == 0:
        raise InputError(f"{data.name} has no training rows; look at its preparation")
    check_plain(data, "no method trains with")
    check_seed(seed)


class _Fit:
    """One run of ``fit``."""

    def __init__(
        self,
        data: Dataset,
        method: Method,
        seed: int,
        plan: Plan,
        proposal: Proposal | None,
        beforehand: Mapping[str | Path, StoredProposal],
    ) -> None:
        self.data, self.method, self.seed, self.plan = data, method, seed, plan
        self.train, self.visits = training_rows(data, method, seed, bool(plan.stream), plan)
        self.class_names, self.transform = data.class_names, data.transform
        X, y = self.train.X, self.train.y
        self.team = Team(plan.threads)
        self.beginning = find_beginning(method, data, X, y, self.team)
        start = self.beginning.start
        self.beforehand = list(beforehand.values())
        known = known_beforehand(beforehand, method.proposal, data, plan.share)
        training_set = TrainingSet(X, y, data.n_classes, seed, method.n_sampled, start, known)
        self.objective = method.objective.fit(training_set)
        begin = time.perf_counter()
        self.proposal: Proposal = proposal or fitted(method.proposal, training_set)
        self.proposal_seconds = self.proposal.seconds + sum(each.attributes["seconds"] for each in self.beforehand)
        compiled = 0.0 if proposal or beforehand else time.perf_counter() - begin - self.proposal.seconds
        self.solver: Solver = make_solver(method, self.objective, self.proposal, training_set, self.team)
        self.chunk = self._chunk()
        keeps_best = plan.keeps_best(data.n_samples("validation"))
        shape = (data.n_classes, data.n_features + 1) if keeps_best else (0, 0)
        self.best = BestWeights(shape, method.weights == "sparse")
        self.looks = Looks(data, self.train, self.objective, self.proposal, method, self.team, plan.rows)
        self.beginning = self.beginning.without_weights()
        self.setup_seconds = self.proposal_seconds + plan.spent + self.beginning.seconds
        self.compile_seconds = max(0.0, compiled)
        self.state = FitState(seconds=self.setup_seconds)

    def run(self, stop: threading.Event) -> FitResult:
        """Train until the budget is spent, nothing more is gained, or the weights are no longer finite."""
        begin = time.perf_counter()
        self.solver.advance(np.empty(0, np.int64), 0, 0, 0.0)  # compiles, off the clock
        self.compile_seconds += time.perf_counter() - begin
        self._resume()
        self._check_budget()
        saved = time.monotonic()
        name = f"{self.data.name} {self.method.name} seed {self.seed}"
        unit = "seconds" if self.plan.epochs is None else "epochs"
        with Progress(name, unit, self._spent(), self.plan.budget) as progress:
            if not self.state.history:
                progress.say(self._preparations())
                self._evaluate(progress)
            while self.state.status == "running":
                self._advance()
                progress.move_to(self._spent(), self._pace())
                if self.state.status == "running" and self._is_due():
                    self._evaluate(progress)
                if stop.is_set() or time.monotonic() - saved >= self.plan.checkpoint_seconds:
                    kept = self._save()
                    saved = time.monotonic()
                if stop.is_set() and self.state.status == "running":
                    resumes = f"; the same command goes on from {self.plan.checkpoint}" if kept else ""
                    raise StoppedError(f"{name} at epoch {self._epochs():.2f}{resumes}")
        self.visits.close()
        streamed, (model, pruning) = bool(self.plan.stream), self._model()
        return FitResult(model, self.setup_seconds, self.state, self._kept(), self.compile_seconds, streamed, pruning)

    def _check_budget(self) -> None:
        """Refuse a budget that is spent before the first step, unless weights begin at something."""
        if not self._is_late() or self.beginning.scale:
            return
        raise InputError(
            f"{self.method.name} on {self.data.name}: a budget of {self.plan.seconds:g} s leaves no time for a step "
            f"({self._preparations()}); "
            f"give more than {self.setup_seconds:.3g} s, a budget in epochs, or a method without such a proposal"
        )

    def _is_late(self) -> bool:
        """Whether the budget is spent before the first step."""
        budget = self.plan.seconds
        return budget is not None and not self.state.step and 0 < budget <= self.setup_seconds

    def _preparations(self) -> str:
        """Say what came before the first step, and what of it the budget counts."""
        parts = [f"compiled in {self.compile_seconds:.3g} s"]
        counts = ", which the budget counts" if self.plan.epochs is None else ""
        if self.plan.spent:
            parts.append(f"a choice took {self.plan.spent:.3g} s{counts}")
        if self.proposal_seconds:
            parts.append(f"proposal {self.proposal.name} was fitted in {self.proposal_seconds:.3g} s{counts}")
        if self.beginning.scale:
            name, found = self.method.settings["start"]["name"], self.beginning
            parts.append(f"weights begin at {name} times {found.scale:.3g}, found in {found.seconds:.3g} s{counts}")
            if self._is_late():
                parts.append(
                    f"no time is left for a step: the model is {name}; give more than {self.setup_seconds:.3g} s"
                )
        return "; ".join(parts)

    def _advance(self) -> None:
        """Use one chunk of samples, or what is left of the epoch, and time it."""
        state = self.state
        if self._share_done() >= 1:
            state.status = "finished"
            return
        start = time.perf_counter()
        samples = self.visits.samples(state.epoch, state.position, self.chunk)
        used = self.solver.advance(samples, state.epoch, state.position, self._rate())
        state.seconds += time.perf_counter() - start
        state.step += used
        state.position += used
        if used < samples.size:
            self._diverge("its scores are not finite")
        elif state.position >= self.train.n_samples:
            state.epoch, state.position = state.epoch + 1, 0

    def _evaluate(self, progress: Progress) -> None:
        """Add a row to the history, exact on all rows; decide whether to go on."""
        state, begin = self.state, time.perf_counter()
        row = {"epoch": self._epochs(), "step": state.step, "seconds": state.seconds}
        W = self.solver.weights()
        row |= {"learning_rate": self._rate()} | self.looks.look(self._model_of(W), self.solver.states)
        if self.looks.searched.size and all_finite(W):
            row |= self.solver.found(self.looks.searched)  # type: ignore[attr-defined]
        state.history.append(row)
        state.looked += time.perf_counter() - begin
        pace = self._pace()
        values = "".join(f", {key.removesuffix('_log_likelihood')} {row[key]:.4f} nats" for key in self.looks.watched)
        progress.say(f"epoch {row['epoch']:.4g}, trained for {state.seconds:.3g} s{values}{pace and ', '}{pace}")
        if not all_finite(W):
            self._diverge("its weights are not finite")
        elif not all(np.isfinite(row[key]) for key in ("train_log_likelihood", *self.looks.watched)):
            self._diverge(f"its training log-likelihood is {row['train_log_likelihood']}")
        elif self.plan.patience is not None or self.best.kept:
            self._judge(row)
        if self.solver.converged and state.status == "running":
            state.status, state.message = "finished", f"converged after {state.epoch} epochs"

    def _judge(self, row: Mapping[str, float]) -> None:
        """Keep the best weights, if asked to; stop early by the validation rows, or without any by the training's."""
        state, patience = self.state, self.plan.patience
        value = self._sign * row[self._judged]
        if not np.isfinite(value) and state.best == -np.inf:
            raise InputError(f"{self._judged} is {self._sign * value}, which cannot judge weights; take another --by")
        if value > state.best:
            state.best, state.best_epoch, state.without_gain = value, row["epoch"], 0
            if self.best.kept:
                self.best.take(self.solver.weights())
            return
        state.without_gain += 1
        if patience is not None and state.without_gain >= patience:
            state.status = "stopped early"
            state.message = f"best {metrics.title_of(self._judged)} at epoch {state.best_epoch:g}"

    @property
    def _judged(self) -> str:
        """Name the column that tells which weights are best."""
        return f"{'validation' if self.data.n_samples('validation') else 'train'}_{self.plan.judge}"

    @property
    def _sign(self) -> int:
        """What makes the judged column one of which more is better; ``FitState.best`` is multiplied by it."""
        return metrics.judge_of(self.plan.judge).sign

    def _kept(self) -> dict[str, Any]:
        """Say which row of the history has the model's weights, and why."""
        if self.state.status == "diverged":
            return {}
        if self.best.kept:
            return {"epoch": self.state.best_epoch, "by": self._judged, "value": self._sign * self.state.best}
        return {"epoch": self.state.history[-1]["epoch"], "by": "last"}

    def _diverge(self, reason: str) -> None:
        state = self.state
        state.status = "diverged"
        rate = self.method.optimizer.learning_rate
        step = f"{self.method.name} diverged at step {state.step}"
        state.message = f"{step} ({reason}); lower learning_rate (now {rate:g})"

    def _model(self) -> tuple[Model | None, dict[str, Any]]:
        """The model to keep, the best one or the last, pruned, and what that cost; None after divergence."""
        if self.state.status == "diverged":
            return None, {}
        model, cost = self._model_of(self.best.W if self.best.kept else self.solver.weights()), {}
        if self.method.prune:
            whole, rows, calibrated = model, self.looks.validation, self.looks.calibrated
            model = pruned(whole, self.method.prune)
            cost = cost_of_pruning(whole, model, rows.X, rows.y, calibrated, self.team)
            print(pruning_in_words(cost), file=sys.stderr)
        return self.looks.calibrated(model), cost

    def _model_of(self, W: Any) -> Model:
        correction = self.proposal if self.method.objective.adds_log_q else None
        attributes = {"dataset": self.data.name, "method": self.method.name}
        others = {"bias": self.method.bias, "correction": correction, "transform": self.transform}
        link = self.method.objective.link
        return Model.of_rows(W, self.class_names, self.data.n_features, attributes=attributes, link=link, **others)

    def _chunk(self) -> int:
        """Count the samples of a call: those of the solver's chunk, or of a part of the fit, in whole minibatches."""
        method, epochs = self.method, self.plan.epochs
        if epochs is None or not isinstance(method.schedule, BY_PROGRESS):
            return self.solver.chunk
        size = method.minibatch_size
        return min(self.solver.chunk, size * max(1, epochs * self.train.n_samples // (PARTS * size)))

    def _progress(self) -> float:
        """Share of the training that is done, by epochs or, after all preparations, by seconds."""
        if self.plan.epochs is not None:
            return self._share_done()
        trained, budget = self.state.seconds - self.setup_seconds, self.plan.budget - self.setup_seconds
        return min(max(trained / budget, 0.0), 1.0) if budget > 0 else 1.0

    def _rate(self) -> float:
        state, method = self.state, self.method
        try:
            factor = method.schedule.factor(state.epoch, state.step, self._progress())
            rate = method.optimizer.learning_rate * factor
        except OverflowError:  # of a factor that grows
            rate = np.inf
        return min(rate, MOST_NUMBER)

    def _epochs(self) -> float:
        return self.state.epoch + self.state.position / self.train.n_samples

    def _spent(self) -> float:
        """Epochs or seconds, as the budget is given."""
        return self.state.seconds if self.plan.epochs is None else self._epochs()

    def _share_done(self) -> float:
        return self._spent() / self.plan.budget if self.plan.budget else 1.0

    def _pace(self) -> str:
        """Rate, and training time that remains."""
        trained, share = self.state.seconds - self.setup_seconds, self._share_done()
        if trained <= 0 or share <= 0:
            return ""
        left = trained * max(1 - share, 0) / share
        return f"{self.state.step / trained:,.0f} steps/s, {left:.0f} s left"

    def _is_due(self) -> bool:
        """Whether a planned evaluation has been reached."""
        before = self.state.history[-1]["seconds" if self.plan.epochs is None else "epoch"]
        following = next((at for at in self.plan.at if at > before), self.plan.budget)
        return self.solver.converged or self._spent() >= min(following, self.plan.budget)

    def _arrays(self) -> dict[str, np.ndarray]:
        return {**self.solver.arrays(), **self.best.arrays()}

    def _restore(self, found: Mapping[str, Any]) -> None:
        """Take the arrays of a checkpoint; those that do not fit are refused before anything is changed."""
        more = sum(array.nbytes for array in found.values()) - sum(array.nbytes for array in self._arrays().values())
        check_free(more, "the arrays of the checkpoint")
        best = {name: array for name, array in found.items() if name.startswith("best_")}
        self.best.check(best)
        self.solver.restore({name: array for name, array in found.items() if name not in best})
        self.best.restore(best)

    def _identity(self) -> str:
        """Hash of everything that the bits of a fit depend on."""
        plan = {key: value for key, value in asdict(self.plan).items() if key not in _NOT_IDENTITY}
        files = sorted(each.digest for each in self.beforehand)
        parts = [self.method.settings, self.seed, plan, self.solver.chunk, self.data.identity, files]
        return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()

    def _save(self) -> bool:
        """Write a checkpoint, if the fit is to go on; whether that worked. Training goes on without."""
        if not self.plan.checkpoint or self.state.status != "running":
            return False
        try:
            write_checkpoint(self.plan.checkpoint, self._identity(), self._arrays(), asdict(self.state))
        except OSError as error:
            reason = f"cannot be written ({error.strerror or error}); training goes on, and an older one is kept"
            print(f"warning: {self.plan.checkpoint}: {reason}", file=sys.stderr)
            return False
        return True

    def _resume(self) -> None:
        if not self.plan.checkpoint:
            return
        check_checkpoint(self.plan.checkpoint)
        found = read_checkpoint(self.plan.checkpoint, self._identity(), self._restore, FitState)
        if found is not None:
            self.state = found
            print(f"resumed {self.plan.checkpoint} at epoch {self._epochs():.2f}", file=sys.stderr)


def training_rows(
    data: Dataset, method: Method, seed: int, stream: bool, plan: Plan | None = None
) -> tuple[Split, Visits]:
    """Read the training rows, or a plan's share, or leave them in their file; say in which order they are visited."""
    if stream:
        windows = training_windows(data, method.minibatch_size)
        return windows.split, Windowed(windows, seed)
    train = data.split("train")
    if plan is not None and plan.share < 1:
        drawn = np.random.default_rng([seed, train.n_samples]).permutation(train.n_samples)
        train = taken(train, np.sort(drawn[: plan.n_training(train.n_samples)]))
    return train, Shuffled(train.n_samples, seed)

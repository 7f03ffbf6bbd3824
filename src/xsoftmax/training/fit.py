"""The one training loop: epochs or a time budget, evaluation off the clock, checkpoints, early stopping."""

import hashlib
import json
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np

from xsoftmax.data.store import SPLITS, Prepared
from xsoftmax.errors import InputError
from xsoftmax.evaluation.metrics import evaluate
from xsoftmax.evaluation.objective import mean_loss
from xsoftmax.methods import Method
from xsoftmax.model import Model
from xsoftmax.proposals import Proposal, TrainingSet
from xsoftmax.training.checkpoint import read_checkpoint, write_checkpoint
from xsoftmax.training.memory import check_memory
from xsoftmax.training.progress import ProgressReport
from xsoftmax.training.solvers import Solver, make_solver

SUBSET = 5000
_NOT_IDENTITY = {"checkpoint", "checkpoint_seconds", "memory", "tree"}


@dataclass(frozen=True)
class Plan:
    """How long to train, when to look, and where to keep checkpoints.

    Attributes
    ----------
    epochs : int or None
    seconds : float or None
        Of training, the proposal's fit counted and evaluation not. One of the two is given.
    at : tuple of float
        When to evaluate beside start and end, rising: epochs, or seconds of training, as the budget is given.
    patience : int or None
        Stop after so many evaluations without a better validation log-likelihood, and keep the best weights.
    checkpoint : Path or None
    checkpoint_seconds : float
        Between two checkpoints.
    memory : int or None
        Bytes that the fit may take.
    tree : Path or None
        A fitted tree, for proposal tree.
    identity : str
        Fingerprint of the code, part of a checkpoint's stamp.
    """

    epochs: int | None = None
    seconds: float | None = None
    at: tuple[float, ...] = ()
    patience: int | None = None
    checkpoint: Path | None = None
    checkpoint_seconds: float = 60.0
    memory: int | None = None
    tree: Path | None = None
    identity: str = ""

    def __post_init__(self) -> None:
        if (self.epochs is None) == (self.seconds is None):
            raise InputError(f"budget: epochs is {self.epochs}, seconds is {self.seconds}; give one of the two")
        if not 0 <= self.budget < np.inf:
            raise InputError(f"budget is {self.budget:g}; set it to 0 or more")
        if self.patience is not None and self.patience < 1:
            raise InputError(f"patience is {self.patience}; set it to 1 or more, or leave it out")
        if any(later <= earlier for earlier, later in pairwise((0, *self.at))):
            raise InputError(f"evaluations are at {self.at}; give rising numbers above 0")

    @property
    def budget(self) -> float:
        """Epochs or seconds, whichever is given."""
        return float(self.seconds if self.epochs is None else self.epochs)  # type: ignore[arg-type]


@dataclass
class Progress:
    """Where a fit stands; what a checkpoint keeps beside arrays.

    ``position`` counts samples of ``epoch``.
    """

    epoch: int = 0
    position: int = 0
    step: int = 0
    seconds: float = 0.0
    history: list[dict[str, float]] = field(default_factory=list)
    best: float = -np.inf
    best_epoch: float = 0.0
    without_gain: int = 0
    status: str = "running"
    message: str = ""


@dataclass(frozen=True)
class FitResult:
    """A trained model (None if it diverged) and how it came about."""

    model: Model | None
    proposal: Proposal
    progress: Progress


def fit(data: Prepared, method: Method, seed: int, plan: Plan) -> FitResult:
    """Train one method on prepared data.

    The result depends on data, method, seed and (for a time budget) the machine's speed; a fit that was killed
    and resumes from ``plan.checkpoint`` gives the same weights as one that was not.

    Raises
    ------
    InputError
        If the method does not suit the data, or memory does not suffice.
    """
    if data.n_classes < 2:
        raise InputError(f"{data.name} has {data.n_classes} class; a softmax needs at least 2")
    if seed < 0:
        raise InputError(f"seed is {seed}; set it to 0 or more")
    n_sampled = getattr(method.objective, "n_sampled", 1)
    if method.proposal.draws and n_sampled > data.n_classes - 1:
        raise InputError(
            f"method {method.name}: n_sampled is {n_sampled}, {data.name} has {data.n_classes} classes; "
            f"set n_sampled to {data.n_classes - 1} or less"
        )
    check_memory(method, data, plan.patience is not None, plan.memory)
    return _Fit(data, method, seed, plan).run()


class _Fit:
    """One run of ``fit``."""

    def __init__(self, data: Prepared, method: Method, seed: int, plan: Plan) -> None:
        self.data, self.method, self.seed, self.plan = data, method, seed, plan
        self.splits = {name: data.split(name) for name in SPLITS}
        self.class_names, self.transform = data.class_names, data.transform
        self.train = self.splits["train"]
        if self.train.n_samples == 0:
            raise InputError(f"{data.name} has no training rows; look at its preparation")
        X, y = self.train.X, self.train.y
        self.proposal: Proposal = method.proposal.fit(TrainingSet(X, y, data.n_classes, seed, plan.tree))
        self.solver: Solver = make_solver(method, self.proposal, X, y, data.n_classes, seed)
        keeps_best = plan.patience is not None
        self.best_W = np.zeros((data.n_classes, data.n_features + 1) if keeps_best else (0, 0), np.float32)
        self.subset = np.sort(np.random.default_rng(0).permutation(self.train.n_samples)[:SUBSET])
        self.progress = Progress(seconds=self.proposal.seconds)
        self._order: tuple[int, np.ndarray] = (-1, np.empty(0, np.int64))

    def run(self) -> FitResult:
        """Train until the budget is spent, nothing more is gained, or the weights are no longer finite."""
        self.solver.advance(np.empty(0, np.int64), 0, 0, 0.0)  # compiles, off the clock
        self._resume()
        saved = time.monotonic()
        name = f"{self.data.name} {self.method.name} seed {self.seed}"
        with ProgressReport(name, self._share_done()) as report:
            if not self.progress.history:
                self._evaluate(report)
            while self.progress.status == "running":
                self._advance()
                report.advance(self._share_done(), self._steps_per_second())
                if self.progress.status == "running" and self._is_due():
                    self._evaluate(report)
                if self.plan.checkpoint and time.monotonic() - saved >= self.plan.checkpoint_seconds:
                    self._save()
                    saved = time.monotonic()
        if self.plan.checkpoint:
            self.plan.checkpoint.unlink(missing_ok=True)
        return FitResult(self._model(), self.proposal, self.progress)

    def _advance(self) -> None:
        """Use one chunk of samples, or what is left of the epoch, and time it."""
        progress = self.progress
        if self._share_done() >= 1:
            progress.status = "finished"
            return
        samples = self._epoch_order()[progress.position : progress.position + self.solver.chunk]
        start = time.perf_counter()
        used = self.solver.advance(samples, progress.epoch, progress.position, self._rate())
        progress.seconds += time.perf_counter() - start
        progress.step += used
        progress.position += used
        if used < samples.size:
            self._diverge("its scores are not finite")
        elif progress.position >= self.train.n_samples:
            progress.epoch, progress.position = progress.epoch + 1, 0

    def _evaluate(self, report: ProgressReport) -> None:
        """Add a row to the history, exact on all rows; decide whether to go on."""
        progress = self.progress
        row = {"epoch": self._epochs(), "step": progress.step, "seconds": progress.seconds}
        row |= {"learning_rate": self._rate()} | self._measure()
        progress.history.append(row)
        report.evaluated(row, self._share_done(), self._seconds_left())
        if not all(np.isfinite(row[key]) for key in ("train_log_likelihood", *self._watched())):
            self._diverge(f"its training log-likelihood is {row['train_log_likelihood']}")
        elif self.plan.patience is not None:
            self._keep_best(row)
        if self.solver.converged and progress.status == "running":
            progress.status, progress.message = "finished", f"converged after {progress.epoch} epochs"

    def _measure(self) -> dict[str, float]:
        """Training objective and log-likelihood on a fixed subset; all metrics on validation and test rows."""
        model = self._model_of(self.solver.weights())
        X, y = self.train.X[self.subset], self.train.y[self.subset]
        row = {
            "objective": mean_loss(
                model, self.method.objective, self.proposal, X, y, self.solver.states[self.subset]
            ),
            "train_log_likelihood": evaluate(model, X, y)["log_likelihood"],
        }
        for name in ("validation", "test"):
            split = self.splits[name]
            if split.n_samples:
                metrics = evaluate(model, split.X, split.y)
                row |= {f"{name}_{key}": value for key, value in metrics.items()}
        return row

    def _watched(self) -> list[str]:
        return [f"{name}_log_likelihood" for name in ("validation", "test") if self.splits[name].n_samples]

    def _keep_best(self, row: Mapping[str, float]) -> None:
        """Early stopping on the validation log-likelihood; without validation rows, on the training subset's."""
        progress = self.progress
        value = row.get("validation_log_likelihood", row["train_log_likelihood"])
        if value > progress.best:
            progress.best, progress.best_epoch, progress.without_gain = value, row["epoch"], 0
            self.best_W[:] = self.solver.weights()
        else:
            progress.without_gain += 1
            if progress.without_gain >= (self.plan.patience or 0):
                progress.status = "stopped early"
                progress.message = f"best validation log-likelihood at epoch {progress.best_epoch:g}"

    def _diverge(self, reason: str) -> None:
        progress = self.progress
        progress.status = "diverged"
        rate = self.method.optimizer.learning_rate
        step = f"{self.method.name} diverged at step {progress.step}"
        progress.message = f"{step} ({reason}); lower learning_rate (now {rate:g})"

    def _model(self) -> Model | None:
        """The model to keep: the best one with early stopping, otherwise the last; None after divergence."""
        if self.progress.status == "diverged":
            return None
        return self._model_of(self.best_W if self.best_W.size else self.solver.weights())

    def _model_of(self, W: np.ndarray) -> Model:
        correction = None if self.method.objective.excludes_true else self.proposal
        attributes = {"dataset": self.data.name, "method": self.method.name}
        names, n_features, bias = self.class_names, self.data.n_features, self.method.bias
        return Model(W, names, n_features, bias, correction, self.transform, attributes)

    def _rate(self) -> float:
        progress = self.progress
        return self.method.optimizer.learning_rate * self.method.schedule.factor(progress.epoch, progress.step)

    def _epoch_order(self) -> np.ndarray:
        """Samples in the order of this epoch: a permutation from (seed, epoch)."""
        epoch = self.progress.epoch
        if self._order[0] != epoch:
            self._order = epoch, np.random.default_rng([self.seed, epoch]).permutation(self.train.n_samples)
        return self._order[1]

    def _epochs(self) -> float:
        return self.progress.epoch + self.progress.position / self.train.n_samples

    def _trained(self) -> float:
        """Seconds of training, the proposal's not counted."""
        return self.progress.seconds - self.proposal.seconds

    def _steps_per_second(self) -> float:
        return self.progress.step / max(self._trained(), 1e-9)

    def _spent(self, epochs: float, seconds: float) -> float:
        return seconds if self.plan.epochs is None else epochs

    def _share_done(self) -> float:
        spent = self._spent(self._epochs(), self.progress.seconds)
        return spent / self.plan.budget if self.plan.budget else 1.0

    def _seconds_left(self) -> float:
        share = self._share_done()
        return self._trained() * (1 - share) / share if share else float("nan")

    def _is_due(self) -> bool:
        """Whether a planned evaluation has been reached."""
        before = self._spent(self.progress.history[-1]["epoch"], self.progress.history[-1]["seconds"])
        following = next((at for at in self.plan.at if at > before), self.plan.budget)
        now = self._spent(self._epochs(), self.progress.seconds)
        return self.solver.converged or now >= min(following, self.plan.budget)

    def _arrays(self) -> dict[str, np.ndarray]:
        return {**self.solver.arrays(), "best_W": self.best_W}

    def _identity(self) -> str:
        """Hash of everything that the bits of a fit depend on."""
        plan = {key: value for key, value in asdict(self.plan).items() if key not in _NOT_IDENTITY}
        parts = [self.method.settings, self.seed, plan, self.solver.chunk, self.data.attributes]
        digest = hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode())
        digest.update(self.train.y.tobytes())
        return digest.hexdigest()

    def _save(self) -> None:
        if self.plan.checkpoint and self.progress.status == "running":
            write_checkpoint(self.plan.checkpoint, self._identity(), self._arrays(), asdict(self.progress))

    def _resume(self) -> None:
        if not self.plan.checkpoint:
            return
        progress = read_checkpoint(self.plan.checkpoint, self._identity(), self._arrays())
        if progress is not None:
            self.progress = Progress(**progress)
            print(f"resumed {self.plan.checkpoint} at epoch {self._epochs():.2f}", file=sys.stderr)

"""How long to train and when to look; where a fit stands."""

import math
from dataclasses import MISSING, dataclass, field, fields
from itertools import pairwise
from pathlib import Path

import numpy as np

from xsoftmax.evaluation import metrics
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.threads import MOST_THREADS

# Training rows, at most, on which the objective and the training log-likelihood are recorded.
SUBSET = 5000
KEEP = ("best", "last")
# How a fit may end.
STATUSES = ("finished", "stopped early", "diverged")
# Of times between evaluations that become ever rarer.
GROWTH = 1.3


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
        Stop after so many evaluations that ``judge`` finds no better.
    keep : {"best", "last"}
        Which weights the model has: those of the evaluation that ``judge`` finds best, where there are validation
        rows or ``patience``; or the last.
    judge : str
        The column of the metric that says which evaluations are best: by validation rows or, without any, by the
        training subset.
    rows : int or None
        Of each split, how many are looked at along the way, at most; always the same ones. None: all validation and
        test rows, and ``SUBSET`` training rows.
    checkpoint : Path or None
    checkpoint_seconds : float
        Between two checkpoints.
    memory : int or None
        Bytes that the program may take.
    threads : int
        Of training and evaluation. Sampled methods then change weights without locks: bits differ from run to run.
    stream : bool or None
        Whether training rows stay in their file, of which an epoch reads one window after another: in another order,
        so that it is part of a fit's identity. None: if memory does not hold them.
    share : float
        Of the training rows, drawn with the seed, how many are trained on; others are as if they were not there.
    spent : float
        Seconds of training before the fit, such as a pilot's: part of the budget.
    identity : str
        Fingerprint of the code, part of a checkpoint's stamp.
    """

    epochs: int | None = None
    seconds: float | None = None
    at: tuple[float, ...] = ()
    patience: int | None = None
    keep: str = "best"
    judge: str = metrics.JUDGE
    rows: int | None = None
    checkpoint: Path | None = None
    checkpoint_seconds: float = 60.0
    memory: int | None = None
    threads: int = 1
    stream: bool | None = None
    share: float = 1.0
    spent: float = 0.0
    identity: str = ""

    def __post_init__(self) -> None:
        if (self.epochs is None) == (self.seconds is None):
            raise InputError(f"budget: epochs is {self.epochs}, seconds is {self.seconds}; give one of the two")
        if not 0 <= self.budget < np.inf:
            raise InputError(f"budget is {self.budget:g}; set it to 0 or more")
        if self.patience is not None and self.patience < 1:
            raise InputError(f"patience is {self.patience}; set it to 1 or more, or leave it out")
        if self.keep not in KEEP:
            raise InputError(f"keep is {self.keep!r}; set it to {' or '.join(KEEP)}")
        metrics.judge_of(self.judge)
        if not 1 <= self.threads <= MOST_THREADS:
            raise InputError(f"threads is {self.threads}; set it to 1 or more, {MOST_THREADS} at most")
        if self.rows is not None and self.rows < 1:
            raise InputError(f"rows is {self.rows}; look at 1 or more, or leave it out to look at all")
        if not 0 < self.share <= 1:
            raise InputError(f"share of training rows is {self.share:g}; set it above 0, to 1 at most")
        if self.share < 1 and self.stream:
            raise InputError("a share of the training rows is taken into memory; leave --stream out")
        if not all(earlier < later < np.inf for earlier, later in pairwise((0, *self.at))):
            raise InputError(f"evaluations are at {self.at}; give rising numbers above 0")
        if not 0 <= self.checkpoint_seconds < np.inf:
            raise InputError(f"checkpoint_seconds is {self.checkpoint_seconds}; set it to 0 or more")
        if self.memory is not None and self.memory < 1:
            raise InputError(f"memory is {self.memory} bytes; give what the fit may take, or leave it out")

    def keeps_best(self, n_validation: int) -> bool:
        """Tell whether the best weights so far are kept beside the current ones, with so many validation rows."""
        return self.keep == "best" and (n_validation > 0 or self.patience is not None)

    def n_training(self, n_samples: int) -> int:
        """Count the rows of so many that are trained on."""
        return n_samples if self.share == 1 else max(1, round(self.share * n_samples))

    @property
    def budget(self) -> float:
        """Epochs or seconds, whichever is given."""
        chosen = self.seconds if self.epochs is None else self.epochs
        return 0.0 if chosen is None else float(chosen)


def ever_rarer(first: float, last: float, growth: float = GROWTH) -> tuple[float, ...]:
    """Give times from the first to the last, each ``growth`` times the one before; none if there are none above 0."""
    if last <= 0:
        return ()
    n = math.ceil(round(math.log(last / first, growth), 9)) if 0 < first < last else 0
    return (*(first * growth**k for k in range(n)), last)


@dataclass
class FitState:
    """Where a fit stands; what a checkpoint keeps beside arrays.

    ``position`` counts samples of ``epoch``; ``evaluation_seconds`` the seconds of evaluations, which no budget
    counts; ``best`` is the best value of the judge, times -1 where lower is better.
    """

    epoch: int = 0
    position: int = 0
    step: int = 0
    seconds: float = 0.0
    evaluation_seconds: float = 0.0
    history: list[dict[str, float]] = field(default_factory=list)
    best: float = -np.inf
    best_epoch: float = 0.0
    without_gain: int = 0
    status: str = "running"
    message: str = ""

    def __post_init__(self) -> None:
        """Refuse what no fit comes to: someone else's checkpoint may say anything."""
        for each in fields(self):
            value, default = getattr(self, each.name), each.default if each.default is not MISSING else []
            wanted = (int, float) if isinstance(default, float) else type(default)
            if isinstance(value, bool) or not isinstance(value, wanted):
                raise ValueError(f"{each.name} is {value!r}")
        if min(self.epoch, self.position, self.step, self.without_gain) < 0 or not 0 <= self.seconds < np.inf:
            raise ValueError(f"at epoch {self.epoch}, position {self.position}, step {self.step}")
        if not all(isinstance(row, dict) and {"epoch", "seconds"} <= row.keys() for row in self.history):
            raise ValueError("a history of other rows")

"""How long to train and when to look; where a fit stands."""

from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np

from xsoftmax.errors import InputError

# Training rows, at most, on which the objective and the training log-likelihood are recorded.
SUBSET = 5000


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
    tree : Path or None
        A fitted tree, for proposal tree.
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
    rows: int | None = None
    checkpoint: Path | None = None
    checkpoint_seconds: float = 60.0
    memory: int | None = None
    threads: int = 1
    stream: bool | None = None
    tree: Path | None = None
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
        if self.rows is not None and self.rows < 1:
            raise InputError(f"rows is {self.rows}; look at 1 or more, or leave it out to look at all")
        if not 0 < self.share <= 1:
            raise InputError(f"share of training rows is {self.share:g}; set it above 0, to 1 at most")
        if self.share < 1 and self.stream:
            raise InputError("a share of the training rows is taken into memory; leave --stream out")
        if any(later <= earlier for earlier, later in pairwise((0, *self.at))):
            raise InputError(f"evaluations are at {self.at}; give rising numbers above 0")

    def n_training(self, n_samples: int) -> int:
        """Count the rows of so many that are trained on."""
        return n_samples if self.share == 1 else max(1, round(self.share * n_samples))

    @property
    def budget(self) -> float:
        """Epochs or seconds, whichever is given."""
        chosen = self.seconds if self.epochs is None else self.epochs
        return 0.0 if chosen is None else float(chosen)


@dataclass
class FitState:
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

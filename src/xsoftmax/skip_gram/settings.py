"""What training may be told."""

import math
from dataclasses import dataclass, fields

from xsoftmax.internal.errors import InputError, suggestion
from xsoftmax.skip_gram.kernels import Window

NEGATIVE, HIERARCHICAL = "negative-sampling", "hierarchical-softmax"
LOSSES = (NEGATIVE, HIERARCHICAL, "implicit", "u-max", "softmax")
OF_PAIRS = ("implicit", "u-max")
FOUND_BY = ("all", "search", "clusters", "blocks")
MISSING = ("none", "zero", "mean")
# Learning rates that serve where none is given, measured on War and Peace: see `benchmark skip-gram`.
RATES = {NEGATIVE: 0.025, HIERARCHICAL: 0.025, "implicit": 0.05, "u-max": 0.003, "softmax": 3.0}
LOWEST_RATE = 1e-4
# Epochs of negative sampling to begin with, where none are given: as in Yen et al. 2018.
WARM_EPOCHS = {"softmax": 1}


@dataclass(frozen=True)
class Settings:
    """Of a fit.

    Parameters
    ----------
    loss : str
        Of ``LOSSES``. ``softmax`` is gradient descent over the collapsed counts.
    dimension, window : int
    dynamic_window : bool
        Draw the window of each centre from 1 to ``window``, as word2vec's program does.
    negatives : int
        Words drawn for each pair, of negative sampling.
    power : float
        To which frequencies are raised where negatives are drawn.
    subsample : float, optional
        The threshold of ``kept_share``; None keeps all words.
    learning_rate : float, optional
        At the beginning; it falls linearly to 1e-4 of that. Default: by the loss. Of ``softmax`` it is constant.
    epochs, seed : int
    warm_epochs : int, optional
        Begin with so many epochs of negative sampling. Default: 1 for ``softmax``, whose gradient is zero where all
        outputs are; 0 otherwise.
    threads : int
        More than one do not wait for each other (Recht et al. 2011): bits differ from run to run. ``softmax`` uses
        one, but for its warm-up.
    found_by : str
        Of ``softmax``, which classes the sum is over, beside those that a word stands near: ``all``; the ``share``
        that score highest, found by ``search`` through all; by ``clusters`` of vectors (MIPS); by clusters of each of
        ``n_blocks`` blocks of columns, and messages between these (Decomp-MIPS).
    share : float
        How many of the classes are looked for; by each block, of ``blocks``.
    rounds : int
        Of messages, of ``blocks``: fewer, once one brings no new classes.
    least_slope : float
        The probability in some block from which a class that ``blocks`` retrieve counts.
    missing : str
        What classes add to the sum that were not found: ``none`` nothing, ``zero`` e^0 each, as in the paper,
        ``mean`` a bound of what they do add (see ``found``).
    threshold : float
        U-max's delta.
    """

    loss: str = "negative-sampling"
    dimension: int = 100
    window: int = 5
    dynamic_window: bool = True
    negatives: int = 5
    power: float = 0.75
    subsample: float | None = 1e-3
    learning_rate: float | None = None
    epochs: int = 5
    warm_epochs: int | None = None
    seed: int = 0
    threads: int = 1
    found_by: str = "all"
    share: float = 0.05
    n_blocks: int = 4
    rounds: int = 1
    least_slope: float = 1e-3
    missing: str = "mean"
    threshold: float = 1.0

    def __post_init__(self) -> None:
        for name, known in (("loss", LOSSES), ("found_by", FOUND_BY), ("missing", MISSING)):
            if getattr(self, name) not in known:
                raise InputError(f"{name} is {getattr(self, name)!r}; {suggestion(getattr(self, name), known)}")
        for name in ("dimension", "window", "negatives", "n_blocks", "rounds", "threads"):
            if not 1 <= getattr(self, name) <= 2**16:
                raise InputError(f"{name} is {getattr(self, name)}; set it to 1 or more, {2**16} at most")
        for name in ("epochs", "seed", "warmed"):
            if not 0 <= getattr(self, name) < 2**31:
                raise InputError(f"{name} is {getattr(self, name)}; set it to 0 or more, below 2^31")
        for each in fields(self):
            value = getattr(self, each.name)
            least = 0.0 if each.name in ("power", "least_slope") else 1e-30
            if isinstance(value, float) and not (value >= least and math.isfinite(value)):
                raise InputError(f"{each.name} is {value:g}; set it to a number above 0")
        if self.warmed and self.loss == HIERARCHICAL:
            raise InputError("warm_epochs: the inner nodes of hierarchical-softmax have no vectors to begin from")
        if self.share > 1:
            raise InputError(f"share is {self.share:g}; set it to 1 or less, such as 0.05")

    @property
    def warmed(self) -> int:
        """How many epochs of negative sampling come first."""
        return WARM_EPOCHS.get(self.loss, 0) if self.warm_epochs is None else self.warm_epochs

    @property
    def rate(self) -> float:
        """The learning rate at the beginning."""
        return RATES[self.loss] if self.learning_rate is None else self.learning_rate

    def rate_at(self, done: float) -> float:
        """The learning rate where a share ``done`` of a fit is over."""
        return self.rate * max(1.0 - done, LOWEST_RATE)

    def windows(self) -> Window:
        """What kernels see of the window."""
        return Window(self.window, self.dynamic_window)

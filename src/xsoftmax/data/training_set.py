"""The training rows, as objectives and proposals learn from them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from xsoftmax.internal.errors import InputError
from xsoftmax.starts import Start

LARGEST_SEED = 2**63 - 1  # what a file can keep


def check_seed(seed: int) -> None:
    """Make sure that a seed is one.

    Raises
    ------
    InputError
        If it is negative, or more than 64 bits hold.
    """
    if not 0 <= seed <= LARGEST_SEED:
        raise InputError(f"seed is {seed}; set it to 0 or more, {LARGEST_SEED} at most")


@dataclass(frozen=True)
class TrainingSet:
    """What an objective or a proposal may learn from.

    Attributes
    ----------
    X : sparse array or ndarray of shape (n_samples, n_features), float32
    y : ndarray of shape (n_samples,), int32
    n_classes : int
    seed : int
    tree : Path or None
        A fitted tree to use instead of fitting one.
    features_sha256 : str or None
        What tells the features from others, as of a transform, so that a tree of others is not taken.
    n_sampled : int
        Classes that the proposal draws for a step, if it draws.
    start : Start or None
        Where weights begin; None: at zero.
    """

    X: Any
    y: np.ndarray
    n_classes: int
    seed: int = 0
    tree: Path | None = None
    features_sha256: str | None = None
    n_sampled: int = 1
    start: Start | None = None

    @property
    def class_counts(self) -> np.ndarray:
        """Samples of each class, int64 of shape (n_classes,)."""
        return np.bincount(self.y, minlength=self.n_classes)

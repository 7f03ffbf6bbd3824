"""The training rows, as objectives and proposals learn from them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


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
    """

    X: Any
    y: np.ndarray
    n_classes: int
    seed: int = 0
    tree: Path | None = None

    @property
    def class_counts(self) -> np.ndarray:
        """Samples of each class, int64 of shape (n_classes,)."""
        return np.bincount(self.y, minlength=self.n_classes)

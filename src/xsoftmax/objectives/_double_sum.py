"""What the two double sums share: where u begins."""

import math
from typing import Any

import numpy as np


def start(member: Any) -> Any:
    """Let the states of an objective with ``start_at_log_classes`` begin as that says: a decorator."""
    member.initial_auxiliary = initial_auxiliary
    return member


def initial_auxiliary(self: Any, n_samples: int, n_classes: int) -> np.ndarray:
    """Give the u of every sample before the first step, float64 of shape (n_samples, 1)."""
    return np.full((n_samples, 1), math.log(n_classes) if self.start_at_log_classes else 0.0)

"""What is measured of a peer's scores: exact log-likelihood over all classes, and hits."""

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass
class Measure:
    """Sums over rows: log-likelihood (None where the peer gives no distribution over all classes), hits."""

    log_likelihood: float | None = 0.0
    hits: int = 0
    rows: int = 0


def add(measure: Measure, scores: np.ndarray, y: np.ndarray, kind: str = "scores") -> None:
    """Add the rows of a block, (n_rows, n_classes): exact log-likelihoods in float64; ties count as misses."""
    true = scores[np.arange(len(y)), y]
    measure.hits += int(np.sum(np.sum(scores >= true[:, None], axis=1) == 1))
    measure.rows += len(y)
    if kind == "log_probabilities" and measure.log_likelihood is not None:
        measure.log_likelihood += float(np.sum(true, dtype=np.float64))
    elif kind == "scores" and measure.log_likelihood is not None:
        highest = scores.max(axis=1)
        total = np.exp(scores - highest[:, None]).sum(axis=1, dtype=np.float64)
        differences = true.astype(np.float64) - highest.astype(np.float64)
        measure.log_likelihood += float(np.sum(differences - np.log(total)))


def values_of(measure: Measure) -> dict[str, Any]:
    """Means over rows, as a point of a curve has them; JSON has no infinite numbers."""
    mean = None if measure.log_likelihood is None else measure.log_likelihood / measure.rows
    finite = mean is not None and np.isfinite(mean)
    found = {"log_likelihood": mean if finite else None, "accuracy": measure.hits / measure.rows}
    return found if mean is None or finite else found | {"not_finite": str(mean)}

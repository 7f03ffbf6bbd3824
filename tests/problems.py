"""Small made-up data that many tests share, and weights to begin from."""

from typing import NamedTuple

import numpy as np

from xsoftmax.proposals import TrainingSet


class Problem(NamedTuple):
    """Rows with zeros among their entries, labels of which low classes are common, and weights with biases."""

    X: np.ndarray
    y: np.ndarray
    W: np.ndarray


def sparse_problem(rng, n_samples, n_features, n_classes, *, filled=0.6, spread=0.3):
    """Draw one in which every class occurs, rows permitting."""
    X = rng.standard_normal((n_samples, n_features)) * (rng.random((n_samples, n_features)) < filled)
    y = (n_classes * rng.random(n_samples) ** 2).astype(np.int32)
    y[: min(n_samples, n_classes)] = np.arange(n_classes)[:n_samples]
    W = spread * rng.standard_normal((n_classes, n_features + 1))
    return Problem(X.astype(np.float32), y, W.astype(np.float32))


def clusters(counts, n_features=4):
    """Rows around one centre per class, so many of each, as proposals are fitted to."""
    rng, n_classes = np.random.default_rng(0), len(counts)
    y = np.repeat(np.arange(n_classes), counts).astype(np.int32)
    X = rng.standard_normal((n_classes, n_features))[y] + rng.standard_normal((y.size, n_features))
    return TrainingSet(X.astype(np.float32), y, n_classes, seed=1)

"""Generated: dense features around a random tree of class centres; any number of rows, features and classes.

A class is a leaf; its centre is the sum of one Gaussian vector per level, which neighbours share above the
level where they part, and which shrinks by ``decay`` from level to level. Rows scatter around the centres,
and some labels are drawn at random, so that no linear model separates the classes.
"""

from collections.abc import Mapping

import numpy as np

from xsoftmax.data.parts import PARTS, check_sizes, n_samples_of, rng_of
from xsoftmax.data.rows import Rows
from xsoftmax.internal.errors import InputError

BLOCK_ROWS = 8192


def read(
    *,
    part: str = "all",
    n_samples: int | Mapping[str, int] = 20_000,
    n_features: int = 32,
    n_classes: int = 1_000,
    branching: int = 4,
    decay: float = 0.8,
    noise: float = 1.0,
    label_noise: float = 0.05,
    skew: float = 0.5,
    seed: int = 0,
) -> Rows:
    """Draw rows.

    Parameters
    ----------
    part : str
        ``train``, ``validation`` or ``test``: rows of its own around the same centres, and in training at least one
        of every class.
    n_samples : int, or mapping of str to int
        How many rows, or how many of each part.
    n_features, n_classes : int
        Dimensions, and leaves of the tree.
    branching : int
        Children of a node.
    decay : float
        Length of a level's vectors, relative to the level above; the first have length about 1.
    noise : float
        Expected length of a row's distance to its centre.
    label_noise : float
        Share of labels that are replaced by a uniform draw.
    skew : float
        Class k has a share proportional to ``1 / (rank + 1) ** skew``.
    seed : int
        Of the draws.
    """
    n_samples = n_samples_of(part, n_samples, "hierarchy")
    if min(n_samples, n_features, n_classes) < 1 or branching < 2 or not 0 <= label_noise <= 1:
        raise InputError("hierarchy: sizes must be positive, branching at least 2, label_noise within 0 and 1")
    if part == "train" and n_samples < n_classes:
        raise InputError(f"hierarchy: {n_samples} training rows for {n_classes} classes; each class needs one")
    check_sizes("hierarchy", n_samples, n_classes * n_features, bytes_a_row=4 * n_features + 32)
    rng = np.random.default_rng(seed)
    levels = _levels(n_features, n_classes, branching, decay, rng)
    shares = np.cumsum(1.0 / (rng.permutation(n_classes) + 1.0) ** skew)
    if part in PARTS:
        rng = rng_of(part, seed)
    y = np.searchsorted(shares, rng.random(n_samples) * shares[-1], side="right").clip(max=n_classes - 1)
    certain = rng.permutation(n_samples)[:n_classes] if part == "train" else np.empty(0, dtype=np.int64)
    y[certain] = np.arange(certain.size)
    X = np.empty((n_samples, n_features), dtype=np.float32)
    for start in range(0, n_samples, BLOCK_ROWS):
        block = X[start : start + BLOCK_ROWS]
        block[:] = rng.standard_normal(block.shape, dtype=np.float32) * np.float32(noise / np.sqrt(n_features))
        for width, vectors in levels:
            block += vectors[y[start : start + BLOCK_ROWS] // width]
    replaced = rng.random(n_samples) < label_noise
    replaced[certain] = False
    return Rows.with_ids(X, np.where(replaced, rng.integers(n_classes, size=n_samples), y))


def _levels(
    n_features: int, n_classes: int, branching: int, decay: float, rng: np.random.Generator
) -> list[tuple[int, np.ndarray]]:
    """Draw one vector per node: for each level, how many classes a node spans, and the vectors."""
    width, levels, length = 1, [], 1.0 / np.sqrt(n_features)
    while width * branching < n_classes:
        width *= branching
    while width >= 1:
        n_nodes = -(-n_classes // width)
        vectors = rng.standard_normal((n_nodes, n_features), dtype=np.float32) * np.float32(length)
        levels.append((width, vectors))
        width, length = width // branching, length * decay
    return levels

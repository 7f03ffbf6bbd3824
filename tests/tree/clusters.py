"""Data with structure: classes around the leaves of a random tree of centres."""

import numpy as np


def clustered(n_samples, n_classes, n_features, seed=0, noise=0.5):
    rng = np.random.default_rng(seed)
    centres = np.zeros((1, n_features))
    scale = 1.0
    while len(centres) < n_classes:
        centres = np.repeat(centres, 2, axis=0)
        centres += scale * rng.standard_normal(centres.shape)
        scale *= 0.8
    centres = centres[rng.permutation(len(centres))[:n_classes]]
    frequencies = 1 / np.arange(1, n_classes + 1) ** 0.7
    y = rng.choice(n_classes, n_samples, p=frequencies / frequencies.sum())
    y[: min(n_classes, n_samples)] = np.arange(min(n_classes, n_samples))
    X = centres[y] + noise * rng.standard_normal((n_samples, n_features))
    return X.astype(np.float32), y.astype(np.int32)

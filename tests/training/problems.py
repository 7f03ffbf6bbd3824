"""Data and methods for the tests of training."""

import numpy as np

from xsoftmax.methods import build_method

K, D = 8, 12


def rows(n_samples=400, seed=0, noise=0.6):
    """Overlapping classes of unequal size; rows of unit length."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(K), (K * rng.random(n_samples - K) ** 1.5).astype(int)])
    X = np.random.default_rng(99).standard_normal((K, D))[y] + noise * rng.standard_normal((n_samples, D)) * 2
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


def method(objective="double-sum", proposal="uniform", optimizer="u-max", **others):
    """Each axis by its name or a mapping."""
    axes = {"objective": objective, "proposal": proposal, "optimizer": optimizer}
    return build_method("mine", {a: {"name": v} if isinstance(v, str) else v for a, v in axes.items()} | others)


def curve(result):
    """History without times."""
    return [{key: value for key, value in row.items() if key != "seconds"} for row in result.state.history]

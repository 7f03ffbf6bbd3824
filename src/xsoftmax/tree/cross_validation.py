"""The tree's regularizer by cross-validation: the one under which held-out training rows are likeliest.

Cost: one projection per fold, and a fit per fold and regularizer; then the tree is fitted to all rows.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xsoftmax.internal import registry
from xsoftmax.internal.errors import InputError
from xsoftmax.tree.fit import check_arguments, fit_projected
from xsoftmax.tree.projection import Features, principal_components

# Half-decades from 0.001 to 10; Bamler and Mandt 2020 take 0.1.
REGULARIZERS = tuple(float(f"{10 ** (exponent / 2):.3g}") for exponent in range(-6, 3))


@dataclass(frozen=True)
class Choice:
    """What cross-validation found.

    Attributes
    ----------
    regularizer : float
        The best; of equally good ones the largest.
    log_likelihoods : tuple of float
        Mean log-likelihood of held-out rows in nats, for each of ``REGULARIZERS``.
    """

    regularizer: float
    log_likelihoods: tuple[float, ...]

    @property
    def attributes(self) -> dict[str, Any]:
        """As a tree file keeps it."""
        return {
            "chosen_regularizer": self.regularizer,
            "cross_validation_regularizers": list(REGULARIZERS),
            "cross_validation_log_likelihoods": list(self.log_likelihoods),
        }


def choose_regularizer(
    X: Features,
    y: NDArray[np.int32],
    n_classes: int,
    dimension: int,
    folds: int,
    seed: int = 0,
    resplit: bool = True,
) -> Choice:
    """Choose among ``REGULARIZERS``.

    Each row is held out once. Held-out rows of a class that no other fold has are left out of the mean: in the tree
    that is fitted to all rows every class has its own.

    Parameters
    ----------
    X, y, n_classes, dimension, resplit
        As for ``fit_tree``.
    folds : int
        Parts that the rows are shared out to at random.
    seed : int
        Of that, and of the search for the principal components.

    Raises
    ------
    InputError
        If there are fewer rows than folds, or no row can be judged.
    """
    check_arguments(X, y, n_classes, dimension, REGULARIZERS[0])
    if not 2 <= folds <= y.size:
        raise InputError(
            f"folds of the tree are {folds}, of {y.size} training rows; give 2 or more, at most one per row"
        )
    fold_of = np.random.default_rng(seed).permutation(y.size) % folds
    totals, n_judged = np.zeros(len(REGULARIZERS)), 0
    progress = registry.load("xsoftmax.internal", "progress")  # by name: an edit of it is none of a tree
    with progress.Progress("cross-validation of the tree", "fits", total=folds * len(REGULARIZERS)) as report:
        for fold in range(folds):
            kept, held = np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)
            held = held[np.isin(y[held], y[kept])]
            n_judged += held.size
            projection = principal_components(X[kept], dimension, seed=seed)
            Z, Z_held = projection(X[kept]), projection(X[held])
            for i, regularizer in enumerate(REGULARIZERS):
                tree = fit_projected(projection, Z, y[kept], n_classes, regularizer, resplit)
                totals[i] += tree.log_probability_of(Z_held, y[held]).sum(dtype=np.float64)
                report.move_to(fold * len(REGULARIZERS) + i + 1)
    if not n_judged:
        raise InputError("folds of the tree: each class has its rows in one fold only; fit it with folds: 1")
    means = totals / n_judged
    best = max(range(len(means)), key=lambda i: (means[i], i))
    return Choice(REGULARIZERS[best], tuple(float(mean) for mean in means))

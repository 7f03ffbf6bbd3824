"""The tree's regularizer by cross-validation: the one under which held-out training rows are likeliest.

Cost: one projection per fold, and a fit per fold and regularizer; then the tree is fitted to all rows.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from xsoftmax.internal.errors import InputError
from xsoftmax.tree.engine import Engine
from xsoftmax.tree.fit import check_arguments, depth_of, fit_projected, fit_tree
from xsoftmax.tree.model import Tree
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
    progress: Callable[[float, float], None] | None = None,
    engine: Engine | None = None,
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
    progress : callable, optional
        Told after each fit how many are done, of how many, the one to all rows counted.
    engine : Engine, optional
        As for ``fit_tree``.

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
    for fold in range(folds):
        kept, held = np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)
        held = held[np.isin(y[held], y[kept])]
        n_judged += held.size
        projection = principal_components(X[kept], dimension, seed=seed, engine=engine)
        Z, Z_held = projection(X[kept]), projection(X[held])
        for i, regularizer in enumerate(REGULARIZERS):
            tree = fit_projected(projection, Z, y[kept], n_classes, regularizer, resplit, engine=engine)
            totals[i] += tree.log_probability_of(Z_held, y[held]).sum(dtype=np.float64)
            if progress is not None:
                progress(fold * len(REGULARIZERS) + i + 1, folds * len(REGULARIZERS) + 1)
    if not n_judged:
        raise InputError("folds of the tree: each class has its rows in one fold only; fit it with folds: 1")
    means = totals / n_judged
    best = max(range(len(means)), key=lambda i: (means[i], i))
    return Choice(REGULARIZERS[best], tuple(float(mean) for mean in means))


class TimedTree(NamedTuple):
    """A tree, the seconds that its fit took without compiling it, and how its regularizer was chosen, if it was."""

    tree: Tree
    seconds: float
    choice: Choice | None


def fit_timed(
    X: Features,
    y: NDArray[np.int32],
    n_classes: int,
    dimension: int,
    regularizer: float,
    seed: int = 0,
    folds: int = 1,
    resplit: bool = True,
    progress: Callable[[float, float], None] | None = None,
    engine: Engine | None = None,
) -> TimedTree:
    """Fit a tree to rows; with ``folds`` above 1 its regularizer is chosen by cross-validation instead.

    ``progress`` is told how many fits are done, or of the only one how many levels, and how many there are.
    """
    few = np.eye(4, 2, dtype=np.float32)
    few = csr_array(few) if issparse(X) else few
    fit_tree(few, np.arange(4, dtype=np.int32), 4, dimension=1, engine=engine)  # compiles
    begin, choice = time.perf_counter(), None
    if folds > 1:
        choice = choose_regularizer(X, y, n_classes, dimension, folds, seed, resplit, progress, engine)
        regularizer = choice.regularizer
    told = None if progress is None or folds > 1 else partial(_tell, progress, depth_of(n_classes))
    tree = fit_tree(X, y, n_classes, dimension, regularizer, seed, None, resplit, told, engine)
    return TimedTree(tree, time.perf_counter() - begin, choice)


def _tell(progress: Callable[[float, float], None], whole: int, done: int) -> None:
    progress(done, whole)

"""The adversarial tree: classes that a small model finds likely for this very row.

Bamler and Mandt 2020, section 3. A draw costs log2(n_classes) decisions of ``dimension`` products each.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import h5py
import numpy as np

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import LEAN
from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.draws import weigh_by_probability
from xsoftmax.kernels.mathematics import exp
from xsoftmax.kernels.protocol import draw, draw_ahead, log_probability
from xsoftmax.proposals import Size, TrainingSet, proposal
from xsoftmax.tree.cross_validation import Choice, fit_timed
from xsoftmax.tree.draws import TreeView, descend, descend_block, log_probability_of
from xsoftmax.tree.model import Tree as TreeModel
from xsoftmax.tree.model import on_cache_lines


@proposal(draws=True, by_row=True, beforehand=True, on_device=True, cost="log2(K) x {dimension} products")
class Tree(NamedTuple):
    """Parameters: ``n_sampled``; ``dimension``, principal components it looks at; ``regularizer``, lambda_n.

    ``folds`` above 1: the regularizer is chosen by cross-validation over so many folds of the training rows.
    ``resplit``: eq. 9 of the paper; without, an ablation, the classes below a node stay sorted by the initial
    direction and only their number on the left changes, as in the authors' program.
    """

    dimension: int = 16
    regularizer: float = 0.1
    folds: int = 1
    resplit: bool = True
    n_sampled: int = 1

    def fit(self, data: TrainingSet) -> "FittedTree":
        """Fit a tree to the rows."""
        data = data.pairs
        found = fit_timed(
            data.X,
            data.y,
            data.n_classes,
            self.dimension,
            self.regularizer,
            data.seed,
            self.folds,
            self.resplit,
            data.progress,
            data.engine,
        )
        return FittedTree(found.tree, found.seconds, found.choice)

    def memory(self, size: Size) -> dict[str, int]:
        """Estimate the bytes of nodes, twice, and of rows as the tree sees them."""
        nodes = 2 * size.n_classes * (self.dimension + 4)
        return {"the tree": 4 * (nodes + size.n_samples * self.dimension)}

    def fit_work(self, n_samples: int, n_classes: int) -> float:
        """Count samples times levels: every sample is looked at on every level."""
        return n_samples * float(np.log2(n_classes + 1))


MEMBER = Tree


@dataclass(frozen=True)
class FittedTree:
    """A fitted tree, the seconds that its fit took, and how its regularizer was chosen, if it was."""

    tree: TreeModel
    seconds: float = 0.0
    choice: Choice | None = None
    name = "tree"

    def fit_summary(self, data: TrainingSet) -> Mapping[str, Any]:
        """Tell how large it is, how likely it makes the classes of the rows, and how its regularizer was chosen."""
        data = data.pairs
        likelihood = self.tree.log_likelihood(self.tree.project(data.X), data.y)
        found = {"levels": self.tree.depth, "components": self.tree.dimension, "train_log_likelihood": likelihood}
        return found | (self.choice.attributes if self.choice else {})

    def kernel(self, X: Any) -> "TreeDraws":
        """What the training loop draws from: the tree, and the rows as it sees them."""
        return TreeDraws(*self.tree.view, on_cache_lines(self.tree.project(X)))

    def log_q(self, X: Any, start: int, stop: int) -> np.ndarray:
        """Log-probabilities of a block of classes, float32 of shape (n_samples, stop - start)."""
        return self.tree.log_probability(self.tree.project(X), start, stop)

    def inclusion(self, n_sampled: int) -> None:
        """Rows differ."""
        return None

    def save(self, group: h5py.Group) -> None:
        """Keep the tree."""
        self.tree.to_group(group)


def restore(group: h5py.Group, n_classes: int, n_features: int) -> FittedTree:
    """Read what ``save`` wrote of a proposal over so many classes, for rows of so many features."""
    return FittedTree(TreeModel.from_group(group, n_classes, n_features))


class TreeDraws(NamedTuple):
    """What the kernels see: the arrays of ``TreeView``, and ``Z``, the projected training rows, laid out alike."""

    weights: np.ndarray
    bias: np.ndarray
    class_of_leaf: np.ndarray
    leaf_of_class: np.ndarray
    Z: np.ndarray


@njit(inline="always", **LEAN)
def _view(proposal):
    return TreeView(proposal.weights, proposal.bias, proposal.class_of_leaf, proposal.leaf_of_class)


@implements(draw, TreeDraws)
def _draw(proposal, view, i, excluded, lowest, rng, draws):
    for j in range(draws.classes.size):
        draws.classes[j], draws.log_q[j], rng = descend(_view(proposal), proposal.Z, i, rng)
    weigh_by_probability(draws)


@implements(draw_ahead, TreeDraws, allocates=True)
def _draw_ahead(proposal, view, samples, ahead):
    n_draws = ahead.classes.shape[1]
    descend_block(_view(proposal), proposal.Z, samples, ahead.rng_states, n_draws, ahead.classes, ahead.log_q)
    share = np.float32(1) / np.float32(n_draws)
    for b in range(samples.size):
        for j in range(n_draws):
            ahead.weights[b, j] = share * exp(-ahead.log_q[b, j])


@implements(log_probability, TreeDraws)
def _log_probability(proposal, view, i, k):
    return log_probability_of(_view(proposal), proposal.Z, i, k)

"""The adversarial tree: classes that a small model finds likely for this very row.

Bamler and Mandt 2020, section 3. A draw costs log2(n_classes) decisions of ``dimension`` products each.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import h5py
import numpy as np

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import LEAN
from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.draws import weigh_by_probability
from xsoftmax.kernels.mathematics import exp
from xsoftmax.kernels.steps import draw, draw_ahead, log_probability
from xsoftmax.kernels.tree import TreeView, descend, descend_block, log_probability_of
from xsoftmax.proposals import TrainingSet, proposal
from xsoftmax.tree.file import fit_timed, labels_sha256, read_tree
from xsoftmax.tree.model import Tree as TreeModel
from xsoftmax.tree.model import on_cache_lines


@proposal(draws=True, by_row=True, cost="log2(K) x {dimension} products")
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
        """Take the tree that is given, or fit one."""
        if data.tree is not None:
            of_tree = {key: value for key, value in self._asdict().items() if key != "n_sampled"}
            wanted = {"n_classes": data.n_classes, "n_features": data.X.shape[1], **of_tree}
            wanted["labels_sha256"] = labels_sha256(data.y)
            if data.features_sha256 is not None:
                wanted["features_sha256"] = data.features_sha256
            stored = read_tree(data.tree, wanted)
            return FittedTree(stored.tree, stored.attributes["seconds"])
        rows = data.X, data.y, data.n_classes
        fitted = fit_timed(*rows, self.dimension, self.regularizer, data.seed, self.folds, self.resplit)
        return FittedTree(fitted.tree, fitted.seconds)


MEMBER = Tree


@dataclass(frozen=True)
class FittedTree:
    """A fitted tree, and the seconds that its fit took."""

    tree: TreeModel
    seconds: float = 0.0
    name = "tree"

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
    descend_block(_view(proposal), proposal.Z, samples, ahead.states, n_draws, ahead.classes, ahead.log_q)
    share = np.float32(1) / np.float32(n_draws)
    for b in range(samples.size):
        for j in range(n_draws):
            ahead.weights[b, j] = share * exp(-ahead.log_q[b, j])


@implements(log_probability, TreeDraws)
def _log_probability(proposal, view, i, k):
    return log_probability_of(_view(proposal), proposal.Z, i, k)

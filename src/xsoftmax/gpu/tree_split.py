"""Which classes below each of many nodes go right, on a device: see ``xsoftmax.tree.split``."""

import numpy as np
import torch
from torch import Tensor

from xsoftmax.gpu.segments import Segments
from xsoftmax.tree.split import PARALLEL, POWER_STEPS


class Splits:
    """The split of nodes of one level.

    Parameters
    ----------
    classes, counts : Tensor of shape (n,), int64
        The classes of all nodes, node after node, and how many points each has.
    bounds : ndarray of shape (n_nodes + 1,), int64
        Where the classes of each node begin.
    half : int
        Leaves below a child.
    sums : Tensor of shape (n_classes, d), float64
        Of each class's (z, 1).
    resplit : bool
        See ``xsoftmax.tree.fit.fit_tree``.

    Attributes
    ----------
    node_of : Tensor of shape (n,), int64
    n_classes : Tensor of shape (n_nodes,), int64
    right : Tensor of shape (n,), bool
    """

    def __init__(
        self, classes: Tensor, counts: Tensor, bounds: np.ndarray, half: int, sums: Tensor, resplit: bool
    ) -> None:
        device, n_nodes = classes.device, len(bounds) - 1
        self._segments = Segments(bounds, device)
        self._classes, self._counts, self._sums, self._resplit = classes, counts, sums[classes], resplit
        self.n_classes = torch.from_numpy(np.diff(bounds)).to(device)
        self.all_nodes = torch.arange(n_nodes, device=device)
        self.node_of = self.all_nodes.repeat_interleave(self.n_classes, output_size=len(classes))
        self._first = torch.from_numpy(bounds[:-1]).to(device)
        self._high = self.n_classes.clamp(max=half)
        self._low = self.n_classes - self._high
        self.right = torch.zeros(len(classes), dtype=torch.bool, device=device)

    def n_classes_of(self, wanted: Tensor) -> Tensor:
        """Count the classes of each node that are ``wanted``, bool of shape (n,)."""
        return self._segments.sum(wanted.to(torch.int64))

    def begin(self, sign: Tensor) -> None:
        """Split by the classes' sums along the dominant eigenvector of their covariance; write signs of classes."""
        self._keys = self._initial_direction()
        self.right = self._mark_right(
            self._keys, torch.minimum(torch.maximum(self.n_classes // 2, self._low), self._high)
        )
        self._write(sign)

    def _write(self, sign: Tensor) -> None:
        sign[self._classes] = torch.where(self.right, 1.0, -1.0)

    def _initial_direction(self) -> Tensor:
        means = self._sums[:, :-1]
        if not means.shape[1]:
            return self._counts.double()
        mean = self._segments.sum(means) / self.n_classes.clamp(min=1)[:, None]
        vectors = _dominant_eigenvectors(self._segments.squares(means - mean[self.node_of]))
        return (means * vectors[self.node_of]).sum(1)

    def _mark_right(self, keys: Tensor, n_left: Tensor) -> Tensor:
        """Send so many classes of smallest keys left in each node, of equal ones the first."""
        by_key = keys.argsort(stable=True)
        sorted_ = by_key[self.node_of[by_key].argsort(stable=True)]
        rank = torch.arange(len(keys), device=keys.device) - self._first[self.node_of]
        right = torch.empty_like(self.right)
        right[sorted_] = rank >= n_left[self.node_of]
        return right

    def update(self, active: Tensor, w: Tensor, gradient: Tensor, n_points: Tensor, sign: Tensor) -> Tensor:
        """Split ``active`` nodes for weights ``w``, (n_nodes, d), where that gains; correct ``gradient`` for it.

        Returns
        -------
        Tensor of shape (n_nodes,), float64
            Of each node's gain.
        """
        delta = (self._sums * w[self.node_of]).sum(1)
        n_left = torch.minimum(torch.maximum(self.n_classes_of(delta < 0), self._low), self._high)
        right = self._mark_right(delta if self._resplit else self._keys, n_left)
        change = right.double() - self.right.double()
        gain = self._segments.sum(delta * change)
        accepted = torch.zeros_like(gain, dtype=torch.bool)
        accepted[active] = gain[active] > 1e-9 * n_points[active]
        moved = accepted[self.node_of]
        change = torch.where(moved, change, 0.0)
        gradient += self._segments.sum(self._sums * change[:, None])
        self.right = torch.where(moved, right, self.right)
        self._write(sign)
        return torch.where(accepted, gain, 0.0)


def _dominant_eigenvectors(matrices: Tensor) -> Tensor:
    """Iterate powers, each from the row of its largest diagonal entry, until its vector turns no more."""
    first = matrices.diagonal(dim1=1, dim2=2).argmax(1)
    vectors = matrices[torch.arange(len(matrices), device=matrices.device), first]
    square = vectors.square().sum(1)
    going = square > 0
    for _ in range(POWER_STEPS):
        if not going.any():
            break
        product = ((vectors / square.sqrt()[:, None])[:, None] @ matrices)[:, 0]
        along, after = (vectors * product).sum(1), product.square().sum(1)
        turned = along * along < PARALLEL * square * after
        vectors = torch.where(going[:, None], product, vectors)
        square = torch.where(going, after, square)
        going = going & turned & (after > 0)
    return vectors

"""Fit the nodes of a level of a tree on a device, many at once: see ``xsoftmax.tree.fit`` and ``tree.node``.

All nodes of a group go through re-splits, Newton steps and their halvings together; one that is done takes no more
part. Sums are made as in compiled code: in float32 within a block of points, in float64 across blocks.

Cost of a level: as of compiled code, in at most 50 alternations of some tens of operations per group of nodes.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from xsoftmax.gpu.device import ask_for_room
from xsoftmax.gpu.layouts import cut
from xsoftmax.gpu.same_bits import reproducibly
from xsoftmax.gpu.segments import ROWS_TOGETHER, Segments
from xsoftmax.gpu.tree_rows import ADVICE
from xsoftmax.gpu.tree_split import Splits
from xsoftmax.tree.draws import CERTAIN
from xsoftmax.tree.fit import MAX_ALTERNATIONS
from xsoftmax.tree.node import HALVINGS, TOLERANCE

NODES_TOGETHER = 2**14


class Points(NamedTuple):
    """Projected rows on a device, and what is known of classes, d = dimension + 1.

    Attributes
    ----------
    Z : Tensor of shape (n_samples + 1, d), float32
        Sorted by class; a 1 comes last in each. The last row is 0, and stands for none.
    class_of : Tensor of shape (n_samples + 1,), int64
        Of each row; of the last, n_classes.
    sums : Tensor of shape (n_classes, d), float64
        Of the rows of each class.
    sign : Tensor of shape (n_classes + 1,), float32
        Which side of its node a class is on: 1 right, -1 left. It is written.
    """

    Z: Tensor
    class_of: Tensor
    sums: Tensor
    sign: Tensor


class Fit(NamedTuple):
    """Of some nodes, the objective, (n,), its gradient, (n, d), and its negative Hessian, (n, d, d), float64."""

    value: Tensor
    gradient: Tensor
    hessian: Tensor


class DeviceLevels:
    """See ``xsoftmax.tree.engine.Engine.levels``: called with a level, it fits it.

    Raises
    ------
    InputError
        If the device lacks the memory.
    """

    @reproducibly
    def __init__(
        self,
        place: str,
        Z: np.ndarray,
        offsets: np.ndarray,
        sums: np.ndarray,
        regularizer: float,
        resplit: bool,
    ) -> None:
        n_classes, (n_samples, dimension) = len(sums), Z.shape
        _ask(place, n_samples, n_classes, dimension + 1)
        self._offsets, self._regularizer, self._resplit = offsets, regularizer, resplit
        self._counts, self._device = np.diff(offsets), torch.device(place)
        rows = torch.zeros((n_samples + 1, dimension + 1), device=self._device)
        rows[:-1, :-1], rows[:-1, -1] = self._sent(Z), 1.0
        class_of = self._sent(np.repeat(np.arange(n_classes + 1), np.append(self._counts, 1)))
        sign = torch.ones(n_classes + 1, device=self._device)
        self._points = Points(rows, class_of, self._sent(sums), sign)

    def _sent(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self._device)

    @reproducibly
    def __call__(self, order: np.ndarray, bounds: np.ndarray, half: int, weights: np.ndarray) -> np.ndarray:
        """See ``xsoftmax.tree.engine.FitLevel``."""
        n_left = np.zeros(len(bounds) - 1, np.int64)
        for first, stop in cut(len(n_left), NODES_TOGETHER):
            classes = order[bounds[first] : bounds[stop]]
            group = self._group(classes, bounds[first : stop + 1] - bounds[first], half)
            weights[first:stop] = group.fitted().float().cpu().numpy()
            right = group.splits.right
            n_left[first:stop] = group.splits.n_classes_of(~right).cpu().numpy()
            sides = group.splits.node_of * 2 + right
            classes[:] = classes[sides.argsort(stable=True).cpu().numpy()]
        n_classes = np.diff(bounds)
        n_left[n_left == n_classes] = 0
        one_sided = (n_left == 0) & (n_classes > 0)
        weights[one_sided], weights[one_sided, -1] = 0, CERTAIN
        return np.append(np.stack([bounds[:-1], bounds[:-1] + n_left], 1), bounds[-1])

    def _group(self, classes: np.ndarray, bounds: np.ndarray, half: int) -> "Group":
        """Take nodes: their classes, one after the other, and where those of each begin."""
        counts = self._counts[classes]
        ends = np.concatenate([[0], np.cumsum(counts)])
        rows = np.arange(ends[-1]) + np.repeat(self._offsets[classes] - ends[:-1], counts)
        splits = Splits(self._sent(classes), self._sent(counts), bounds, half, self._points.sums, self._resplit)
        return Group(
            self._points, splits, self._sent(np.append(rows, self._offsets[-1])), ends[bounds], self._regularizer
        )


def _ask(place: str, n_samples: int, n_classes: int, d: int) -> None:
    """Make sure that there is room."""
    needed = {
        "rows": n_samples * (8 * d + 24),
        "classes": n_classes * (8 * 8 * d + 160),
        "nodes": min(n_classes, NODES_TOGETHER) * 6 * 8 * d * (d + 1),
        "sums of blocks": ROWS_TOGETHER * (16 * d + 2 * d * d),
    }
    ask_for_room(f"device is {place}", place, needed, "the fit of a tree", ADVICE)


class Group:
    """Nodes of one level that are fitted together.

    Parameters
    ----------
    points : Points
    splits : Splits
        Of their classes.
    rows : Tensor of shape (n + 1,), int64
        Of ``points``, node after node; the last is that of zeros.
    bounds : ndarray of shape (n_nodes + 1,), int64
        Where in ``rows`` those of each node begin.
    regularizer : float
    """

    def __init__(self, points: Points, splits: Splits, rows: Tensor, bounds: np.ndarray, regularizer: float) -> None:
        self._points, self.splits, self._rows = points, splits, rows
        self._segments = Segments(bounds, rows.device)
        self._n_points = torch.from_numpy(np.diff(bounds)).to(rows.device)
        self._ridge = regularizer * splits.n_classes.double()
        self._w = torch.zeros((len(bounds) - 1, points.Z.shape[1]), dtype=torch.float64, device=rows.device)

    def fitted(self) -> Tensor:
        """Fit weights, (n_nodes, d), float64, and splits: see ``xsoftmax.tree.node.fit_node``."""
        self.splits.begin(self._points.sign)
        active = (self.splits.n_classes > 1).nonzero()[:, 0]
        at = self._evaluate(self.splits.all_nodes, self._w)
        tolerance = TOLERANCE * self._n_points.clamp(min=1)
        for _ in range(MAX_ALTERNATIONS):
            gain = self.splits.update(active, self._w, at.gradient, self._n_points, self._points.sign)
            at.value.add_(gain)
            improved, promised = self._newton(active, at)
            done = torch.maximum(gain[active] + improved, promised) < tolerance[active]
            active = active[~done]
            if not len(active):
                break
        return self._w

    def _newton(self, active: Tensor, at: Fit) -> tuple[Tensor, Tensor]:
        """Move weights by a damped Newton step; tell how much each node gained, and twice what was promised."""
        step = _solved(at.hessian[active], at.gradient[active])
        before, promised = at.value[active], (at.gradient[active] * step).sum(1)
        pending, size = torch.arange(len(active), device=active.device), 1.0
        for _ in range(HALVINGS):
            nodes = active[pending]
            candidate = self._w[nodes] + size * step[pending]
            found = self._evaluate(nodes, candidate)
            better = found.value >= before[pending]
            chosen = nodes[better]
            self._w[chosen] = candidate[better]
            for whole, part in zip(at, found, strict=True):
                whole[chosen] = part[better]
            pending, size = pending[~better], size / 2
            if not len(pending):
                break
        promised[pending] = 0.0
        return at.value[active] - before, promised

    def _evaluate(self, nodes: Tensor, w: Tensor) -> Fit:
        """Give the objective of some nodes at weights ``w``, (n, d): see ``xsoftmax.tree.objective``."""
        d = w.shape[1]
        value, gradient, hessian = (w.new_zeros((len(nodes), *shape)) for shape in ((), (d,), (d, d)))
        weights = w.float()
        for part in self._segments.parts(nodes):
            rows = self._rows[part.rows]
            X, signs = self._points.Z[rows], self._points.sign[self._points.class_of[rows]]
            t = (X @ weights[part.pieces, :, None])[:, :, 0] * signs
            e = (-t.abs()).exp()
            small = e / (1 + e)
            residuals = signs * torch.where(t > 0, small, 1 - small)
            likelihoods = (t.clamp(max=0) - e.log1p()) * X[:, :, -1]  # nothing of what stands for none
            value.index_add_(0, part.pieces, likelihoods.sum(1).double())
            gradient.index_add_(0, part.pieces, (residuals[:, None] @ X)[:, 0].double())
            hessian.index_add_(0, part.pieces, ((X * (small * (1 - small))[:, :, None]).mT @ X).double())
        ridge = self._ridge[nodes]
        value -= 0.5 * ridge * w.square().sum(1)
        gradient -= ridge[:, None] * w
        hessian.diagonal(dim1=1, dim2=2).add_(ridge[:, None])
        return Fit(value, gradient, hessian)


def _solved(matrices: Tensor, right_sides: Tensor) -> Tensor:
    """Solve positive definite systems; of one that rounding has spoilt, only the diagonal counts."""
    factors, failed = torch.linalg.cholesky_ex(matrices)
    diagonals = matrices.diagonal(dim1=1, dim2=2).clamp(min=1e-12).sqrt().diag_embed()
    factors = torch.where((failed > 0)[:, None, None], diagonals, factors)
    return torch.cholesky_solve(right_sides[:, :, None], factors)[:, :, 0]

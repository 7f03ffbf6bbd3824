"""Sums over rows, for the principal components that a tree looks at, on a device: see ``xsoftmax.tree.projection``.

Rows come a block at a time, and stay if they fit: sparse and very wide ones are gone through some tens of times.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from xsoftmax.gpu.device import ask_for_room, free_on
from xsoftmax.gpu.features import CsrRows, Features, Rows
from xsoftmax.gpu.layouts import cut
from xsoftmax.gpu.same_bits import reproducibly
from xsoftmax.tree.engine import Product
from xsoftmax.tree.projection import DENSE_LIMIT, sparse_moments

ADVICE = "leave device out: then compiled code fits it on the host"
# A block has so many rows, or fewer of so many entries.
ROWS_AT_A_TIME, MOST_ENTRIES = 8192, 2**24
# Bytes of rows that PyTorch's CPU device holds, where they take the host's memory a second time.
HELD_ON_CPU = 2**26
# Bytes that are held of an entry, and that are taken beside them for each in a block. Sparse ones take more, as sums
# that have the same bits each time sort them.
OF_DENSE, OF_SPARSE = 4, 20
BESIDE_DENSE, BESIDE_SPARSE = 24, 72


class DeviceRows:
    """See ``xsoftmax.tree.engine.Rows``.

    Parameters
    ----------
    X : csr_array or ndarray of shape (n_samples, n_features), float32
    place : {"cpu", "cuda"}

    Raises
    ------
    InputError
        If the device lacks the memory for a block, or for the covariance of dense rows.
    """

    def __init__(self, X: Any, place: str) -> None:
        self._X, self._device = X, torch.device(place)
        self._features = Features(X, 1.0, self._device, torch.float32)
        of_a_row = self._features.width
        if self._features.sparse:
            of_a_row = 1 + int(np.diff(X.indptr).max(initial=0))
        self._n_rows = max(1, min(ROWS_AT_A_TIME, MOST_ENTRIES // of_a_row, X.shape[0]))
        self._kept: list[Rows] | None = None
        self._keeps = self._ask(place, of_a_row)

    def _ask(self, place: str, of_a_row: int) -> bool:
        """Make sure that there is room, and tell whether there is for all rows, too."""
        n_samples, n_features = self._X.shape
        sparse = self._features.sparse
        of_an_entry = OF_SPARSE if sparse else OF_DENSE
        beside = BESIDE_SPARSE if sparse else BESIDE_DENSE
        needed = {"a block of rows": (of_an_entry + beside) * self._n_rows * of_a_row}
        if not sparse and n_features <= DENSE_LIMIT:
            needed["their covariance"] = 8 * 6 * n_features**2
        whole = of_an_entry * (n_samples + self._X.nnz if sparse else n_samples * (n_features + 1))
        ask_for_room(f"device is {place}", place, needed, "the projection of a tree", ADVICE)
        left = (free_on(place) - sum(needed.values())) // 2
        return whole <= (min(left, HELD_ON_CPU) if place == "cpu" else left)

    def _blocks(self) -> Iterator[Rows]:
        if self._kept is None:
            spans = cut(self._X.shape[0], self._n_rows)
            found = (self._features.take(np.arange(first, stop)) for first, stop in spans)
            if not self._keeps:
                yield from found
                return
            self._kept = list(found)
        yield from self._kept

    def _sent(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array, np.float64)).to(self._device)

    @reproducibly
    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """See ``Rows``; of sparse rows the host makes them, as they are one look at each entry."""
        if self._features.sparse:
            return sparse_moments(self._X)
        n_samples, n_features = self._X.shape
        mean, square = torch.zeros((2, n_features), dtype=torch.float64, device=self._device)
        for rows in self._blocks():
            mean += _dense(rows).sum(0, dtype=torch.float64)
        mean /= max(n_samples, 1)
        for rows in self._blocks():
            square += (_dense(rows) - mean).square_().sum(0)
        return mean.cpu().numpy(), (square / max(n_samples, 1)).sqrt_().cpu().numpy()

    @reproducibly
    def eigenpairs(self, mean: np.ndarray, scale: np.ndarray, dimension: int) -> tuple[np.ndarray, np.ndarray]:
        """See ``Rows``: products in float32 within a block, sums of blocks in float64."""
        shift, factor = self._sent(mean), self._sent(scale)
        covariance = torch.zeros((len(mean), len(mean)), dtype=torch.float64, device=self._device)
        for rows in self._blocks():
            scaled = ((_dense(rows) - shift) * factor).float()
            covariance += scaled.T @ scaled
        values, vectors = torch.linalg.eigh(covariance / self._X.shape[0])
        return values.flip(0)[:dimension].cpu().numpy(), vectors.flip(1)[:, :dimension].cpu().numpy()

    def product(self, mean: np.ndarray, scale: np.ndarray) -> Product:
        """See ``Rows``; in float64, one pass over the rows each."""

        def multiplied(vector: np.ndarray) -> np.ndarray:
            weighted = scale * vector.ravel()
            total = self._scatter(np.append(weighted, -(mean @ weighted)))
            found: np.ndarray = scale * (total[:-1] - total[-1] * mean) / self._X.shape[0]
            return found

        return multiplied

    @reproducibly
    def _scatter(self, weights: np.ndarray) -> np.ndarray:
        """Give X'(X weights), a constant feature of 1 being the last."""
        w = self._sent(weights)
        total = torch.zeros_like(w)
        for rows in self._blocks():
            if not isinstance(rows, CsrRows):
                inputs = rows.inputs.double()
                total += (inputs @ w) @ inputs
                continue
            values = rows.values.double()
            scores = torch.zeros(rows.n, dtype=torch.float64, device=self._device)
            scores.index_add_(0, rows.rows, values * w[rows.columns])
            total.index_add_(0, rows.columns, values * scores[rows.rows])
        return total.cpu().numpy()


def _dense(rows: Any) -> Tensor:
    found: Tensor = rows.inputs[:, :-1]
    return found

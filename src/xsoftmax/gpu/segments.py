"""Sums over consecutive pieces of rows on a device, all pieces at once and the same bits each time."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from xsoftmax.gpu.layouts import cut

# Rows of blocks that are looked at together.
ROWS_TOGETHER = 2**18
_SMALLEST, _LARGEST = 8, 256


class Part(NamedTuple):
    """Some blocks: of each the piece that it is of, (m,), and its rows, (m, size), the number of rows for none."""

    pieces: Tensor
    rows: Tensor


class Segments:
    """Pieces of rows, cut into blocks of one size: a power of two near the mean of the pieces, from 8 to 256.

    Parameters
    ----------
    bounds : ndarray of shape (n_pieces + 1,), int64
        Rows of piece i are ``bounds[i]`` to ``bounds[i + 1]``; the first are from 0.
    device : torch.device
    """

    def __init__(self, bounds: np.ndarray, device: torch.device) -> None:
        self.n_pieces, self.n_rows = len(bounds) - 1, int(bounds[-1])
        lengths = np.diff(bounds)
        mean = self.n_rows / max(1, int(np.count_nonzero(lengths)))
        self._size = min(max(_SMALLEST, 1 << int(np.ceil(np.log2(max(1, mean))))), _LARGEST)
        n_blocks = -(-lengths // self._size)
        pieces = np.repeat(np.arange(self.n_pieces), n_blocks)
        number = np.arange(len(pieces)) - np.repeat(np.cumsum(n_blocks) - n_blocks, n_blocks)
        first = bounds[pieces] + number * self._size
        self._pieces, self._first, self._stop = (
            torch.from_numpy(each).to(device) for each in (pieces, first, bounds[pieces + 1])
        )

    def parts(self, wanted: Tensor | None = None) -> Iterator[Part]:
        """Go through the blocks of all pieces, or of ``wanted`` ones, numbers; these are then numbered from 0."""
        pieces, first, stop = self._pieces, self._first, self._stop
        if wanted is not None:
            number = torch.full((self.n_pieces,), -1, device=pieces.device)
            number[wanted] = torch.arange(len(wanted), device=pieces.device)
            pieces = number[pieces]
            chosen = (pieces >= 0).nonzero()[:, 0]
            pieces, first, stop = pieces[chosen], first[chosen], stop[chosen]
        within = torch.arange(self._size, device=pieces.device)
        for begin, end in cut(len(pieces), ROWS_TOGETHER // self._size):
            rows = first[begin:end, None] + within
            yield Part(pieces[begin:end], torch.where(rows < stop[begin:end, None], rows, self.n_rows))

    def sum(self, values: Tensor) -> Tensor:
        """Sum ``values`` of shape (n_rows,) or (n_rows, n) over the rows of each piece, in their own precision."""
        padded = torch.cat([values, values.new_zeros((1, *values.shape[1:]))])
        found = values.new_zeros((self.n_pieces, *values.shape[1:]))
        for part in self.parts():
            found.index_add_(0, part.pieces, padded[part.rows].sum(1))
        return found

    def squares(self, values: Tensor) -> Tensor:
        """Sum the products of each row of ``values`` with itself, giving (n_pieces, n, n)."""
        padded = torch.cat([values, values.new_zeros((1, values.shape[1]))])
        found = values.new_zeros((self.n_pieces, values.shape[1], values.shape[1]))
        for part in self.parts():
            rows = padded[part.rows]
            found.index_add_(0, part.pieces, rows.mT @ rows)
        return found

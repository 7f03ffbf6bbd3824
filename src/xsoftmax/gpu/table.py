"""Minibatches through a trained table, on a device: what ``xsoftmax.kernels.encoded`` is in compiled code.

    h(x) = sum_d x_d E_d / sum_d |x_d|,     scores = W h + b

Classes see dense rows h. The gradient by h, slopes times W, is taken block by block before each moves; then every row
of the table that the batch has a non-zero for moves once, along its share of the mean.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from xsoftmax.gpu.candidates import spans
from xsoftmax.gpu.features import CsrRows, DenseRows
from xsoftmax.gpu.layouts import ClassMajor
from xsoftmax.gpu.weights import Weights


class Shares(NamedTuple):
    """What the table's rows are of each sample: rows and columns of entries, and x_d / sum |x_d|."""

    samples: Tensor
    columns: Tensor
    values: Tensor


class EncodedBatch(NamedTuple):
    """Samples behind a table, the constant feature last; and the gradient by h, (n, dimension), as it adds up."""

    inputs: Tensor
    shares: Shares
    pulled: Tensor

    @property
    def n(self) -> int:
        """Count the samples."""
        return len(self.inputs)


class BehindTable(ClassMajor):
    """Weights of shape (n_classes, dimension + 1), and a table of shape (n_features, dimension).

    Parameters
    ----------
    weights, table : Weights
    constant : float
        What biases see.
    trained : bool
        Whether the table moves.
    """

    def __init__(self, weights: Weights, table: Weights, constant: float, trained: bool) -> None:
        super().__init__(weights)
        self._table, self._constant, self._trained = table, constant, trained

    def opened(self, rows: Any) -> Any:
        """Encode a minibatch."""
        table, shares = self._table.W, shares_of(rows, self._table.W.shape[0])
        inputs = torch.zeros((rows.n, table.shape[1] + 1), dtype=table.dtype, device=table.device)
        inputs[:, :-1].index_add_(0, shares.samples, table[shares.columns] * shares.values[:, None])
        inputs[:, -1] = self._constant
        return EncodedBatch(inputs, shares, torch.zeros_like(inputs[:, :-1]))

    def pull_each(self, batch: EncodedBatch, classes: Tensor, slopes: Tensor) -> None:
        """Add what classes of each sample's own, (n, m), pull at h: before they move."""
        if self._trained:
            for at in spans(batch.inputs, classes.shape[1]):
                rows = self._weights.W[classes[at]][:, :, :-1]
                batch.pulled[at] += torch.bmm(slopes[at, None, :], rows)[:, 0]

    def pull_alike(self, batch: EncodedBatch, classes: Tensor, slopes: Tensor) -> None:
        """Add what classes that all samples share, (m,), pull at h, by slopes (n, m)."""
        if self._trained:
            batch.pulled.add_(slopes @ self._weights.W[classes, :-1])

    def move(self, batch: Any, slopes: Tensor, first: int, stop: int, rate: float, number: int) -> None:
        """Add what a block of classes pulls at h, then move it."""
        if self._trained:
            batch.pulled.add_(slopes @ self._weights.W[first:stop, :-1])
        super().move(batch, slopes, first, stop, rate, number)

    def closed(self, batch: Any, rate: float, number: int) -> None:
        """Move the table's rows."""
        if not self._trained or not len(batch.shares.columns):
            return
        columns, of_column = torch.unique(batch.shares.columns, return_inverse=True)
        g = torch.zeros((len(columns), batch.pulled.shape[1]), dtype=batch.pulled.dtype, device=batch.pulled.device)
        g.index_add_(0, of_column, batch.pulled[batch.shares.samples] * batch.shares.values[:, None])
        self._table.move(columns, g, rate, number)


def shares_of(rows: DenseRows | CsrRows, n_features: int) -> Shares:
    """Find the non-zeros of samples, the constant feature left out, each divided by the sum of their sizes."""
    if isinstance(rows, DenseRows):
        samples, columns = torch.nonzero(rows.inputs[:, :n_features], as_tuple=True)
        values = rows.inputs[samples, columns]
    else:
        kept = rows.columns < n_features
        samples, columns, values = rows.rows[kept], rows.columns[kept], rows.values[kept]
    sums = torch.zeros(rows.n, dtype=values.dtype, device=values.device).index_add_(0, samples, values.abs())
    return Shares(samples, columns, values / sums.clamp_min(torch.finfo(values.dtype).tiny)[samples])

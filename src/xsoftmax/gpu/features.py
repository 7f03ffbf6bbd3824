"""Rows of the data on a device, some at a time: gathered on the host, sent over, and cut into minibatches there."""

from typing import Any, NamedTuple

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from xsoftmax.gpu.sender import Sender


class DenseRows(NamedTuple):
    """Samples, the constant feature last: of shape (n, n_features + 1)."""

    inputs: Tensor

    @property
    def n(self) -> int:
        """Count the samples."""
        return len(self.inputs)

    def cut(self, first: int, stop: int) -> "DenseRows":
        """Samples ``first`` to ``stop``, a view."""
        return DenseRows(self.inputs[first:stop])


class CsrRows(NamedTuple):
    """Sparse samples by their entries, the constant feature's included.

    Attributes
    ----------
    starts : ndarray of shape (n + 1,), int64
        On the host: entries of sample b are ``starts[b]`` to ``starts[b + 1]``.
    rows, columns : Tensor of shape (n_entries,), int64
        Of each entry, the sample and the feature.
    values : Tensor of shape (n_entries,)
    """

    starts: np.ndarray
    rows: Tensor
    columns: Tensor
    values: Tensor

    @property
    def n(self) -> int:
        """Count the samples."""
        return len(self.starts) - 1

    def cut(self, first: int, stop: int) -> "CsrRows":
        """Samples ``first`` to ``stop``, views."""
        begin, end = (int(self.starts[i] - self.starts[0]) for i in (first, stop))
        parts = (self.rows[begin:end] - first, self.columns[begin:end], self.values[begin:end])
        return CsrRows(self.starts[first : stop + 1], *parts)


Rows = DenseRows | CsrRows


class Features:
    """The rows of a training set, wherever they are, for a device.

    Parameters
    ----------
    X : ndarray or sparse array of shape (n_samples, n_features), float32
        In memory or mapped from a file: only the rows that are taken are read.
    constant : float
        Value of the constant feature: 0 for a model without biases.
    device : torch.device
    dtype : torch.dtype
        Of the values there.
    """

    def __init__(self, X: Any, constant: float, device: torch.device, dtype: torch.dtype) -> None:
        self._X = X.tocsr() if sparse.issparse(X) else X
        self._constant, self._dtype, self._sender = np.float32(constant), dtype, Sender(device)

    @property
    def sparse(self) -> bool:
        """Whether rows are sparse."""
        return not isinstance(self._X, np.ndarray)

    @property
    def width(self) -> int:
        """Number of features, the constant one counted."""
        return self._X.shape[1] + 1

    def chunk(self, samples: np.ndarray) -> "Rows | Pieces":
        """Give the rows of some minibatches: sent as one, or to a card when each is cut out."""
        return Pieces(self, samples) if self._sender.pins else self.take(samples)

    def take(self, samples: np.ndarray) -> Rows:
        """Send some rows, given by number, to the device."""
        if self.sparse:
            return self._take_sparse(samples)
        gathered = self._sender.empty((len(samples), self.width), torch.float32)
        gathered[:, :-1] = self._X[samples]
        gathered[:, -1] = self._constant
        return DenseRows(self._sender.send(gathered, self._dtype))

    def _take_sparse(self, samples: np.ndarray) -> CsrRows:
        begins = self._X.indptr[samples].astype(np.int64)
        counts = self._X.indptr[samples + 1] - begins
        starts = np.concatenate([[0], np.cumsum(counts + 1, dtype=np.int64)])
        rows = np.repeat(np.arange(len(samples)), counts + 1)
        last = starts[1:] - 1  # of each row, where its constant feature goes
        places = np.arange(starts[-1]) - np.repeat(starts[:-1], counts + 1) + np.repeat(begins, counts + 1)
        places[last] = 0  # of these nothing is read
        columns, values = np.zeros(starts[-1], np.int64), np.zeros(starts[-1], np.float32)
        if self._X.nnz:
            columns[:], values[:] = self._X.indices[places], self._X.data[places]
        columns[last], values[last] = self.width - 1, self._constant
        of_entries, of_columns = (self._sender.send(each) for each in (rows, columns))
        return CsrRows(starts, of_entries, of_columns, self._sender.send(values, self._dtype))


class Pieces(NamedTuple):
    """Rows that are still on the host: each minibatch is gathered and sent while the one before it is computed."""

    features: Features
    samples: np.ndarray

    def cut(self, first: int, stop: int) -> Rows:
        """Send samples ``first`` to ``stop``."""
        return self.features.take(self.samples[first:stop])

"""The best weights so far, dense or sparse."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.sparse import csc_array, issparse

from xsoftmax.internal.hdf5_checks import (
    ContentError,
    check_array,
    check_arrays,
    check_below,
    check_starts,
    copy_arrays,
)
from xsoftmax.kernels.encoded import EncodedWeights

_PARTS = {"data": np.float32, "indices": np.int32, "indptr": np.int64}


class BestWeights:
    """A copy of weights (n_classes, n_features + 1) that a fit may go back to.

    Parameters
    ----------
    shape : tuple of int
        Of the weights.
    sparse : bool
    """

    def __init__(self, shape: tuple[int, int], sparse: bool) -> None:
        self.W: Any = csc_array(shape, dtype=np.float32) if sparse else np.zeros(shape, np.float32)

    def take(self, W: Any) -> None:
        """Copy weights."""
        if issparse(W):
            self.W = W.copy()
        else:
            self.W[:] = W

    def arrays(self) -> dict[str, np.ndarray]:
        """All of it, for a checkpoint."""
        if not issparse(self.W):
            return {"best_W": self.W}
        return {f"best_{part}": getattr(self.W, part).astype(kind) for part, kind in _PARTS.items()}

    def check(self, found: Mapping[str, Any]) -> None:
        """Make sure that arrays are what ``arrays`` may have given.

        Raises
        ------
        ContentError
            If they do not fit.
        """
        own = self.arrays()
        if not issparse(self.W):
            check_arrays(own, found)
            return
        if own.keys() != found.keys():
            raise ContentError(f"best weights of {', '.join(sorted(found)) or 'nothing'}")
        data, indices, indptr = (found[f"best_{part}"] for part in _PARTS)
        check_array(data, np.float32, None)
        check_array(indices, np.int32, len(data))
        check_array(indptr, np.int64, self.W.shape[1] + 1)
        check_starts(indptr, len(data))
        check_below(indices, self.W.shape[0])

    def restore(self, found: Mapping[str, Any]) -> None:
        """Take arrays that were checked."""
        if not issparse(self.W):
            copy_arrays(self.arrays(), found)
            return
        self.W = csc_array(tuple(found[f"best_{part}"][...] for part in _PARTS), shape=self.W.shape)


class BestEncoded(BestWeights):
    """A copy of weights behind a table, and of the table.

    Parameters
    ----------
    shape : tuple of int
        Of the weights, (n_classes, dimension + 1).
    n_features : int
    """

    def __init__(self, shape: tuple[int, int], n_features: int) -> None:
        self.W = EncodedWeights(np.zeros(shape, np.float32), np.zeros((n_features, shape[1] - 1), np.float32))

    def take(self, W: EncodedWeights) -> None:
        """Copy weights and table."""
        for own, given in zip(self.W, W, strict=True):
            own[:] = given

    def arrays(self) -> dict[str, np.ndarray]:
        """All of it, for a checkpoint."""
        return {"best_W": self.W.rows, "best_table": self.W.table}


def best_of(method: Any, n_classes: int, n_features: int) -> BestWeights:
    """Give room for the best weights of a method."""
    if method.encoder is not None:
        return BestEncoded((n_classes, method.encoder.dimension + 1), n_features)
    return BestWeights((n_classes, n_features + 1), method.weights == "sparse")

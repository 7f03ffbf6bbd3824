"""Where the sums over rows of a tree's fit are made, if not by compiled code: what a device has to know."""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

# Of a level: the permutation of classes, changed in place, where the classes below each node begin, how many leaves
# are below a child, and the nodes' weights, which are written. Gives where the classes below each child begin.
FitLevel = Callable[[NDArray[np.int64], NDArray[np.int64], int, NDArray[np.float32]], NDArray[np.int64]]
Product = Callable[[NDArray[np.float64]], NDArray[np.float64]]


class Rows(Protocol):
    """Rows whose principal components are looked for; arrays are float64 and on the host."""

    def moments(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Give the features' means and standard deviations."""

    def eigenpairs(
        self, mean: NDArray[np.float64], scale: NDArray[np.float64], dimension: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Give the largest eigenvalues of the covariance of ``(x - mean) * scale``, and its eigenvectors, columns."""

    def product(self, mean: NDArray[np.float64], scale: NDArray[np.float64]) -> Product:
        """Give v -> covariance v, without making that matrix."""


class Engine(Protocol):
    """A device."""

    def rows(self, X: Any) -> Rows:
        """Take rows, a csr_array or ndarray of shape (n_samples, n_features), float32."""

    def levels(
        self,
        Z: NDArray[np.float32],
        offsets: NDArray[np.int64],
        sums: NDArray[np.float64],
        regularizer: float,
        resplit: bool,
    ) -> FitLevel:
        """Take projected rows, sorted by class: those of class c are ``offsets[c]`` to ``offsets[c + 1]``.

        ``sums``, of shape (n_classes, dimension + 1), are of each class's (z, 1).
        """

"""A fitted tree: a distribution over classes given a row, cheap to draw from, and a classifier by itself."""

from dataclasses import dataclass
from functools import cached_property

import h5py
import numpy as np
from numpy.typing import DTypeLike, NDArray

from xsoftmax.internal.hdf5_checks import ContentError, check_array, check_below
from xsoftmax.kernels.cache_lines import FLOATS
from xsoftmax.tree.draws import CERTAIN, TreeView, draw_rows, log_probability_block
from xsoftmax.tree.levels import ROWS, log_probabilities
from xsoftmax.tree.projection import Features, Projection

_CACHE_LINE = 4 * FLOATS


@dataclass(frozen=True, eq=False)
class Tree:
    """p_n(y|x) of Bamler and Mandt 2020, section 3.

    Attributes
    ----------
    projection : Projection
    weights : ndarray of shape (n_leaves, dimension + 1), float32
        Row i: w and, last, b of node i. The root is node 1, the children of i are 2 i (left) and 2 i + 1
        (right); row 0 is unused. n_leaves is the power of two at or above n_classes; with one class there is
        no node.
    class_of_leaf : ndarray of shape (n_leaves,), int32
        -1 for padding, whose probability is exactly 0.
    """

    projection: Projection
    weights: NDArray[np.float32]
    class_of_leaf: NDArray[np.int32]

    @cached_property
    def leaf_of_class(self) -> NDArray[np.int32]:
        """Leaf of each class, an ndarray of shape (n_classes,)."""
        leaves = np.flatnonzero(self.class_of_leaf >= 0).astype(np.int32)
        inverse = np.empty(leaves.size, np.int32)
        inverse[self.class_of_leaf[leaves]] = leaves
        return inverse

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.leaf_of_class.size

    @property
    def depth(self) -> int:
        """Number of decisions from the root to a leaf."""
        return self.class_of_leaf.size.bit_length() - 1

    @property
    def dimension(self) -> int:
        """Number of components that the nodes look at."""
        return self.projection.dimension

    @cached_property
    def view(self) -> TreeView:
        """The arrays as the kernels want them: a node's weights on cache lines of their own."""
        bias = np.ascontiguousarray(self.weights[:, -1])
        return TreeView(on_cache_lines(self.weights[:, :-1]), bias, self.class_of_leaf, self.leaf_of_class)

    def project(self, X: Features) -> NDArray[np.float32]:
        """Turn rows into what all other methods take: whitened components of shape (n_samples, dimension)."""
        return self.projection(X)

    def log_probability(
        self, Z: NDArray[np.float32], start: int = 0, stop: int | None = None, dtype: DTypeLike = np.float32
    ) -> NDArray[np.floating]:
        """Log-probabilities of the classes ``start`` to ``stop``, in class order.

        Parameters
        ----------
        Z : ndarray of shape (n_samples, dimension), float32
        start, stop : int
            All classes by default. A node above several of them is scored once, so a range of m classes costs
            about m log2(2 n_classes / m) scores per row; beyond the result it takes memory for 32 rows of it.
        dtype : dtype
            float32 (absolute error about 1e-6) or float64 (slower).

        Returns
        -------
        ndarray of shape (n_samples, stop - start)
        """
        start, stop, _ = slice(start, stop).indices(self.n_classes)
        leaves = np.flatnonzero((self.class_of_leaf >= start) & (self.class_of_leaf < stop)).astype(np.int32)
        columns = self.class_of_leaf[leaves] - np.int32(start)
        out = np.empty((Z.shape[0], leaves.size), dtype)
        lines = np.empty((leaves.size, ROWS), dtype)
        log_probabilities(self.view, np.ascontiguousarray(Z, np.float32), leaves, columns, lines, out)
        return out

    def log_probability_of(self, Z: NDArray[np.float32], y: NDArray[np.int32]) -> NDArray[np.float32]:
        """Log-probability of one class per row, shape (n_samples,), in log2(n_leaves) scores each."""
        out = np.empty(Z.shape[0], np.float32)
        log_probability_block(self.view, on_cache_lines(Z), np.arange(Z.shape[0]), y.astype(np.int32), out)
        return out

    def log_likelihood(self, Z: NDArray[np.float32], y: NDArray[np.int32]) -> float:
        """Mean log-probability of the labels, in nats."""
        return float(self.log_probability_of(Z, y).mean(dtype=np.float64))

    def sample(self, Z: NDArray[np.float32], seed: int = 0) -> NDArray[np.int64]:
        """Draw one class per row, shape (n_samples,)."""
        classes = np.empty((Z.shape[0], 1), np.int64)
        log_q = np.empty((Z.shape[0], 1), np.float32)
        draw_rows(self.view, on_cache_lines(Z), seed, classes, log_q)
        return classes[:, 0]

    def to_group(self, group: h5py.Group) -> None:
        """Write the tree into an open HDF5 group, a tree's own file or a part of a model's."""
        for name, array in self._arrays().items():
            group.create_dataset(name, data=array)

    @classmethod
    def from_group(cls, group: h5py.Group, n_classes: int, n_features: int) -> "Tree":
        """Read what ``to_group`` wrote of a tree over so many classes, for rows of so many features.

        Raises
        ------
        ContentError
            If it is no such tree, or a draw could end where no class is.
        """
        n_leaves, dimension = 1 << (n_classes - 1).bit_length(), group["components"].shape[1]
        for name, shape in (
            ("mean", (n_features,)),
            ("components", (n_features, dimension)),
            ("weights", (n_leaves, dimension + 1)),
        ):
            check_array(group[name], np.float32, *shape)
        check_array(group["class_of_leaf"], np.int32, n_leaves)
        check_below(group["class_of_leaf"], n_classes, lowest=-1)
        projection = Projection(group["mean"][()], group["components"][()])
        tree = cls(projection, group["weights"][()], group["class_of_leaf"][()])
        for name, values in (("mean", projection.mean), ("components", projection.components)):
            if not np.isfinite(values).all():
                raise ContentError(f"{name}: not all of them are finite")
        _check_leaves(tree, n_classes)
        return tree

    def _arrays(self) -> dict[str, NDArray]:
        return {
            "mean": self.projection.mean,
            "components": self.projection.components,
            "weights": self.weights,
            "class_of_leaf": self.class_of_leaf,
        }


def _check_leaves(tree: Tree, n_classes: int) -> None:
    """Make sure that each class has its leaf, and that no draw comes to one without a class."""
    found, filled = tree.class_of_leaf, tree.class_of_leaf >= 0
    if not np.array_equal(np.sort(found[filled]), np.arange(n_classes)):
        raise ContentError(f"class_of_leaf: not each of {n_classes} classes once")
    if not np.isfinite(tree.weights).all():
        raise ContentError("weights: not all of them are finite")
    while filled.size > 1:
        left, right = filled[::2], filled[1::2]
        nodes = slice(left.size, 2 * left.size)
        certain, others = tree.weights[nodes, -1], tree.weights[nodes, :-1]
        one_sided = left != right
        towards = np.where(right, certain, -certain)[one_sided]
        if (towards < CERTAIN).any() or others[one_sided].any():
            raise ContentError("weights: a draw could end where no class is")
        filled = left | right


def on_cache_lines(rows: NDArray[np.floating]) -> NDArray[np.float32]:
    """Copy rows to float32 that begins with a cache line and ends with one, filled up with zeros."""
    n_rows, n_columns = rows.shape
    width = max(-(-n_columns // FLOATS), 1) * FLOATS
    buffer = np.zeros(4 * n_rows * width + _CACHE_LINE, np.uint8)
    offset = -buffer.ctypes.data % _CACHE_LINE
    copy = buffer[offset : offset + 4 * n_rows * width].view(np.float32).reshape(n_rows, width)
    copy[:, :n_columns] = rows
    return copy

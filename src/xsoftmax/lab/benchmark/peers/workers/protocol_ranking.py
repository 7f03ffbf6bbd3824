"""What is measured where rows have several labels: P@k and PSP@k (Jain et al. 2016) of the classes ranked first.

P@k = mean over rows of (labels among the first k) / k. PSP@k weighs each label by its inverse propensity, and divides
by what the best ranking would get, summed over rows alike.
"""

from collections.abc import Iterable

import numpy as np
from scipy.sparse import csr_matrix

DEPTHS = (1, 3, 5)
MEASURES = tuple(f"{name}_at_{k}" for name in ("p", "psp") for k in DEPTHS)
A, B = 0.55, 1.5


def inverse_propensities(counts: np.ndarray, n_train: int, a: float = A, b: float = B) -> np.ndarray:
    """Return 1 + (ln n_train - 1) (b + 1)^a (count + b)^-a of each class, from its training rows."""
    return 1 + (np.log(n_train) - 1) * (b + 1) ** a * (np.asarray(counts, np.float64) + b) ** -a


def top_of(matrix: csr_matrix, k: int = DEPTHS[-1]) -> tuple[np.ndarray, np.ndarray]:
    """Return the k columns of the largest stored values of each row, and these values; -1 and 0 where it has less.

    Columns with equal values come in their order.
    """
    n_rows = matrix.shape[0]
    rows = np.repeat(np.arange(n_rows), np.diff(matrix.indptr))
    order = np.lexsort((matrix.indices, -matrix.data, rows))
    places = np.arange(len(rows)) - np.repeat(matrix.indptr[:-1], np.diff(matrix.indptr))
    kept = places < k
    columns, values = np.full((n_rows, k), -1), np.zeros((n_rows, k))
    columns[rows[kept], places[kept]] = matrix.indices[order][kept]
    values[rows[kept], places[kept]] = matrix.data[order][kept]
    return columns, values


def top_of_scores(scores: np.ndarray, k: int = DEPTHS[-1]) -> tuple[np.ndarray, np.ndarray]:
    """Return classes and scores as ``top_of`` from scores of all classes, (n_rows, n_classes)."""
    columns = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    columns = np.pad(columns, ((0, 0), (0, max(0, k - scores.shape[1]))), constant_values=-1)
    return columns, np.where(columns >= 0, np.take_along_axis(scores, np.maximum(columns, 0), axis=1), 0)


def top_of_pairs(rows: Iterable[list[tuple[int, float]]], k: int = DEPTHS[-1]) -> tuple[np.ndarray, np.ndarray]:
    """Return classes and scores as ``top_of`` from lists of both, best first."""
    short = [pairs[:k] + [(-1, 0.0)] * (k - len(pairs)) for pairs in rows]
    pairs = np.array(short, np.float64).reshape(-1, k, 2)
    return pairs[:, :, 0].astype(np.int64), pairs[:, :, 1]


def ranking_values(classes: np.ndarray, labels: csr_matrix, inverse: np.ndarray) -> dict[str, float]:
    """Measure P@k and PSP@k of rows.

    Parameters
    ----------
    classes : ndarray of shape (n_rows, 5), int
        Best first; -1 where a peer names no more.
    labels : csr_matrix of shape (n_rows, n_classes)
        Nonzero for each label of a row, of which it has one at least.
    inverse : ndarray of shape (n_classes,)
        Inverse propensities.
    """
    rows = np.arange(len(classes))[:, None]
    right = (np.asarray(labels[rows, np.maximum(classes, 0)].todense()) != 0) & (classes >= 0)
    gains = np.where(right, inverse[classes], 0.0)
    weighted = csr_matrix((inverse[labels.indices], labels.indices, labels.indptr), shape=labels.shape)
    best = top_of(weighted)[1]
    found = {f"p_at_{k}": float(right[:, :k].sum() / (k * len(classes))) for k in DEPTHS}
    return found | {f"psp_at_{k}": float(gains[:, :k].sum() / best[:, :k].sum()) for k in DEPTHS}

"""What a pass over all scores finds of each row, on a device, without sending scores to the host.

That is the logarithm of the sum of exponentials, relative to the highest score so far and in float64, the rank of one
class, and the best classes.
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from xsoftmax.gpu.scoring import DeviceScorer, Found, on_device
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.kernels.scores import Scored

_LOW, _SIGNLESS = 2**32 - 1, 2**31 - 1
_NOTHING = -(2**63)


class Pass(NamedTuple):
    """Of n rows: the highest score and sum e^(score - highest), float64; the true score, float32, and its rank.

    ``classes``, int64, and ``scores``, float32, are the best of each, (n, k): among equal scores the lower class
    comes first.
    """

    highest: np.ndarray
    total: np.ndarray
    score_true: np.ndarray
    rank: np.ndarray
    classes: np.ndarray
    scores: np.ndarray


def pass_over(
    model: Scored,
    X: Any,
    place: str,
    pool: ThreadPool,
    kept: dict[Any, Any] | None = None,
    y: np.ndarray | None = None,
    score_true: np.ndarray | None = None,
    k: int = 0,
) -> Pass:
    """Pass over all scores of rows once.

    Parameters
    ----------
    model : Scored
    X : sparse array or ndarray of shape (n_samples, n_features), float32
    place : {"cpu", "cuda"}
    pool : ThreadPool
    kept : dict, optional
        See ``DeviceScorer``.
    y : ndarray of shape (n_samples,), optional
        Classes whose rank is asked for.
    score_true : ndarray of shape (n_samples,), float32, optional
        Their scores, where these are sums of their own; needed unless all classes are one block.
    k : int
        How many of the best are asked for.
    """
    with on_device(place, pool):
        scorer = DeviceScorer(model, X, place, kept)
        running = _Running(torch.device(place), X.shape[0], y, None if scorer.whole else score_true, k)
        for found in scorer.blocks():
            running.add(found)
        return running.found()


class _Running:
    """What is known of rows so far."""

    def __init__(
        self, device: torch.device, n: int, y: np.ndarray | None, score_true: np.ndarray | None, k: int
    ) -> None:
        self._highest = torch.full((n,), -torch.inf, dtype=torch.float32, device=device)
        self._total = torch.zeros(n, dtype=torch.float64, device=device)
        self._y = None if y is None else torch.from_numpy(y.astype(np.int64)).to(device)
        given = torch.zeros(n) if score_true is None else torch.from_numpy(score_true.astype(np.float32))
        self._true, self._takes_true = given.to(device), score_true is None
        self._rank = torch.zeros(n, dtype=torch.int64, device=device)
        self._best = torch.full((n, k), _NOTHING, dtype=torch.int64, device=device)

    def add(self, found: Found) -> None:
        """Go on with a block."""
        rows, scores = found.rows, found.scores
        if self._y is not None:
            self._add_rank(rows, scores, self._y[rows] - found.first_class)
        if self._best.shape[1]:
            self._add_best(rows, scores, found.first_class)
        self._add_exponentials(rows, scores)

    def _add_rank(self, rows: slice, scores: Tensor, column: Tensor) -> None:
        """Count the classes that are not below the true one, which stands among the scores as it is known."""
        inside = (column >= 0) & (column < scores.shape[1])
        column = column.clamp(0, scores.shape[1] - 1)[:, None]
        there = scores.gather(1, column)[:, 0]
        if self._takes_true:
            self._true[rows] = there
        scores.scatter_(1, column, torch.where(inside, self._true[rows], there)[:, None])
        no_lower = (scores < self._true[rows, None]).logical_not_().sum(1)
        self._rank[rows] += no_lower - inside.to(torch.int64)

    def _add_best(self, rows: slice, scores: Tensor, first_class: int) -> None:
        k = self._best.shape[1]
        keys = keys_of(scores, first_class).topk(min(k, scores.shape[1])).values
        self._best[rows] = torch.cat([self._best[rows], keys], 1).topk(k).values

    def _add_exponentials(self, rows: slice, scores: Tensor) -> None:
        """Go on with the sum; NaN or infinity anywhere makes it NaN, minus infinity is of probability zero."""
        not_finite = (scores < torch.inf).logical_not_().any(1)
        before = self._highest[rows]
        highest = torch.maximum(before, scores.amax(1))
        reference = torch.where(torch.isfinite(highest), highest, 0.0)
        change = torch.where(torch.isfinite(before), before.double() - reference.double(), -torch.inf)
        total = self._total[rows] * change.exp()
        total += scores.sub_(reference[:, None]).exp_().sum(1, dtype=torch.float64)
        self._total[rows] = torch.where(not_finite, torch.nan, total)
        self._highest[rows] = highest

    def found(self) -> Pass:
        """Bring it to the host."""
        classes, scores = classes_and_scores(self._best)
        parts = (self._highest.double(), self._total, self._true, self._rank, classes, scores)
        return Pass(*(part.cpu().numpy() for part in parts))


def keys_of(scores: Tensor, first_class: int) -> Tensor:
    """Give numbers, int64, that are higher for a higher score, and of equal ones for a lower class; NaN is lowest."""
    scores = torch.where(torch.isnan(scores), -torch.inf, scores) + 0.0  # -0 becomes 0, which it is equal to
    bits = scores.view(torch.int32).to(torch.int64)
    ordered = bits ^ ((bits >> 31) & _SIGNLESS)
    classes = torch.arange(first_class, first_class + scores.shape[1], device=scores.device)
    return (ordered << 32) | (_LOW - classes)


def classes_and_scores(keys: Tensor) -> tuple[Tensor, Tensor]:
    """Read classes, int64, and scores, float32, from ``keys_of``."""
    ordered = keys >> 32
    bits = ordered ^ ((ordered >> 31) & _SIGNLESS)
    return _LOW - (keys & _LOW), bits.to(torch.int32).view(torch.float32)

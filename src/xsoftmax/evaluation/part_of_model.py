"""A model whose classes are spread over processes: each rank scores its own, and sums over classes are combined.

Every rank evaluates the same rows at the same time. What is found of them is then the same on all.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from xsoftmax.gpu.ranks import ALONE, Group, Shard
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.kernels.scores import ScoreBlock, score_each
from xsoftmax.model import Model


@dataclass(frozen=True)
class PartOfModel(Model):
    """A rank's classes of a model; ``class_names``, ``correction`` and ``calibration`` are those of all classes.

    Attributes
    ----------
    W : ndarray of shape (n, n_features), float32
    b : ndarray of shape (n,), float32, or None
    shard : Shard
        Which classes these are.
    ranks : Group
    """

    shard: Shard = field(default=Shard(0, 0), kw_only=True)
    ranks: Group = field(default=ALONE, kw_only=True)

    def _visit_scores(
        self, X: Any, visit: Callable[[ScoreBlock], Any], pool: ThreadPool, *sizes: int, **named: int
    ) -> None:
        """Show blocks of this rank's classes, by their numbers among all."""
        own, first = self._own(), self.shard.first
        own._kept.extend(self._kept)
        own._visit_scores(
            X, lambda block: visit(block._replace(first_class=first + block.first_class)), pool, *sizes, **named
        )

    def _linear_scores(self, X: Any, y: np.ndarray) -> np.ndarray:
        scores = np.zeros(len(y), np.float32)
        mine = np.flatnonzero((y >= self.shard.first) & (y < self.shard.stop))
        found = np.zeros(len(mine), np.float32)
        score_each(X[mine], y[mine] - self.shard.first, self.W, self.b, found)
        scores[mine] = found
        return self.ranks.total(scores)

    def scored_on(self, place: str) -> "PartOfModel":
        """The same: ranks score on the processors, wherever they train."""
        return self

    def _own(self) -> Model:
        """Give a model of these classes alone, with probabilities that do not add up to 1."""
        classes, calibration, correction = slice(*self.shard), self.calibration, self.correction
        if calibration is not None and calibration.log_counts is not None:
            calibration = replace(calibration, log_counts=calibration.log_counts[classes])
        if correction is not None:
            correction = _Shifted(correction, self.shard.first)
        parts = {"b": self.b, "correction": correction, "calibration": calibration, "link": self.link}
        return Model(self.W, [""] * self.shard.n, self.n_features, **parts)


@dataclass(frozen=True)
class _Shifted:
    """The log-probabilities of a proposal, classes counted from another one."""

    proposal: Any
    first: int

    def log_q(self, X: Any, start: int, stop: int) -> np.ndarray | None:
        return self.proposal.log_q(X, self.first + start, self.first + stop)


def join_sums(model: Model, sums: Any, labels: Any) -> None:
    """Make of ``RunningSums`` over a rank's classes, and of ranks of labels, if there are any, those over all."""
    if not isinstance(model, PartOfModel):
        return
    ranks = model.ranks
    highest, down = lowered(ranks, sums.highest)
    sums.total[:] = ranks.total(sums.total * np.exp(down))
    sums.highest[:] = highest
    sums.rank[:] = ranks.total(sums.rank)
    if labels is not None:
        labels.rank[:] = ranks.total(labels.rank)


def join_rows(model: Model, scores: np.ndarray) -> None:
    """Fill in the scores of other ranks' classes, in an array of shape (n, n_classes)."""
    if not isinstance(model, PartOfModel):
        return
    scores[:, : model.shard.first] = scores[:, model.shard.stop :] = 0
    scores[:] = model.ranks.total(scores)


def total_over_classes(model: Model, number: float) -> float:
    """Add up what each rank has found of its own classes."""
    return float(model.ranks.total(np.array([number]))[0]) if isinstance(model, PartOfModel) else number


def lowered(ranks: Group, highest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Give the highest scores over all ranks, and how far this rank's are below: 0 where it has none."""
    overall = ranks.highest(highest)
    with np.errstate(invalid="ignore"):
        return overall, np.where(np.isneginf(highest), 0.0, highest - overall)

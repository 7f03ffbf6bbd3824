"""A head of frequent classes that every step looks at, and a tail to draw the others from.

    sum_k f(k)  =  sum_{k in head} f(k) + sum_{k in tail} f(k),    the second sum estimated from draws of the tail

A few frequent classes hold most of the sum, so that taking them for certain removes most of its variance. The sum
stays unbiased whatever the tail draws: a draw that falls into the head counts nothing. With tail uniform or
frequency none does, as they are fitted to the classes of the tail alone. Cost of a step: n_head + n_sampled rows.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import h5py
import numpy as np

from xsoftmax.internal import registry
from xsoftmax.internal.hdf5 import attribute, put
from xsoftmax.internal.hdf5_checks import check_array, check_below, check_number
from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.draws import part_of
from xsoftmax.kernels.protocol import draw, log_probability
from xsoftmax.proposals import TrainingSet, fitted, proposal
from xsoftmax.proposals.frequency import Frequency
from xsoftmax.proposals.uniform import FittedUniform, Uniform, UniformDraws


@proposal(draws=True, distribution=False, cost="{n_head} classes for certain, and what the tail costs")
class Head(NamedTuple):
    """Parameters: ``n_head``, classes taken for certain; ``tail``, a proposal to draw ``n_sampled`` others from."""

    n_head: int = 100
    tail: Any = Uniform()
    n_sampled: int = 1

    def problem(self) -> str:
        """Say why a tail cannot be one."""
        if self.tail.draws and self.tail.distribution:
            return ""
        name = registry.name_of(self.tail)
        return f"tail is {name}, which is no distribution to draw from; take one such as uniform or frequency"

    def fit(self, data: TrainingSet) -> "FittedHead":
        """Take the most frequent classes, of equally frequent ones the first, and fit the tail."""
        counts = data.class_counts
        exact = np.sort(np.argsort(-counts, kind="stable")[: self.n_head])
        in_head = np.zeros(data.n_classes, np.bool_)
        in_head[exact] = True
        return FittedHead(exact, in_head, self._fit_tail(data, in_head), counts)

    def _fit_tail(self, data: TrainingSet, in_head: np.ndarray) -> Any:
        """Fit the tail; frequencies to the rows of its own classes, where there are any."""
        if not isinstance(self.tail, Frequency):
            return fitted(self.tail, data)
        others = data.all_labels[~in_head[data.all_labels]]
        return (
            self.tail.fit(replace(data, X=None, y=others, label_sets=None))
            if others.size
            else FittedUniform(data.n_classes)
        )


# Follows the weights if the tail does.
Head.adaptive = property(lambda self: self.tail.adaptive)  # type: ignore[attr-defined]
MEMBER = Head


@dataclass(frozen=True)
class FittedHead:
    """A head and a fitted tail.

    Attributes
    ----------
    exact_classes : ndarray of shape (n_head,), int64, ascending
    in_head : ndarray of shape (n_classes,), bool
    tail : Proposal
        A uniform one is over the classes outside the head.
    class_counts : ndarray of shape (n_classes,), int64, or None
        Training rows; of no use to predictions.
    """

    exact_classes: np.ndarray
    in_head: np.ndarray
    tail: Any
    class_counts: np.ndarray | None = None
    name = "head"

    @property
    def seconds(self) -> float:
        """What the fit of the tail took."""
        return self.tail.seconds

    @property
    def refresh_steps(self) -> int:
        """Steps between two refreshes of an adaptive tail."""
        return self.tail.refresh_steps

    def refresh(self, weights: Any) -> None:
        """Let an adaptive tail follow the weights."""
        self.tail.refresh(weights)

    def kernel(self, X: Any) -> "HeadDraws":
        """What the training loop draws from."""
        tail = self.tail.kernel(X)
        if isinstance(self.tail, FittedUniform):
            others = np.flatnonzero(~self.in_head)
            position = np.full(self.in_head.size, -1)
            position[others] = np.arange(others.size)
            tail = RestDraws(others, position)
        return HeadDraws(self.exact_classes, self.in_head, tail)

    def log_q(self, X: Any, start: int, stop: int) -> np.ndarray | None:
        """Log-probabilities of a block of classes: 0 in the head, those of a draw of the tail elsewhere."""
        found = self.tail.log_q(X, start, stop)
        if found is None and not isinstance(self.tail, FittedUniform):  # it follows the weights
            return None
        if found is None:
            found = np.full((1, stop - start), -math.log(max(1, np.sum(~self.in_head))), np.float32)
        return np.where(self.in_head[start:stop], np.float32(0), found)

    def inclusion(self, n_sampled: int) -> np.ndarray | None:
        """1 in the head; that of the tail elsewhere."""
        if isinstance(self.tail, FittedUniform):
            found = self._uniform_inclusion(n_sampled)
        else:
            with np.errstate(divide="ignore"):  # of a tail of one class, which is drawn for certain
                found = self.tail.inclusion(n_sampled)
        return None if found is None else np.where(self.in_head, 1.0, found)

    def _uniform_inclusion(self, n_sampled: int) -> np.ndarray:
        """Mean over rows of another class, as a row whose class is in the tail leaves that one out."""
        counts = self.class_counts
        if counts is None:
            raise ValueError("a restored head knows no counts of training rows")
        m = self.in_head.size - self.exact_classes.size
        by_row_of_head = 1 - (1 - 1 / max(1, m)) ** n_sampled
        by_row_of_tail = FittedUniform(m).inclusion(n_sampled)[0] if m > 1 else 0.0
        others = np.maximum(counts.sum() - counts, 1)
        share = np.minimum(counts[self.in_head].sum() / others, 1.0)
        return share * by_row_of_head + (1 - share) * by_row_of_tail

    def save(self, group: h5py.Group) -> None:
        """Keep the head, and the tail in a group of its own."""
        group["exact_classes"] = self.exact_classes
        put(group, n_classes=self.in_head.size, tail=self.tail.name)
        self.tail.save(group.create_group("tail"))


def restore(group: h5py.Group, n_classes: int, n_features: int) -> FittedHead:
    """Read what ``save`` wrote of a proposal over so many classes, for rows of so many features."""
    check_number(group, "n_classes", n_classes)
    check_array(group["exact_classes"], np.int64, None)
    check_below(group["exact_classes"], n_classes)
    exact, in_head = group["exact_classes"][:], np.zeros(n_classes, np.bool_)
    in_head[exact] = True
    tail = registry.load("xsoftmax.proposals", attribute(group, "tail"))
    return FittedHead(exact, in_head, tail.restore(group["tail"], n_classes, n_features))


class HeadDraws(NamedTuple):
    """What the kernels see: the head, which classes are in it, and what the tail's kernel is."""

    exact_classes: np.ndarray
    in_head: np.ndarray
    tail: Any


class RestDraws(NamedTuple):
    """Uniform draws from ``classes``; ``position`` is where in them a class is, -1 for none of them."""

    classes: np.ndarray
    position: np.ndarray


@implements(draw, HeadDraws)
def _draw(proposal, view, i, excluded, lowest, rng, draws):
    n_exact = proposal.exact_classes.size
    for j in range(n_exact):
        draws.classes[j] = proposal.exact_classes[j]
        draws.log_q[j] = np.float32(0)
        draws.weights[j] = np.float32(1)
    tail = part_of(draws, n_exact, draws.classes.size)
    draw(proposal.tail, view, i, excluded, lowest, rng, tail)
    for j in range(tail.classes.size):
        if proposal.in_head[tail.classes[j]]:
            tail.weights[j] = np.float32(0)


@implements(log_probability, HeadDraws)
def _log_probability(proposal, view, i, k):
    return np.float32(0) if proposal.in_head[k] else log_probability(proposal.tail, view, i, k)


@implements(draw, RestDraws)
def _draw_rest(proposal, view, i, excluded, lowest, rng, draws):
    n_classes = proposal.classes.size
    position = np.int64(-1) if excluded < 0 else proposal.position[excluded]
    if n_classes == 0 or (n_classes == 1 and position == 0):  # no other class is left: any, and it counts nothing
        draws.classes[:] = max(excluded, np.int64(0))
        draws.log_q[:] = np.float32(0)
        draws.weights[:] = np.float32(0)
        return
    draw(UniformDraws(n_classes), view, i, position, lowest, rng, draws)
    for j in range(draws.classes.size):
        draws.classes[j] = proposal.classes[draws.classes[j]]


@implements(log_probability, RestDraws)
def _log_probability_rest(proposal, view, i, k):
    return np.float32(-math.log(max(1, proposal.classes.size)))

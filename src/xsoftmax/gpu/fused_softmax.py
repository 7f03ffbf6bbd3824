"""Exact softmax on a device, over a block of classes at a time: no array of n_samples x n_classes is ever made.

The objective of a sample x of class y is log p(y | x) = s_y - log sum_k exp(s_k), with scores s_k = w_k . x + b_k.
A first pass over the blocks keeps a running maximum and a running sum of exponentials for each sample (Milakov and
Gimelshein 2018, "Online normalizer calculation for softmax", algorithm 3). A second pass scores each block again, as
Wijmans et al. 2025, "Cut your losses in large-vocabulary language models", do, and turns scores into gradients:
the coefficient of class k is p(k | x) - [k = y].

A step costs three matrix products of n_samples x n_classes x n_features: scores, scores again, and the gradient of
W. The gradient of X, where it is asked for, is a fourth. Beside the weights, a step in float32 needs 4 bytes for each
sample and class of a block, and 8 for each weight of a block, if a rule moves weights in place. In bfloat16 it needs
up to 10 and 19. These bytes were counted on the CPU device.

All functions work on a shard of the classes: ``first_class`` is the number of the shard's first row. The samples'
classes ``y`` are numbers among all classes. ``Sums`` of shards add up to those of the whole.
"""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from xsoftmax.gpu.elementwise import ONE_BY_ONE, Elementwise, Places, Running
from xsoftmax.gpu.precision import ClassWeights, multiply

BYTES_OF_A_BLOCK = 32 * 2**20  # of scores: less than the second-level cache of a card of 2022


class Sums(NamedTuple):
    """What a pass over some of the classes knows of each sample: three tensors of shape (n_samples,), float64.

    ``maximum`` is the largest score, ``total`` is the sum of exp(score - maximum), and ``true`` is the score of the
    sample's own class, or 0 if that is not among these classes.
    """

    maximum: Tensor
    total: Tensor
    true: Tensor

    @property
    def log_partition(self) -> Tensor:
        """Give log sum_k exp(s_k) over these classes, of shape (n_samples,), in nats."""
        return self.maximum + self.total.log()

    @property
    def log_likelihood(self) -> Tensor:
        """Give log p(y | x) if these are all classes, of shape (n_samples,), in nats."""
        return self.true - self.log_partition

    def plus(self, other: "Sums") -> "Sums":
        """Add those of other classes."""
        maximum = torch.maximum(self.maximum, other.maximum)
        return Sums(maximum, self.total_beside(maximum) + other.total_beside(maximum), self.true + other.true)

    def total_beside(self, maximum: Tensor) -> Tensor:
        """Give the sum of exp(score - maximum) for a finite maximum at least as large, of shape (n_samples,)."""
        return self.total * (self.maximum - maximum).exp()


class Gradients(NamedTuple):
    """Of the mean negative log-likelihood: of X (if asked for), W and b (if there is one), in their shapes."""

    X: Tensor | None
    W: Tensor
    b: Tensor | None


class Rule(Protocol):
    """How a step moves weights."""

    def move(self, W: ClassWeights, b: Tensor | None, rows: slice, of_W: Tensor, of_b: Tensor | None) -> None:
        """Move a block of rows along their gradients, which may be overwritten."""


def block_size(n_samples: int, n_classes: int, n_bytes: int = BYTES_OF_A_BLOCK) -> int:
    """Choose how many classes are scored at a time, such that their scores in float32 take at most ``n_bytes``."""
    largest = max(1, n_bytes // (4 * max(1, n_samples)))
    return min(n_classes, largest // 64 * 64 or largest)


def sums_of(
    X: Tensor,
    y: Tensor,
    W: ClassWeights,
    b: Tensor | None = None,
    *,
    first_class: int = 0,
    block: int | None = None,
    elementwise: Elementwise = ONE_BY_ONE,
) -> Sums:
    """Pass over the classes once.

    Parameters
    ----------
    X : Tensor of shape (n_samples, n_features), a dtype of floats
    y : Tensor of shape (n_samples,), int64
        Numbers among all classes.
    W : ClassWeights of shape (n_classes, n_features)
        Of this shard.
    b : Tensor of shape (n_classes,), optional
        Of this shard.
    first_class : int
        The number of the first row of W among all classes.
    block : int, optional
        How many classes are scored at a time; by default as many as ``block_size`` says.
    elementwise : Elementwise
        What computes on a block's scores; `xsoftmax.gpu.elementwise.compiled` gives what is faster on a card.
    """
    samples = _Samples.of(X, y, W, first_class, block)
    zeros = torch.zeros(y.shape, dtype=W.precision.sums, device=y.device)
    running = Running(zeros - torch.inf, zeros.double(), zeros)
    for rows in samples.blocks(W):
        bias = None if b is None else b[rows]
        running = elementwise.added(W.product(samples.X, rows), bias, samples.places(rows), running)
    return Sums(*(each.double() for each in running))


def gradients(
    X: Tensor,
    y: Tensor,
    W: ClassWeights,
    b: Tensor | None,
    log_partition: Tensor,
    *,
    first_class: int = 0,
    block: int | None = None,
    of_X: bool = True,
    dtype: torch.dtype | None = None,
    elementwise: Elementwise = ONE_BY_ONE,
) -> Gradients:
    """Give the gradients of the mean negative log-likelihood: pass over the classes a second time.

    Parameters
    ----------
    X, y, W, b, first_class, block, elementwise
        As for `sums_of`.
    log_partition : Tensor of shape (n_samples,), float64
        Over all classes, this shard's and others'.
    of_X : bool
        Whether to compute the gradient of X: the part of it that comes from this shard's classes.
    dtype : torch.dtype, optional
        Of the gradient of W; by default that of sums.
    """
    samples = _Samples.of(X, y, W, first_class, block)
    dX = torch.zeros(X.shape, dtype=W.precision.sums, device=X.device) if of_X else None
    dW = torch.empty(W.values.shape, dtype=dtype or W.precision.sums, device=X.device)
    db = None if b is None else torch.empty_like(b)
    for rows in samples.blocks(W):
        coefficients = samples.coefficients(W, b, log_partition, rows, elementwise)
        dW[rows] = multiply(coefficients.T, samples.X, W.precision)
        if db is not None:
            db[rows] = coefficients.sum(0, dtype=db.dtype)
        if dX is not None:
            dX += multiply(coefficients, W.values[rows], W.precision)
        del coefficients  # before the next block's are made
    return Gradients(dX, dW, db)


def move(
    X: Tensor,
    y: Tensor,
    W: ClassWeights,
    b: Tensor | None,
    log_partition: Tensor,
    update: Rule,
    *,
    first_class: int = 0,
    block: int | None = None,
    elementwise: Elementwise = ONE_BY_ONE,
) -> None:
    """Move W and b in place along the gradients of the mean log-likelihood, block by block.

    Parameters as of `gradients`; the gradient of W is never there as a whole.
    """
    samples = _Samples.of(X, y, W, first_class, block)
    for rows in samples.blocks(W):
        coefficients = samples.coefficients(W, b, log_partition, rows, elementwise)
        of_b = None if b is None else coefficients.sum(0, dtype=b.dtype)
        update.move(W, b, rows, multiply(coefficients.T, samples.X, W.precision), of_b)
        del coefficients  # before the next block's are made


def step(
    X: Tensor,
    y: Tensor,
    W: ClassWeights,
    b: Tensor | None,
    update: Rule,
    *,
    block: int | None = None,
    elementwise: Elementwise = ONE_BY_ONE,
) -> Tensor:
    """Make one step of exact softmax over all classes, and give the mean log-likelihood before it, a scalar in nats.

    Parameters as of `sums_of` and `move`. Nothing waits for the device.
    """
    sums = sums_of(X, y, W, b, block=block, elementwise=elementwise)
    move(X, y, W, b, sums.log_partition, update, block=block, elementwise=elementwise)
    return sums.log_likelihood.mean()


class _Samples(NamedTuple):
    """Samples as both passes need them: what can be known of all blocks at once is, for calls to a card take time.

    ``X`` has the dtype of factors. A sample's class is in block number ``block_of``, in its column ``column``.
    ``share`` is 1 / n_samples.
    """

    X: Tensor
    block_of: Tensor
    column: Tensor
    share: Tensor
    size: int

    @classmethod
    def of(cls, X: Tensor, y: Tensor, W: ClassWeights, first_class: int, block: int | None) -> "_Samples":
        size = block or block_size(len(X), len(W.values))
        local = y - first_class
        local = torch.where(local < len(W.values), local, -1)  # a class of another shard is in none of our blocks
        share = torch.full((), 1 / max(1, len(X)), dtype=W.precision.sums, device=X.device)
        block_of = local.div(size, rounding_mode="floor")
        return cls(X.to(W.precision.factors), block_of, local.remainder(size), share, size)

    def blocks(self, W: ClassWeights) -> Iterator[slice]:
        n_classes = len(W.values)
        for start in range(0, n_classes, self.size):
            yield slice(start, min(start + self.size, n_classes))

    def places(self, rows: slice) -> Places:
        width = rows.stop - rows.start
        column = self.column if width == self.size else self.column.clamp(max=width - 1)
        return Places(self.block_of == rows.start // self.size, column[:, None])

    def coefficients(
        self, W: ClassWeights, b: Tensor | None, log_partition: Tensor, rows: slice, elementwise: Elementwise
    ) -> Tensor:
        """Score a block once more, and give (p(k | x) - [k = y]) / n_samples as factors, of shape (n_samples, n)."""
        scores = W.product(self.X, rows)
        shift = (log_partition - self.share.log()).to(scores.dtype)
        bias = None if b is None else b[rows]
        return elementwise.coefficients(scores, bias, shift, self.places(rows), self.share, W.precision.factors)

"""Exact softmax whose classes are spread over processes: each has some classes, and some samples of each batch.

A step gathers all samples on all ranks. Each rank passes over its own classes. What the passes have found is then
combined: with M the largest of the ranks' maxima m, the sum of exponentials is that of total exp(m - M) over ranks,
and only one rank knows the true score. Then each rank moves its own classes, as `fused_softmax.move` does.
Features do not change, so no gradient of them is sent.

With n ranks and float32 features, all ranks together send for each sample 4 D (n - 1) bytes of features, 8 (n - 1) of
its class, and 48 (n - 1) of three numbers in float64. Those go into two ring all-reduces, each of which sends every
number 2 (n - 1) times. These are 4 (n - 1) (D + 14). The exact scheme of docs/sharding.md, which sends to a sample's
home only, needs 4 (n - 1) (D + 3). For D = 512, Linux counted up to 1 % more than the first formula, as TCP adds its
own: 6,377 bytes for each sample from 4 ranks, and 2,115 from 2.

All of it is plain `torch.distributed`: gloo on processors, nccl on cards.
"""

from typing import NamedTuple

import torch
from torch import Tensor, distributed

from xsoftmax.gpu import fused_softmax
from xsoftmax.gpu.fused_softmax import Sums, Update
from xsoftmax.gpu.precision import ClassWeights
from xsoftmax.internal.errors import InputError


class Shard(NamedTuple):
    """The classes of one rank: ``first`` up to ``stop``, which is the first of the next rank."""

    first: int
    stop: int


def shard_of(rank: int, n_ranks: int, n_classes: int) -> Shard:
    """Give the classes of a rank; numbers of classes differ by one at most.

    Raises
    ------
    InputError
        If there are fewer classes than ranks.
    """
    if n_classes < n_ranks:
        raise InputError(f"{n_classes} classes are fewer than {n_ranks} ranks; use at most {n_classes} ranks")
    return Shard(rank * n_classes // n_ranks, (rank + 1) * n_classes // n_ranks)


class Ranks:
    """The processes of a group, as `torch.distributed.init_process_group` has joined them, and what this one sends.

    Attributes
    ----------
    rank, n_ranks : int
    sent : int
        Bytes of data that this rank has sent, if all-gathers and all-reduces go round a ring.
    """

    def __init__(self) -> None:
        self.rank, self.n_ranks = distributed.get_rank(), distributed.get_world_size()
        self.sent = 0

    def gathered(self, own: Tensor) -> Tensor:
        """Put the tensors of all ranks, of one shape and dtype, one below the other."""
        found = own.new_empty((self.n_ranks * len(own), *own.shape[1:]))
        distributed.all_gather(list(found.chunk(self.n_ranks)), own.contiguous())
        self.sent += own.nbytes * (self.n_ranks - 1)
        return found

    def largest(self, own: Tensor) -> Tensor:
        """Give the largest of the ranks' values, place by place."""
        return self._reduced(own, distributed.ReduceOp.MAX)

    def summed(self, own: Tensor) -> Tensor:
        """Add the ranks' values, place by place."""
        return self._reduced(own, distributed.ReduceOp.SUM)

    def check(self, number: int, what: str, expected: list[int] | None = None) -> None:
        """Compare a number of each rank with what it should be: if nothing is given, that of rank 0.

        Raises
        ------
        InputError
            On all ranks, if it is not so on one: none waits for another then.
        """
        numbers = self.gathered(torch.tensor([number], device=self._device())).tolist()
        wanted = expected or [numbers[0]] * self.n_ranks
        if numbers != wanted:
            has, needs = (", ".join(map(str, each)) for each in (numbers, wanted))
            raise InputError(f"ranks have {has} {what}, rank by rank; give them {needs}")

    def _reduced(self, own: Tensor, how: distributed.ReduceOp.RedOpType) -> Tensor:
        found = own.clone()
        distributed.all_reduce(found, how)
        self.sent += 2 * own.nbytes * (self.n_ranks - 1) // self.n_ranks
        return found

    @staticmethod
    def _device() -> torch.device:
        return torch.device("cuda" if distributed.get_backend() == "nccl" else "cpu")


def combined(sums: Sums, ranks: Ranks) -> Sums:
    """Combine what each rank knows of the same samples from its own classes into what holds of all classes."""
    maximum = ranks.largest(sums.maximum)
    total, true = ranks.summed(torch.stack([sums.total_beside(maximum), sums.true]))
    return Sums(maximum, total, true)


class ShardedSoftmax:
    """A rank's part of a model.

    Parameters
    ----------
    ranks : Ranks
    n_classes : int
        Of the whole model.
    W : ClassWeights of shape (n, n_features)
        Of this rank's classes, those of `shard_of`.
    b : Tensor of shape (n,), optional
    block : int, optional
        How many classes are scored at a time.

    Raises
    ------
    InputError
        If ranks have not the same model in mind, or W is not this rank's part of it.
    """

    def __init__(
        self, ranks: Ranks, n_classes: int, W: ClassWeights, b: Tensor | None = None, block: int | None = None
    ) -> None:
        ranks.check(n_classes, "classes")
        ranks.check(W.values.shape[1], "features")
        self.shard = shard_of(ranks.rank, ranks.n_ranks, n_classes)
        shards = [shard_of(rank, ranks.n_ranks, n_classes) for rank in range(ranks.n_ranks)]
        ranks.check(len(W.values), "classes in their shards", [each.stop - each.first for each in shards])
        self._ranks, self._W, self._b, self._block = ranks, W, b, block

    def step(self, X: Tensor, y: Tensor, update: Update) -> Tensor:
        """Make one step along the mean over all ranks' samples, and give their mean log-likelihood before it.

        It is a scalar, in nats.

        Parameters
        ----------
        X : Tensor of shape (n_samples, n_features)
            This rank's part of the batch: as many samples on each rank.
        y : Tensor of shape (n_samples,), int64
            Numbers among all classes.
        update : Update
            Its accumulators are of this rank's classes.

        Raises
        ------
        InputError
            If ranks have different numbers of samples.
        """
        self._ranks.check(len(X), "samples of a batch")
        X = self._ranks.gathered(X.to(self._W.precision.factors))
        y = self._ranks.gathered(y)
        sums = combined(self._passed(X, y), self._ranks)
        fused_softmax.move(
            X,
            y,
            self._W,
            self._b,
            sums.log_partition,
            update,
            first_class=self.shard.first,
            block=self._block,
        )
        return sums.log_likelihood.mean()

    def log_likelihood(self, X: Tensor, y: Tensor) -> Tensor:
        """Give log p(y | x) of this rank's samples, of shape (n_samples,), in nats; parameters as of `step`."""
        self._ranks.check(len(X), "samples of a batch")
        y = self._ranks.gathered(y)
        sums = combined(self._passed(self._ranks.gathered(X), y), self._ranks)
        own = slice(self._ranks.rank * len(X), (self._ranks.rank + 1) * len(X))
        return sums.log_likelihood[own]

    def _passed(self, X: Tensor, y: Tensor) -> Sums:
        return fused_softmax.sums_of(X, y, self._W, self._b, first_class=self.shard.first, block=self._block)

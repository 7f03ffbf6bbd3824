"""Classes that are spread over processes: each rank has some of them, and all ranks see the same samples.

Samples are in a file that every rank reads, and drawn classes follow from the seed, so that neither is sent. Of
exact softmax, each rank passes over its own classes. What the passes have found is then combined: with M the largest
of the ranks' maxima m, the sum of exponentials is that of total exp(m - M) over ranks, and only one rank knows the
true score. Of methods that draw m classes, each rank scores those that it has, and the m + 1 scores of a sample are
added up, of which all but one rank's are 0. Then each rank moves its own classes.

With n ranks, all together send 48 (n - 1) bytes for each sample of exact softmax: three numbers of float64 go into
two ring all-reduces, each of which sends every number 2 (n - 1) times. A sample with m draws of its own takes
8 (m + 1) (n - 1) bytes: float32 scores in one all-reduce. Neither depends on the number of features or classes.

All of it is plain `torch.distributed`: gloo on processors, nccl on cards.
"""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import NamedTuple
from zlib import crc32

import numpy as np
import torch
from torch import Tensor, distributed

from xsoftmax.gpu.fused_softmax import Sums
from xsoftmax.gpu.ranks import SECONDS_VARIABLE, Shard, World, shard_of
from xsoftmax.internal.errors import InputError


class Ranks:
    """The processes of a group, as `torch.distributed.init_process_group` has joined them: a ``ranks.Group``.

    Attributes
    ----------
    rank, n_ranks, n_here : int
    n_sent : int
        Bytes of data that this rank has sent, if all-gathers and all-reduces go round a ring.
    """

    def __init__(self) -> None:
        self.rank, self.n_ranks = distributed.get_rank(), distributed.get_world_size()
        self.n_sent = self.n_here = 0
        machine = np.array([crc32(socket.gethostname().encode())], np.int64)
        self.n_here = int((self._gathered(machine) == machine).sum())

    @classmethod
    @contextmanager
    def started(cls, world: World, place: str, timeout: timedelta) -> Iterator["Ranks"]:
        """Join the group of a world, for as long as this lasts; see ``xsoftmax.gpu.launch.joined``."""
        where = f"rank {world.rank} of {world.n_ranks}, at {world.address} port {world.port}"
        if place == "cuda":
            torch.cuda.set_device(world.local % torch.cuda.device_count())
        try:
            distributed.init_process_group(
                "cpu:gloo,cuda:nccl" if place == "cuda" else "gloo",
                init_method=f"tcp://{world.address}:{world.port}",
                rank=world.rank,
                world_size=world.n_ranks,
                timeout=timeout,
            )
        except (RuntimeError, ValueError) as error:
            said = str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
            raise InputError(
                f"{where}: the ranks have not come together ({said}); look at the others' logs, or set MASTER_PORT "
                "if the port is taken"
            ) from error
        try:
            yield cls()
        finally:
            distributed.destroy_process_group()

    def shard(self, n_classes: int) -> Shard:
        """See ``ranks.Group``."""
        return shard_of(self.rank, self.n_ranks, n_classes)

    def latest(self, number: float) -> float:
        """See ``ranks.Group``."""
        return float(self.highest(np.array([number]))[0])

    def of_first(self, values: np.ndarray) -> np.ndarray:
        """See ``ranks.Group``."""
        found = torch.from_numpy(np.array(values))
        self._do(lambda: distributed.broadcast(found, 0))
        return found.numpy()

    def total(self, values: np.ndarray) -> np.ndarray:
        """See ``ranks.Group``."""
        return self.summed(torch.from_numpy(np.ascontiguousarray(values))).numpy()

    def highest(self, values: np.ndarray) -> np.ndarray:
        """See ``ranks.Group``."""
        return self.largest(torch.from_numpy(np.ascontiguousarray(values))).numpy()

    def sent(self, values: np.ndarray, source: int) -> np.ndarray:
        """See ``ranks.Group``."""
        if source and self.rank in (0, source):
            there = torch.from_numpy(np.ascontiguousarray(values))
            self._do(lambda: distributed.send(there, 0) if self.rank else distributed.recv(there, source))
            return there.numpy()
        return values

    def largest(self, own: Tensor) -> Tensor:
        """Give the largest of the ranks' values, place by place."""
        return self._reduced(own, distributed.ReduceOp.MAX)

    def summed(self, own: Tensor) -> Tensor:
        """Add the ranks' values, place by place."""
        return self._reduced(own, distributed.ReduceOp.SUM)

    def check_alike(self, what: str) -> None:
        """See ``ranks.Group``."""
        found = self._gathered(np.array([crc32(what.encode())], np.int64))
        if others := ", ".join(map(str, np.flatnonzero(found != found[0]))):
            raise InputError(
                f"rank {others} of {self.n_ranks} trains something else than rank 0: data, method, seed, budget and "
                "code have to be the same; start all ranks with one command"
            )

    def _gathered(self, own: np.ndarray) -> np.ndarray:
        there = [torch.from_numpy(own.copy()) for _ in range(self.n_ranks)]
        self._do(lambda: distributed.all_gather(there, torch.from_numpy(own)))
        self.n_sent += own.nbytes * (self.n_ranks - 1)
        return np.concatenate([each.numpy() for each in there])

    def _reduced(self, own: Tensor, how: distributed.ReduceOp.RedOpType) -> Tensor:
        found = own.clone()
        self._do(lambda: distributed.all_reduce(found, how))
        self.n_sent += 2 * own.nbytes * (self.n_ranks - 1) // self.n_ranks
        return found

    def _do(self, call: Callable[[], object]) -> None:
        """Speak to the others.

        Raises
        ------
        InputError
            If one has ended, or does not answer.
        """
        try:
            call()
        except RuntimeError as error:
            said = (str(error).strip().splitlines() or [type(error).__name__])[0]
            said = said.rpartition("cc:")[2].partition("] ")[2] or said  # where in whose sources
            said = said.partition(". This is typically")[0][:160]
            raise InputError(
                f"rank {self.rank} of {self.n_ranks}: another rank has ended or does not answer ({said}); its log "
                "says why. Run the same command again: it goes on from the last checkpoint. If ranks were only slow, "
                f"raise {SECONDS_VARIABLE}"
            ) from error


def combined(sums: Sums, ranks: Ranks) -> Sums:
    """Combine what each rank knows of the same samples from its own classes into what holds of all classes."""
    maximum = ranks.largest(sums.maximum)
    total, true = ranks.summed(torch.stack([sums.total_beside(maximum), sums.true]))
    return Sums(maximum, total, true)


class Part(NamedTuple):
    """The classes of this rank, among those of all."""

    ranks: Ranks
    shard: Shard
    n_classes: int

    def log_sums(self, own: Tensor) -> Tensor:
        """Give the logarithm of the sum over all ranks of e^own."""
        maximum = self.ranks.largest(own)
        return maximum + self.ranks.summed((own - maximum).exp()).log()

    def joined(self, scores: Tensor) -> Tensor:
        """Put scores of each rank's own classes, (n, n_own), side by side: (n, n_classes)."""
        whole = scores.new_zeros((len(scores), self.n_classes))
        whole[:, self.shard.first : self.shard.stop] = scores
        return self.ranks.summed(whole)

    def has(self, classes: Tensor) -> Tensor:
        """Tell which classes are this rank's."""
        return (classes >= self.shard.first) & (classes < self.shard.stop)

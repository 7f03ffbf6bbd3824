"""A fit by several processes, each with some of the classes: what is refused, what all agree on, who writes it."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import fields, replace
from typing import Any

import numpy as np

from xsoftmax.evaluation.part_of_model import PartOfModel
from xsoftmax.gpu.ranks import Group, Shard, shard_of
from xsoftmax.internal.errors import InputError
from xsoftmax.methods import Method
from xsoftmax.model import Model
from xsoftmax.solvers._rules import first_broken

# Of which every step goes through scores and moves that know of ranks.
OPTIMIZERS = ("sgd", "adagrad", "u-max")


def check_ranks(ranks: Group, method: Method, n_classes: int, starts: bool, identity: Any) -> None:
    """Make sure that several processes can train a method together, and that all are about to do the same.

    Parameters
    ----------
    ranks : Group
    method : Method
    n_classes : int
    starts : bool
        Whether weights begin at given ones.
    identity : object
        What has to be the same on all ranks, as JSON tells it.

    Raises
    ------
    InputError
        If not.
    """
    if ranks.n_ranks == 1:
        return
    ranks.check_alike(json.dumps(identity, sort_keys=True, default=str))
    start, optimizer = (method.settings[part]["name"] for part in ("start", "optimizer"))
    several = f"{ranks.n_ranks} ranks have some of the classes each"
    rules = [
        (optimizer not in OPTIMIZERS, f"{optimizer} moves weights by itself; take {' or '.join(OPTIMIZERS)}"),
        (method.encoder is not None, "the table of an encoder is one; leave encoder out"),
        (starts or start != "zero", f"start {start} makes the weights of all; leave start out"),
        (method.prune, f"prune is {method.prune:g}, which compares the weights of all; leave prune out"),
    ]
    if reason := first_broken(rules):
        raise InputError(f"method {method.name}: {several}, and {reason}, or start one process")
    ranks.shard(n_classes)


def agreed(ranks: Group, row: Mapping[str, float]) -> dict[str, float]:
    """Give the row of the history that rank 0 has: what follows from it is then the same on all ranks."""
    if ranks.n_ranks == 1:
        return dict(row)
    values = ranks.of_first(np.array(list(row.values()), np.float64)).tolist()
    return {key: type(before)(value) for (key, before), value in zip(row.items(), values, strict=True)}


def sent_by(ranks: Group) -> dict[str, int] | None:
    """Say how many ranks there are, and what all of them have sent until now, in bytes; None of one process."""
    if ranks.n_ranks == 1:
        return None
    return {"n": ranks.n_ranks, "bytes_sent": int(ranks.total(np.array([ranks.n_sent]))[0])}


class RowsOfRanks:
    """Weights of all classes, which rank 0 asks for a block at a time, as of an array; the other ranks serve it.

    Parameters
    ----------
    part : PartOfModel or None
        What this rank has; None where a fit has no model.
    ranks : Group
    """

    def __init__(self, part: PartOfModel | None, ranks: Group) -> None:
        self._part, self._ranks = part, ranks
        self._n_classes = 0 if part is None else part.n_classes
        self.shape = (self._n_classes, 0 if part is None else part.n_features)
        self._b = None if part is None or part.b is None else self._biases(part.b)

    def __len__(self) -> int:
        """Count the classes."""
        return self.shape[0]

    def __getitem__(self, rows: slice) -> np.ndarray:
        """Fetch the weights of some classes, on rank 0."""
        first, stop, _ = rows.indices(len(self))
        self._ranks.of_first(np.array([first, stop]))
        return self._fetched(first, stop)

    def model(self) -> Model | None:
        """Give the whole model, whose weights are these."""
        if self._part is None:
            return None
        parts = {each.name: getattr(self._part, each.name) for each in fields(Model) if each.init}
        return Model(**(parts | {"W": self, "b": self._b}))

    def end(self, done: bool) -> None:
        """Tell the other ranks that rank 0 asks for no more, and whether all is written."""
        self._ranks.of_first(np.array([-1, int(done)]))

    def serve(self) -> None:
        """Send what rank 0 asks for, until it ends.

        Raises
        ------
        InputError
            If rank 0 could not write.
        """
        while True:
            first, stop = self._ranks.of_first(np.zeros(2, np.int64)).tolist()
            if first < 0:
                break
            self._fetched(first, stop)
        if not stop:
            raise InputError(f"rank {self._ranks.rank}: rank 0 could not write the fit; its message says why")

    def _fetched(self, first: int, stop: int) -> np.ndarray:
        found = np.empty((max(0, stop - first), self.shape[1]), np.float32)
        for rank in range(self._ranks.n_ranks):
            shard = self._shard_of(rank)
            begin, end = max(first, shard.first), min(stop, shard.stop)
            if begin < end:
                there = found[begin - first : end - first]
                if rank == self._ranks.rank and self._part is not None:
                    there[:] = self._part.W[begin - shard.first : end - shard.first]
                there[:] = self._ranks.sent(there, rank)
        return found

    def _shard_of(self, rank: int) -> Shard:
        return shard_of(rank, self._ranks.n_ranks, self._n_classes)

    def _biases(self, own: np.ndarray) -> np.ndarray:
        whole, shard = np.zeros(self._n_classes, np.float32), self._ranks.shard(self._n_classes)
        whole[shard.first : shard.stop] = own
        return self._ranks.total(whole)


def write_together(result: Any, ranks: Group, write: Callable[[Any], None]) -> None:
    """Let rank 0 write a fit, whose weights the others send; ``write`` gets it with the model of all classes.

    Raises
    ------
    InputError
        On all ranks, if it could not be written.
    """
    if ranks.n_ranks == 1:
        write(result)
        return
    rows = RowsOfRanks(result.model, ranks)
    if ranks.rank:
        rows.serve()
        return
    try:
        write(replace(result, model=rows.model()))
    except BaseException:
        with suppress(InputError):  # of a rank that has gone
            rows.end(False)
        raise
    rows.end(True)

"""What solvers on PyTorch's devices have in common; torch is imported when one is made, not before."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from xsoftmax.gpu.device import BYTES_PER_WEIGHT, OF_TORCH, SINGLE, check_room, require
from xsoftmax.gpu.ranks import ALONE
from xsoftmax.gpu.same_bits import same_bits
from xsoftmax.internal import registry
from xsoftmax.internal.hdf5_checks import copy_arrays
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.proposals import Proposal, Size, TrainingSet
from xsoftmax.solvers import initial_auxiliary, place_of
from xsoftmax.solvers._average import Average
from xsoftmax.solvers._encoder import behind
from xsoftmax.solvers._rules import named
from xsoftmax.starts import load_start

# Of the rows that are sent to a device together.
MOST_BYTES = 2**27
# Optimizers whose rule is there: keys of ``xsoftmax.gpu.rules.RULES``.
OPTIMIZERS = ("sgd", "adagrad", "u-max", "implicit")


class TorchSolver(ABC):
    """Weights, what the objective keeps and what a checkpoint holds, on a device."""

    devices = OF_TORCH
    streams = True
    converged = False
    # Of the weights there: tests compare steps in float64.
    dtype = "float32"

    @staticmethod
    def copies(method: Any) -> float:
        """See ``Solver``: on the processors those of the device, and the host's."""
        on_host = 1 + (method.average != "none" or method.precision != SINGLE)
        return on_host + (0 if place_of(method) == "cuda" else copies_there(method))

    def __init__(self, method: Any, objective: Any, proposal: Proposal, data: TrainingSet, pool: ThreadPool) -> None:
        self._place, self._same = place_of(method), method.deterministic
        require(method.name, self._place)
        n_samples, n_features = data.X.shape
        n_entries = (data.X.size if isinstance(data.X, np.ndarray) else data.X.nnz) / max(1, n_samples)
        self._ranks: Any = data.ranks or ALONE
        self._shard = self._ranks.shard(data.n_classes)
        size = Size(n_samples, self._shard.n, n_features, n_entries)
        seen = size if method.encoder is None else behind(method.encoder, size)
        one_copy = 4 * size.n_classes * (seen.n_features + 1)
        weights = {"weights and what the optimizer keeps": int(copies_there(method) * one_copy)}
        auxiliary = initial_auxiliary(method, data)
        needed = weights | self.room(method, size) | {"variables": auxiliary.nbytes}
        check_room(method.name, self._place, needed, self._ranks.n_here)
        self._begin(method, data, pool, auxiliary)

    @abstractmethod
    def room(self, method: Any, size: Size) -> dict[str, int]:
        """Estimate the bytes that a step takes on the device, by purpose, beside the weights."""

    def _begin(self, method: Any, data: TrainingSet, pool: ThreadPool, auxiliary: np.ndarray) -> None:
        """Put everything on the device."""
        import torch

        from xsoftmax.gpu.features import Features

        if self._place == "cpu":
            torch.set_num_threads(pool.n_threads)
        self._device, kind = torch.device(self._place), getattr(torch, self.dtype)
        self._features = Features(data.X, method.bias, self._device, kind)
        self._by_feature = self._features.sparse and not method.proposal.draws
        shape = (self._shard.n, self._features.width)
        self._part = self._part_of(data.n_classes)
        self._weights = self._allocated(method, shape[::-1] if self._by_feature else shape)
        if data.start is not None:
            begin = np.zeros(shape, np.float32)
            load_start(data.start, begin)
            self._weights.load(begin.T if self._by_feature else begin)
        self._average = Average(method, self._weights)
        self._auxiliary = torch.from_numpy(auxiliary).to(self._device)

    def _allocated(self, method: Any, shape: tuple[int, int]) -> Any:
        """Make the weights, in the precision of the rows."""
        return self._weights_of(method, shape, self.dtype)

    def _weights_of(self, method: Any, shape: tuple[int, int], precision: str) -> Any:
        from xsoftmax.gpu.precision import precision_of
        from xsoftmax.gpu.weights import Weights

        how = (method.optimizer, registry.name_of(method.optimizer))
        averages, stored = method.average != "none", precision_of(precision)
        found = Weights(*how, shape, averages, self._device, stored, method.deterministic)
        found.part = self._part
        return found

    def _part_of(self, n_classes: int) -> Any:
        """Say which classes are this process's; None: all are."""
        if self._ranks.n_ranks == 1:
            return None
        from xsoftmax.gpu.sharded import Part

        return Part(self._ranks, self._shard, n_classes)

    def class_axis(self, name: str) -> int | None:
        """Say along which axis an array of ``arrays`` has the classes of this process; None: it has no classes."""
        if name == "auxiliary" or name.endswith("period"):
            return None
        return int(self._by_feature)

    def _get_ready(self) -> None:
        """Let PyTorch load what it loads with the first operation, which takes seconds."""
        import torch

        with same_bits(self._same), torch.no_grad():
            unit = torch.eye(2, device=self._device)
            (unit @ unit).sum().item()

    @property
    def auxiliary(self) -> np.ndarray:
        """See ``Solver``: on the host."""
        return self._auxiliary.cpu().numpy()

    def weights(self) -> np.ndarray:
        """See ``Solver``."""
        found = self._average.of_weights()
        return found.T if self._by_feature else found

    def arrays(self) -> Mapping[str, np.ndarray]:
        """See ``Solver``."""
        return self._weights.arrays() | {"auxiliary": self.auxiliary}

    def restore(self, arrays: Mapping[str, Any]) -> None:
        """See ``Solver``."""
        found = {name: array.copy() for name, array in self.arrays().items()}
        copy_arrays(found, arrays)
        self._take_back(found)

    def _take_back(self, found: Mapping[str, np.ndarray]) -> None:
        """Put arrays that fit on the device."""
        import torch

        self._weights.restore(found)
        self._auxiliary.copy_(torch.from_numpy(found["auxiliary"]))


def copies_there(method: Any) -> float:
    """Count the float32 arrays of the weights' size on the device: weights, accumulators, totals of an average."""
    return BYTES_PER_WEIGHT[method.precision] / 4 + method.optimizer.copies - 1 + (method.average != "none")


def check_weights_fit(method: Any, n_classes: int, n_features: int) -> None:
    """Make sure that a method's device, if it is one of PyTorch's, has memory for the weights of a linear model.

    Raises
    ------
    InputError
        If not.
    """
    place = place_of(method)
    if place in OF_TORCH:
        weights = int(copies_there(method) * 4 * n_classes * (n_features + 1))
        check_room(method.name, place, {"weights and what the optimizer keeps": weights})


def rules_of_torch(method: Any) -> list[tuple[Any, str]]:
    """What no method can be made of that trains on PyTorch."""
    optimizer = named(method)[2]
    return [
        (
            registry.name_of(method.optimizer) not in OPTIMIZERS,
            f"{optimizer} has no rule on PyTorch; take optimizer {' or '.join(OPTIMIZERS)}, or leave device out",
        ),
    ]

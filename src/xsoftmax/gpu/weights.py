"""Weights on a device, what the optimizer keeps beside them, and the totals of their average."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from xsoftmax.gpu.precision import At, ClassWeights, Precision
from xsoftmax.gpu.rules import RULES, stepped

_OF_BIASES = "biases: "


class Weights:
    """An array of weights that a rule moves, entry by entry.

    Parameters
    ----------
    optimizer : NamedTuple
    rule : str
        Name of the optimizer, a key of ``xsoftmax.gpu.rules.RULES``.
    shape : tuple of int
    averages : bool
        Whether the average over steps is kept, too.
    device : torch.device
    precision : Precision
    ordered : bool
        Whether the same steps give the same bits each time.

    Attributes
    ----------
    rows : ClassWeights
    W : Tensor
        Values of the rows.
    period : ndarray of shape (2,), int64
        Steps of the fit before the average's period, and until now: see ``xsoftmax.solvers._average``.
    part : sharded.Part or None
        Which classes they are of, where other processes have others; None: of all.
    """

    part: Any = None

    def __init__(
        self,
        optimizer: Any,
        rule: str,
        shape: tuple[int, int],
        averages: bool,
        device: torch.device,
        precision: Precision,
        ordered: bool = True,
    ) -> None:
        self._ordered = ordered
        self._rule = RULES[rule]
        self.rows = ClassWeights.allocate(*shape, precision, device)
        self.W = self.rows.values
        initial, kind = getattr(optimizer, "initial_accumulator", 0.0), precision.sums
        self._beside = torch.full_like(self.W, initial, dtype=kind) if optimizer.accumulates else None
        self._totals = torch.zeros_like(self.W, dtype=kind) if averages else None
        self.period = np.zeros(2, np.int64)

    def move(self, at: At, g: Tensor, rate: float | Tensor, number: int | Tensor, flat: bool = False) -> None:
        """Move some entries along their gradient, each of which is named once.

        Parameters
        ----------
        at : Tensor, slice, or tuple of both
            Which: rows, a block, or, if ``flat``, places in the array as it lies in memory.
        g : Tensor
            Their gradient, which may be overwritten.
        rate : float, or Tensor without dimensions
            Learning rate of the step.
        number : int, or Tensor without dimensions
            Steps of the fit before; as a Tensor, those of the average's period.
        """
        rows = self.rows.seen_as(_flat) if flat else self.rows
        beside, totals = (_flat(each) if flat and each is not None else each for each in (self._beside, self._totals))
        before = rows.exact(at)
        kept = None if beside is None else beside[at]
        after = stepped(before, self._rule(g, kept), rate)
        self._store(after, before, at, number, rows, totals)
        if beside is not None and kept is not None and not isinstance(at, slice):  # of a slice it is a view
            beside[at] = kept

    @property
    def adds_up(self) -> bool:
        """Whether moves may name an entry twice: no order is asked for, and nothing is kept beside the weights."""
        alone = self._beside is None and self._totals is None and self.rows.precision.rounding == "nearest"
        return alone and not self._ordered

    def add(self, at: Tensor, terms: Tensor, rate: float, flat: bool = False) -> None:
        """Move along terms of a gradient, (n,) or (n, n_columns), which may name an entry twice: if it ``adds_up``.

        On a card they are added in whatever order they arrive.
        """
        (_flat(self.W) if flat else self.W).index_add_(0, at, terms, alpha=-rate)

    @property
    def n_bytes(self) -> int:
        """Bytes that everything takes."""
        return sum(each.nbytes for each in self._tensors().values())

    def shrink(self, at: At, left: float | Tensor, number: int | Tensor) -> None:
        """Leave a share of some weights, as a penalty or decay does in a step."""
        before = self.rows.exact(at)
        self._store(left * before, before, at, number, self.rows, self._totals)

    def start_again(self, n_steps: int) -> None:
        """Begin an average after so many steps of the fit."""
        if self._totals is not None:
            self._totals.zero_()
        self.period[:] = n_steps

    def weights(self) -> np.ndarray:
        """Weights on the host, float32: a view, where they are there in that precision."""
        return np.asarray(self._on_host().numpy(), np.float32)

    def average(self) -> np.ndarray:
        """Average over the period, float32; the weights, if it has no step."""
        n = int(self.period[1] - self.period[0])
        if self._totals is None or not n:
            return self.weights().copy()
        return np.asarray((self._on_host() - self._totals.cpu() / n).numpy(), np.float32)

    def load(self, W: np.ndarray) -> None:
        """Begin at these weights."""
        self.rows.store(torch.tensor(W, dtype=self.rows.precision.sums, device=self.W.device), slice(None))

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything that changes, on the host: copies, but for ``period``."""
        there = {name: _bits(each).to("cpu", copy=True).numpy() for name, each in self._tensors().items()}
        return there | {"period": self.period}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take what ``arrays`` gave."""
        for name, each in self._tensors().items():
            _bits(each).copy_(torch.from_numpy(arrays[name]))
        self.period[:] = arrays["period"]

    def _tensors(self) -> dict[str, Tensor]:
        found = {"W": self.W, "compensation": self.rows.compensation}
        found |= {"accumulators": self._beside, "totals": self._totals}
        return {name: each for name, each in found.items() if each is not None}

    def _store(
        self,
        after: Tensor,
        before: Tensor,
        at: At,
        number: int | Tensor,
        rows: ClassWeights,
        totals: Tensor | None,
    ) -> None:
        """Put some entries, and add to totals by how much they have changed once they are rounded."""
        if totals is None:
            rows.store(after, at)
            return
        before = before.clone()  # it may be a view
        rows.store(after, at)
        totals[at] += self._lacking(number) * (rows.exact(at) - before)

    def _on_host(self) -> Tensor:
        return self.rows.seen_as(Tensor.cpu).exact()

    def _lacking(self, number: int | Tensor) -> int | Tensor:
        """Count the states, of those that are averaged, that lack a move of this step."""
        return number if isinstance(number, Tensor) else number - int(self.period[0])


class WeightsAndBiases:
    """Weights of samples in some precision, and biases in that of sums: to others, one array with biases last.

    Attributes
    ----------
    of_samples : Weights of shape (n_classes, n_features)
    biases : Weights of shape (n_classes, 1)
    period : ndarray of shape (2,), int64
        Of both: see ``Weights``.
    """

    def __init__(self, of_samples: Weights, biases: Weights) -> None:
        self.of_samples, self.biases, self.period = of_samples, biases, of_samples.period
        biases.period = self.period

    def start_again(self, n_steps: int) -> None:
        """See ``Weights``."""
        self.of_samples.start_again(n_steps)
        self.biases.start_again(n_steps)

    def weights(self) -> np.ndarray:
        """Weights on the host, float32 of shape (n_classes, n_features + 1)."""
        return np.hstack([self.of_samples.weights(), self.biases.weights()])

    def average(self) -> np.ndarray:
        """As ``weights``, of the averages over the period."""
        return np.hstack([self.of_samples.average(), self.biases.average()])

    def load(self, W: np.ndarray) -> None:
        """Begin at these weights."""
        self.of_samples.load(W[:, :-1])
        self.biases.load(W[:, -1:])

    def arrays(self) -> dict[str, np.ndarray]:
        """See ``Weights``."""
        of_biases = {_OF_BIASES + name: each for name, each in self.biases.arrays().items()}
        return self.of_samples.arrays() | of_biases

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """See ``Weights``."""
        self.of_samples.restore(arrays)
        self.biases.restore({name: arrays[_OF_BIASES + name] for name in self.biases.arrays()})


def _bits(array: Tensor) -> Tensor:
    """See bfloat16, which neither NumPy nor HDF5 has, as integers."""
    return array.view(torch.int16) if array.dtype == torch.bfloat16 else array


def _flat(array: Tensor) -> Tensor:
    return array.view(-1)

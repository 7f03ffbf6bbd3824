"""Weights on a device, what the optimizer keeps beside them, and the totals of their average.

An optimizer's rule here is that of its compiled ``updated``, for many entries at once.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

Rule = Callable[[Any, float, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
At = Tensor | slice | tuple[slice | Tensor, slice]


def _along_gradient(optimizer: Any, rate: float, w: Tensor, a: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
    return torch.add(w, g, alpha=-rate), a


def _adagrad(optimizer: Any, rate: float, w: Tensor, a: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
    a = torch.addcmul(a, g, g)
    return torch.addcdiv(w, g, torch.sqrt(a), value=-rate), a


# By the optimizer's name: (w, a) after a step along the gradient.
RULES: dict[str, Rule] = {"sgd": _along_gradient, "u-max": _along_gradient, "adagrad": _adagrad}


class Weights:
    """An array of weights that a rule moves, entry by entry.

    Parameters
    ----------
    optimizer : NamedTuple
    rule : str
        Name of the optimizer, a key of ``RULES``.
    shape : tuple of int
    averages : bool
        Whether the average over steps is kept, too.
    device : torch.device
    dtype : torch.dtype

    Attributes
    ----------
    W : Tensor
    period : ndarray of shape (2,), int64
        Steps of the fit before the average's period, and until now: see ``xsoftmax.solvers._average``.
    """

    def __init__(
        self,
        optimizer: Any,
        rule: str,
        shape: tuple[int, int],
        averages: bool,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        self._optimizer, self._rule = optimizer, RULES[rule]
        self.W = torch.zeros(shape, dtype=dtype, device=device)
        initial = getattr(optimizer, "initial_accumulator", 0.0)
        self._beside = torch.full_like(self.W, initial) if optimizer.accumulates else None
        self._totals = torch.zeros_like(self.W) if averages else None
        self.period = np.zeros(2, np.int64)

    def move(self, at: At, g: Tensor, rate: float, number: int, flat: bool = False) -> None:
        """Move some entries along their gradient, each of which is named once.

        Parameters
        ----------
        at : Tensor, slice, or tuple of both
            Which: rows, a block, or, if ``flat``, places in the array as it lies in memory.
        g : Tensor
            Their gradient.
        rate : float
            Learning rate of the step.
        number : int
            Steps of the fit before.
        """
        W = self.W.view(-1) if flat else self.W
        beside, totals = (self._seen(each, flat) for each in (self._beside, self._totals))
        before = W[at]
        after, a = self._rule(self._optimizer, rate, before, before if beside is None else beside[at], g)
        if totals is not None:
            totals[at] += self._lacking(number) * (after - before)
        W[at] = after
        if beside is not None:
            beside[at] = a

    def shrink(self, at: At, left: float | Tensor, number: int) -> None:
        """Leave a share of some weights, as a penalty or decay does in a step."""
        before = self.W[at]
        if self._totals is not None:
            self._totals[at] += self._lacking(number) * (left - 1) * before
        self.W[at] = left * before

    def start_again(self, n_steps: int) -> None:
        """Begin an average after so many steps of the fit."""
        if self._totals is not None:
            self._totals.zero_()
        self.period[:] = n_steps

    def weights(self) -> np.ndarray:
        """Weights on the host, float32: a view, where they are there in that precision."""
        return np.asarray(self.W.cpu().numpy(), np.float32)

    def average(self) -> np.ndarray:
        """Average over the period, float32; the weights, if it has no step."""
        n = int(self.period[1] - self.period[0])
        if self._totals is None or not n:
            return self.weights().copy()
        return np.asarray((self.W - self._totals / n).cpu().numpy(), np.float32)

    def load(self, W: np.ndarray) -> None:
        """Begin at these weights."""
        self.W.copy_(torch.from_numpy(W))

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything that changes, on the host: copies, but for ``period``."""
        found = {"W": self.W, "accumulators": self._beside, "totals": self._totals}
        there = {name: each.to("cpu", copy=True).numpy() for name, each in found.items() if each is not None}
        return there | {"period": self.period}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take what ``arrays`` gave."""
        for name, each in (("W", self.W), ("accumulators", self._beside), ("totals", self._totals)):
            if each is not None:
                each.copy_(torch.from_numpy(arrays[name]))
        self.period[:] = arrays["period"]

    def _lacking(self, number: int) -> int:
        """Count the states, of those that are averaged, that lack a move of this step."""
        return number - int(self.period[0])

    @staticmethod
    def _seen(array: Tensor | None, flat: bool) -> Tensor | None:
        return array.view(-1) if flat and array is not None else array

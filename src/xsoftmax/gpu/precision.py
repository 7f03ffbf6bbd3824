"""Rows of weights on a device, in one of several precisions: what is stored, what is multiplied, how a sum is kept.

A weight of bfloat16 has 8 significant bits, so a change of less than 1/512 of the weight is lost when the sum is
rounded to nearest. Two ways keep it. Stochastic rounding rounds up with the probability that makes the rounded sum's
mean the sum: Gupta, Agrawal, Gopalakrishnan and Narayanan 2015, "Deep learning with limited numerical precision",
equation 3. Compensation keeps what rounding has dropped in a second bfloat16, to be added next time: Kahan 1965,
"Further remarks on reducing truncation errors". It needs as many bytes as float32, but products read half of them.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from xsoftmax.internal.errors import InputError, suggestion

# Which entries: rows, a block, or places.
At: TypeAlias = Tensor | slice | tuple[slice | Tensor, slice]
_LOW_BITS = 16  # that float32 has, and bfloat16 has not


class Precision(NamedTuple):
    """The dtype of what is stored, the dtype of factors, and how a sum becomes what is stored.

    ``rounding`` is ``nearest``, ``stochastic`` or ``compensated``. ``tf32`` lets a card multiply float32 factors with
    10 bits of their fractions. Sums of products are float32 in each precision, and float64 in float64.
    """

    stored: torch.dtype
    factors: torch.dtype
    rounding: str = "nearest"
    tf32: bool = False

    @property
    def sums(self) -> torch.dtype:
        """The dtype of scores and gradients."""
        return torch.float64 if self.stored == torch.float64 else torch.float32

    @property
    def bytes_per_weight(self) -> int:
        """Bytes that a weight takes, what compensates it included."""
        return self.stored.itemsize * (2 if self.rounding == "compensated" else 1)


PRECISIONS = {
    "float64": Precision(torch.float64, torch.float64),
    "float32": Precision(torch.float32, torch.float32),
    "tf32": Precision(torch.float32, torch.float32, tf32=True),
    "bfloat16": Precision(torch.float32, torch.bfloat16),
    "bfloat16-stochastic": Precision(torch.bfloat16, torch.bfloat16, "stochastic"),
    "bfloat16-compensated": Precision(torch.bfloat16, torch.bfloat16, "compensated"),
}


def precision_of(name: str) -> Precision:
    """Give a precision by name.

    Raises
    ------
    InputError
        If there is no such precision; the message lists those there are.
    """
    if name not in PRECISIONS:
        raise InputError(f"unknown precision {name!r}; {suggestion(name, PRECISIONS)}")
    return PRECISIONS[name]


def rounded(values: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Round float32 to one of the two bfloat16 beside it, such that the mean over many draws is the value.

    Parameters
    ----------
    values : Tensor of any shape, float32
        Infinities stay, and so does NaN.
    generator : torch.Generator, optional
        On the device of the values.

    Returns
    -------
    Tensor of the same shape, bfloat16
        The value farther from zero with a probability of the dropped bits / 2^16, else the value nearer to zero.
    """
    bits = values.contiguous().view(torch.int32)
    noise = torch.randint(1 << _LOW_BITS, bits.shape, generator=generator, device=bits.device, dtype=torch.int32)
    bits = noise.add_(bits).bitwise_and_(-1 << _LOW_BITS)
    finite = bits.view(torch.float32)
    return torch.where(torch.isfinite(values), finite, values).to(torch.bfloat16)


def multiply(left: Tensor, right: Tensor, precision: Precision) -> Tensor:
    """Multiply two matrices whose entries are rounded to the factors' dtype, with sums of float32 (or float64).

    PyTorch's CPU device has no bfloat16 product that returns its sums unrounded: there, factors are rounded to
    bfloat16 and multiplied as float32, which gives the same products.
    """
    left, right = left.to(precision.factors), right.to(precision.factors)
    if precision.factors == torch.bfloat16:
        if left.is_cuda:
            return torch.mm(left, right, out_dtype=torch.float32)
        left, right = left.float(), right.float()
    with _tf32(precision.tf32):
        return torch.mm(left, right)


@contextmanager
def _tf32(allowed: bool) -> Iterator[None]:
    """Let float32 products be of tf32, or not, and put back what was set."""
    matmul = torch.backends.cuda.matmul
    before = matmul.allow_tf32
    matmul.allow_tf32 = allowed
    try:
        yield
    finally:
        matmul.allow_tf32 = before


@dataclass
class ClassWeights:
    """Rows of weights, one per class.

    Attributes
    ----------
    values : Tensor of shape (n_rows, n_features), ``precision.stored``
    precision : Precision
    compensation : Tensor of shape (n_rows, n_features), bfloat16, or None
        What rounding has dropped of each value, where the precision keeps it.
    generator : torch.Generator or None
        Of stochastic rounding.
    """

    values: Tensor
    precision: Precision
    compensation: Tensor | None = None
    generator: torch.Generator | None = None

    @classmethod
    def allocate(
        cls, n_rows: int, n_features: int, precision: Precision, device: str | torch.device = "cpu", seed: int = 0
    ) -> "ClassWeights":
        """Make rows of zeros."""
        shape = (n_rows, n_features)
        values = torch.zeros(shape, dtype=precision.stored, device=device)
        compensated, stochastic = precision.rounding == "compensated", precision.rounding == "stochastic"
        return cls(
            values,
            precision,
            torch.zeros_like(values) if compensated else None,
            torch.Generator(device).manual_seed(seed) if stochastic else None,
        )

    @property
    def n_bytes(self) -> int:
        """Bytes that the rows take."""
        return self.values.numel() * self.precision.bytes_per_weight

    def exact(self, at: At = slice(None)) -> Tensor:
        """Give entries as what has been added up so far, with what rounding has dropped; perhaps a view."""
        values = self.values[at].to(self.precision.sums)
        return values if self.compensation is None else values + self.compensation[at].to(self.precision.sums)

    def product(self, X: Tensor, rows: slice | Tensor) -> Tensor:
        """Score samples: (n_samples, n_features) times the rows' transpose, of shape (n_samples, n)."""
        return multiply(X, self.values[rows].T, self.precision)

    def add(self, change: Tensor, rows: slice | Tensor) -> None:
        """Add to rows, none of which may be named twice, a change of shape (n, n_features)."""
        if self.precision.rounding == "nearest":
            self.values[rows] += change.to(self.precision.stored)
        else:
            self.store(self.exact(rows).add_(change), rows)

    def store(self, new: Tensor, at: At) -> None:
        """Put sums in the place of entries, none of which may be named twice; the sums may be overwritten."""
        if self.precision.rounding == "stochastic":
            self.values[at] = rounded(new, self.generator)
            return
        stored = new.to(self.precision.stored)
        self.values[at] = stored
        if self.compensation is not None:
            self.compensation[at] = new.sub_(stored).to(self.precision.stored)

    def begin_step(self, seed: int, number: int) -> None:
        """Let stochastic rounding depend on the fit's seed and the number of steps before, and on no more."""
        if self.generator is not None:  # that of a processor takes 32 bits
            self.generator.manual_seed(int(np.random.SeedSequence((seed, number)).generate_state(1)[0]))

    def seen_as(self, how: Callable[[Tensor], Tensor]) -> "ClassWeights":
        """Give the same weights elsewhere, or in another shape."""
        compensation = None if self.compensation is None else how(self.compensation)
        return ClassWeights(how(self.values), self.precision, compensation, self.generator)

"""Means over seeds with their errors, and differences of two of them."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev

import numpy as np
from scipy.stats import t

LEVEL = 0.95  # of intervals


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds and its standard error; NaN where there is no value, or one only.

    ``n`` is the number of values, ``n_diverged`` that of seeds without one.
    """

    mean: float
    error: float
    n: int
    n_diverged: int = 0

    @classmethod
    def of(cls, values: Iterable[float | None]) -> "Estimate":
        """Take the mean of those values that are finite."""
        every = list(values)
        finite = [value for value in every if value is not None and math.isfinite(value)]
        error = stdev(finite) / math.sqrt(len(finite)) if len(finite) > 1 else math.nan
        return cls(fmean(finite) if finite else math.nan, error, len(finite), len(every) - len(finite))

    @classmethod
    def exact(cls, value: float) -> "Estimate":
        """Give a value that another run would not change: of an optimum, or of arithmetic."""
        return cls(value, 0.0, 1)

    def times(self, factor: float) -> "Estimate":
        """Count in other units, of which one of these is ``factor``."""
        return replace(self, mean=factor * self.mean, error=factor * self.error)

    @property
    def margin(self) -> float:
        """Two standard errors; 0 where they are not known."""
        return 2 * self.error if math.isfinite(self.error) else 0.0

    @property
    def half_width(self) -> float:
        """Half of the 95 % interval, by Student's t; NaN where the error is not known."""
        if self.error == 0:
            return 0.0
        return float(t.ppf((1 + LEVEL) / 2, self.n - 1) * self.error) if self.n > 1 else math.nan


@dataclass(frozen=True)
class Difference:
    """A difference of two means, and half of its 95 % interval; NaN where that is not known."""

    mean: float
    half_width: float

    @property
    def is_above(self) -> bool | None:
        """Tell whether the first is above the second; None if the interval has 0 inside, or is not known."""
        return self.mean > 0 if abs(self.mean) > self.half_width else None


def difference(first: Estimate, second: Estimate) -> Difference:
    """Subtract the means of independent seeds; the interval is as wide as both are together."""
    return Difference(first.mean - second.mean, math.hypot(first.half_width, second.half_width))


def above(better: Estimate, worse: Estimate) -> bool | None:
    """Tell whether one mean is above another; None if the 95 % interval of the difference has 0 inside.

    An error that is not known, as of one fit, gives no order.
    """
    return difference(better, worse).is_above


def quotient(first: Iterable[float | None], second: Iterable[float | None]) -> Estimate:
    """Estimate how many times as much the first values are as the second, seed by seed."""
    return Estimate.of(None if a is None or not b else a / b for a, b in zip(first, second, strict=False))


def paired(
    first: Sequence[np.ndarray], second: Sequence[np.ndarray], optima: Sequence[bool] = (False, False)
) -> Difference:
    """Subtract two methods' values of the same rows.

    Parameters
    ----------
    first, second : sequence of ndarray of shape (n_rows,)
        Of each seed.
    optima : sequence of bool
        Of each method, whether it was trained to its optimum, which no seed changes. The error of one seed is not
        known otherwise, and so is the interval.

    Returns
    -------
    Difference
        Its interval is that of other rows, by a paired test of the seeds' means, and of other seeds together.
    """
    rows = np.mean(first, axis=0) - np.mean(second, axis=0)
    of_seeds = [
        0.0 if optimum else Estimate.of(float(row.mean()) for row in values).half_width
        for values, optimum in zip((first, second), optima, strict=True)
    ]
    return Difference(float(rows.mean()), math.hypot(Estimate.of(rows.tolist()).half_width, *of_seeds))

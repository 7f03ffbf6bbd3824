"""Rates of Fagan and Iyengar 2018 on all rows of a data set: what several figures and claims read of them."""

import math
from collections.abc import Collection, Iterable, Mapping

from xsoftmax.lab.papers._fagan2018_losses import best_of, losses_of_seeds
from xsoftmax.lab.papers._fagan2018_names import DATASETS, IMPLICIT, METHODS, STAND_IN, at
from xsoftmax.lab.report.tables import number
from xsoftmax.lab.reproduction.estimates import Estimate
from xsoftmax.lab.reproduction.figures import Line
from xsoftmax.lab.reproduction.results import Results

RATES = [10.0**exponent for exponent in range(-5, 5)]
COLORS = (
    *("#9c9c9c", "#30123b", "#4662d7", "#36a9e1", "#13b58d", "#72c93b", "#e0a010", "#f66b19", "#a01101"),
    "#5a0000",
)
UNITS = (
    "Rates are in the units of the authors' program, in which the paper prints its own. For vanilla SGD, U-max and "
    "Implicit SGD the program leaves out eq. 6's factor N, the number of rows, so that its rates equal N times the η "
    "of eq. 7. For OVE, NCE and IS it sums the gradients of 100 rows; our rates, which are of their mean, are 100 "
    "times as large as those shown."
)


def shown(rate: float) -> str:
    """Write a rate."""
    return f"{rate:,g}"


def tried(results: Results, method: str, dataset: str = STAND_IN) -> dict[float, Estimate]:
    """Give the final log-losses of a method on all rows of a data set, by its rate."""
    losses = {rate: losses_of_seeds(results, dataset, at(method, rate)) for rate in RATES}
    return {rate: Estimate.of(each) for rate, each in losses.items() if each}


def with_every_rate(results: Results, methods: Collection[str], rates: Iterable[float]) -> list[str]:
    """Name the data sets on all of whose rows these methods have each of these rates."""
    rates = list(rates)
    return [d for d in DATASETS if all(results.has(d, at(method, rate)) for method in methods for rate in rates)]


def curve(results: Results, method: str, rate: float) -> list[Line]:
    """Draw the mean of those seeds that did not diverge; nothing if there is none."""
    mean = results.curve(STAND_IN, at(method, rate))
    if mean.empty:
        return []
    style = {"color": COLORS[RATES.index(rate)], "linestyle": "-"}
    losses = -mean["train_log_likelihood"].to_numpy(dtype=float)
    return [Line(shown(rate), mean["epoch"].to_numpy(dtype=float), losses, method="rate", style=style)]


def of_rate(results: Results, method: str, rate: float, dataset: str = STAND_IN) -> list[float]:
    """Give the final log-loss of each seed."""
    return losses_of_seeds(results, dataset, at(method, rate))


def of_seeds(
    results: Results, method: str, rates: Iterable[float], dataset: str = STAND_IN
) -> list[dict[float, float]]:
    """Give for each seed the final log-losses by rate, infinite where it diverged."""
    losses = {rate: each for rate in rates if (each := of_rate(results, method, rate, dataset))}
    n_seeds = min(map(len, losses.values()), default=0)
    return [{rate: each[seed] for rate, each in losses.items()} for seed in range(n_seeds)]


def best_exponent(results: Results, method: str, rates: Iterable[float], dataset: str = STAND_IN) -> Estimate:
    """Give the power of ten of the best rate, over seeds; one all of whose rates diverged has none."""
    return Estimate.of(
        math.log10(min(losses, key=lambda rate: losses[rate])) if math.isfinite(min(losses.values())) else None
        for losses in of_seeds(results, method, rates, dataset)
    )


def at_best(results: Results, dataset: str, rates: Iterable[float], implicit: str = IMPLICIT) -> dict[str, Estimate]:
    """Give each method's log-loss on all rows at the best of some rates, at any where all diverged."""
    rates, best = set(rates), {}
    for method in METHODS:
        name = implicit if method == IMPLICIT else method
        losses = {rate: each for rate, each in tried(results, name, dataset).items() if rate in rates}
        if losses:
            best[method] = losses[best_of(losses) if any(each.n for each in losses.values()) else min(losses)]
    return best


def powers(exponents: Mapping[str, Estimate]) -> str:
    """Write powers of ten by method."""
    return "; ".join(f"{METHODS[method]} {shown(10**each.mean)}" for method, each in exponents.items())


def cell(each: Estimate | None) -> str:
    """Write a log-loss, and how many seeds diverged."""
    if each is None:
        return "–"
    if not each.n:
        return "diverged"
    return number(each.mean) + (f" ({each.n_diverged} diverged)" if each.n_diverged else "")

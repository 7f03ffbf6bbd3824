"""Fagan and Iyengar 2018: training log-losses over seeds, and what is said of them."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from xsoftmax.lab.papers._fagan2018_names import ALL_METHODS, DATASETS, HALF_WAY, U_MAX, VANILLA
from xsoftmax.lab.reproduction.estimates import Estimate, above
from xsoftmax.lab.reproduction.results import Results, value
from xsoftmax.lab.reproduction.rules import TOLERANCE, Finding, agrees, judge_level, together
from xsoftmax.training.folders import Fit

T = TypeVar("T")
ONCE, TWICE = "train.log_likelihood", "train.log_likelihood_normalised_twice"


def losses_of_seeds(results: Results, dataset: str, method: str, measure: str = ONCE) -> list[float]:
    """Give the log-loss of each seed; infinite where it diverged, none where nothing was trained."""
    found = [value(fit, measure) for fit in results.fits if (fit.method, fit.dataset) == (method, dataset)]
    return [math.inf if each is None else -each for each in found]


def loss(results: Results, dataset: str, method: str, measure: str = ONCE) -> Estimate:
    """Give the mean log-loss of those seeds that did not diverge."""
    return Estimate.of(losses_of_seeds(results, dataset, method, measure))


def ratio(upper: Estimate, lower_one: Estimate) -> Estimate:
    """Divide two means; the error is that of independent ones, to first order."""
    mean = upper.mean / lower_one.mean
    relative = math.hypot(upper.error / upper.mean, lower_one.error / lower_one.mean)
    return Estimate(mean, abs(mean) * relative, min(upper.n, lower_one.n), upper.n_diverged + lower_one.n_diverged)


def all_agree(paper: float, estimate: Estimate, decimals: int) -> bool:
    """Tell whether the paper's number is ours, of which no seed may have diverged."""
    return not estimate.n_diverged and agrees(paper, estimate, decimals=decimals)


def lower(better: Estimate, worse: Estimate) -> bool | None:
    """Tell whether the first loss is the lower one; where all seeds of one diverged, two at least, the other's is."""
    if better.n and worse.n:
        return above(worse, better)
    if better.n == worse.n or max(better.n_diverged, worse.n_diverged) < 2:
        return None
    return better.n > 0


def lowest(losses: Mapping[str, Estimate], method: str) -> bool | None:
    """Tell whether a method's loss is below all others'; None if that is too close to tell of one of them."""
    return together(lower(losses[method], other) for name, other in losses.items() if name != method)


def counts(hits: Iterable[Sequence[bool]]) -> Estimate:
    """Count for each seed how many are true, and take the mean over seeds."""
    return Estimate.of(float(sum(of_seed)) for of_seed in zip(*hits, strict=False))


def best_of(losses: Mapping[T, Estimate]) -> T:
    """Tell which method, or which rate, has the lowest mean loss."""
    return min((name for name in losses if losses[name].n), key=lambda name: losses[name].mean)


def judge_mean_factor(factors: Iterable[Sequence[float]], paper: float) -> Finding:
    """Judge the mean of factors, each given for every seed, by the paper's mean factor."""
    means = Estimate.of(sum(of_seed) / len(of_seed) for of_seed in zip(*factors, strict=False))
    near = 1 + HALF_WAY * (paper - 1)
    return judge_level(means, at_least=(1 - TOLERANCE) * paper, near=near, of="the mean factor", digits=2)


def told(orders: Mapping[str, bool | None]) -> str:
    """Write orders by what they are of."""
    words = {True: "yes", False: "no", None: "too close"}
    return "; ".join(f"{name} {words[order]}" for name, order in orders.items())


def named(dataset: str) -> str:
    """Give the paper's name of a data set."""
    return DATASETS[dataset]


def same_fits(where: str) -> str:
    """Say why U-max is vanilla SGD where both end with the same log-loss."""
    return (
        f"U-max and vanilla SGD end with the same log-loss, to the last digit, {where}. Rows, draws and rate are the "
        "same, and u begins at log K. The paper's U-max modifies vanilla SGD in two ways: a guard raises u where it "
        "is more than 1 below a bound, and W is projected onto a ball and u to an interval. Without a penalty both "
        "are infinite, and what is left of them, u ≥ 0, our vanilla SGD has, too. So the guard alone parts the "
        "two, and where they end alike it changes nothing: U-max is vanilla SGD there."
    )


def same_losses(results: Results, dataset: str) -> bool:
    """Tell whether U-max and vanilla SGD, at their searched rates, end alike to the last digit."""
    mine = losses_of_seeds(results, dataset, U_MAX)
    return bool(mine) and any(map(math.isfinite, mine)) and mine == losses_of_seeds(results, dataset, VANILLA)


def start(results: Results, dataset: str) -> float:
    """Give the log-loss of W = 0, log K."""
    method = next(fit.method for fit in results.fits if fit.dataset == dataset)
    return math.log(results.of(dataset, method)[0].status["data"]["n_classes"])


def least_seconds(fit: Fit) -> float:
    """Give the seconds of a row in the fastest part of a fit, from one look to the next."""
    steps, seconds = (fit.history[key].diff().iloc[1:] for key in ("step", "seconds"))
    each = seconds / steps.where(steps > 0)
    return float(each.min()) if each.notna().any() else math.nan


def joined(parts: Iterable[str]) -> str:
    """Write a list: "a, b and c"."""
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


def called(method: str) -> str:
    """Give the paper's name of a method."""
    return ALL_METHODS[method]

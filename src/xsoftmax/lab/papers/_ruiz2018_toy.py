"""Ruiz et al. 2018, section 4.1: probabilities of ten thousand classes without features."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from scipy.special import softmax

from xsoftmax.lab.papers._ruiz2018_names import AR, METHODS, OVE, iterations, ratio
from xsoftmax.lab.report.tables import number
from xsoftmax.lab.reproduction.estimates import Difference, Estimate, paired
from xsoftmax.lab.reproduction.page import Page
from xsoftmax.lab.reproduction.results import Results, middle
from xsoftmax.lab.reproduction.rules import agrees, judge_level, judge_numbers, not_tested

TOY = "zipf-300k"
# The levels of claims that the paper makes in words.
# "By orders of magnitude" is by two at least; one would be its shape.
ORDERS_OF_MAGNITUDE, ONE_ORDER = 100, 10
# Errors are "similar" in the paper at a ratio of 1.22.
SIMILAR, ROUGHLY_SIMILAR = 1.25, 2
# Estimates are "accurate" if the mean absolute error is at most this share of the mean probability: 2.7 % there.
ACCURATE, ROUGHLY_ACCURATE = 0.05, 0.1
# Of the paper's step sizes: times 0.9 every 2,000 iterations.
DECAY, EVERY = 0.9, 2000
SHORTER = (
    "not the same here: fewer iterations, what the t of local steps counts, where η and biases begin, another "
    "drawing of the rows, and perhaps what the distance is from"
)
# Classes that rows are drawn from; not all occur.
DRAWN_FROM = 10_000


def toy(results: Results, page: Page, paper: Mapping[str, Any], paper_iterations: int) -> None:
    """Compare bounds and errors with the paper's."""
    if not results.has(TOY, AR):
        return
    with results.data(TOY) as data:
        counts = data.class_counts
        n_rows, n_classes = data.n_samples("train"), data.n_classes
    share = counts / counts.sum()
    done = iterations(results, TOY)
    page.section(
        "Section 4.1: ten thousand probabilities",
        f"{n_rows:,} draws of {n_classes:,} classes that occur (9,035 in the paper); biases are all there is to "
        "learn. Minibatches of 500 rows and 100 drawn classes, as in the paper; seeds differ in training only. The "
        "bound is the mean over 5,000 rows, times the number of rows. The error is the mean over classes of the "
        "distance between the model's probability and the class's share of the rows, which maximises the likelihood: "
        "the paper does not say what from, and the probabilities that rows are drawn with can hardly be meant, as "
        f"even these shares are {off_by_chance(n_rows, DRAWN_FROM):.1e} off them, more than the paper's errors.",
        f"The fits have {done:,} iterations of the paper's {paper_iterations:,}. The factors ρ₀ t^−1/2 of the "
        "iterations that are left out, before the division by 1 + √s, add up to "
        f"{left_out(done, paper_iterations):.1%} of all; as s and gradients differ from class to class, errors may "
        "change by more than that. How much tighter, how similar and how accurate is enough are levels of ours. Of "
        "minutes, see Table 2: no order follows from ours.",
    )
    distances = {
        method: [np.abs(_probabilities(model) - share) for model in results.models(TOY, method)] for method in paper
    }
    bounds = {method: results.bound(TOY, method).times(n_rows) for method in paper}
    _toy_table(results, page, paper, bounds, distances)
    claim_bounds(page, paper, bounds)
    claim_errors(page, paper, distances)
    claim_accurate(page, distances[AR])
    _claim_times(page, paper)


def off_by_chance(n_rows: int, n_classes: int) -> float:
    """Return the mean distance of shares of rows from the probabilities, as u^2, that they are drawn with.

    That of one class is normal with variance p / n_rows, and the mean of sqrt(p) is sqrt(3) / 2 over sqrt(n_classes).
    """
    return math.sqrt(2 / math.pi) * math.sqrt(3 / n_classes) / 2 / math.sqrt(n_rows)


def left_out(done: int, whole: int) -> float:
    """Return the share of the paper's step sizes, gradients apart, that is after the first ``done`` iterations."""
    t = np.arange(1, whole + 1)
    sizes = t**-0.5 * DECAY ** (t // EVERY)
    return float(sizes[done:].sum() / sizes.sum())


def _probabilities(model: Any) -> np.ndarray:
    return softmax(model.b.astype(np.float64))


def _in_powers(value: float) -> str:
    digits, power = f"{value:.2e}".replace("-", "−").split("e")
    return f"{digits}×10^{int(power.replace('−', '-'))}"


def _scientific(mean: float, error: float) -> str:
    return f"{mean:.2e}" + (f" ± {error:.0e}" if math.isfinite(error) else "")


def _mean_error(distances: Iterable[np.ndarray]) -> Estimate:
    return Estimate.of(float(each.mean()) for each in distances)


def _toy_table(
    results: Results,
    page: Page,
    paper: Mapping[str, Any],
    bounds: Mapping[str, Estimate],
    distances: Mapping[str, list[np.ndarray]],
) -> None:
    rows = []
    for method, numbers in paper.items():
        error = _mean_error(distances[method])
        minutes = middle(results.values(TOY, method, "fit.seconds_per_epoch")) / 60
        rows.append([
            METHODS[method],
            _in_powers(numbers["bound"]), _in_powers(bounds[method].mean),
            f"{numbers['error']:.2e}", _scientific(error.mean, error.error),
            number(numbers["minutes"], digits=3), number(minutes, digits=4),
        ])  # fmt: skip
    page.table(["method", "bound, paper", "ours", "error, paper", "ours", "minutes per epoch, paper", "ours"], rows)


def claim_bounds(page: Page, paper: Mapping[str, Any], bounds: Mapping[str, Estimate]) -> None:
    """Judge what the paper says of the toy's bounds."""
    told = " and ".join(_in_powers(bounds[method].mean) for method in (AR, OVE))
    page.claim(
        f"On the toy the bound is {_in_powers(paper[AR]['bound'])} for A&R and {_in_powers(paper[OVE]['bound'])} for "
        "OVE",
        told,
        judge_numbers([agrees(numbers["bound"], bounds[method]) for method, numbers in paper.items()]),
    )
    page.claim(
        "On the toy the bound is tighter by orders of magnitude for A&R than for OVE",
        told,
        judge_level(
            ratio(bounds[OVE], bounds[AR]),
            at_least=ORDERS_OF_MAGNITUDE,
            near=ONE_ORDER,
            of="OVE's bound by A&R's",
            digits=0,
        ),
    )


def claim_errors(page: Page, paper: Mapping[str, Any], distances: Mapping[str, list[np.ndarray]]) -> None:
    """Judge what the paper says of the toy's errors; ``distances`` are of each seed's probabilities."""
    errors = {method: _mean_error(each) for method, each in distances.items()}
    told = f"{errors[AR].mean:.2e} and {errors[OVE].mean:.2e}"
    page.claim(
        "On the toy the average absolute error is "
        f"{paper[AR]['error']:.2e} for A&R and {paper[OVE]['error']:.2e} for OVE",
        told,
        judge_numbers([agrees(numbers["error"], errors[method]) for method, numbers in paper.items()]),
        SHORTER,
    )
    larger, smaller = sorted(errors.values(), key=lambda error: -error.mean)
    page.claim(
        "On the toy the estimated probabilities are similar for both methods",
        told,
        judge_level(
            ratio(larger, smaller),
            at_most=SIMILAR,
            near=ROUGHLY_SIMILAR,
            of="the larger error by the smaller",
        ),
        SHORTER,
    )
    found = paired(distances[AR], distances[OVE])
    page.claim(
        "On the toy the difference of the errors is not statistically significant",
        _order_of_errors(paper, found),
        judge_level(
            Estimate(abs(found.mean) / found.half_width, 0.0, len(distances[AR])),
            at_most=1,
            of="the difference by half of its 95 % interval",
        ),
        "the paper names no test; ours is paired by class, and its interval is of other classes and other seeds "
        f"together; with few seeds a difference must be large to be significant; {SHORTER}",
    )


def _order_of_errors(paper: Mapping[str, Any], found: Difference) -> str:
    """Write by how much A&R's error is above OVE's, and which is the smaller in the paper."""
    smaller = "A&R's" if paper[AR]["error"] < paper[OVE]["error"] else "OVE's"
    text = f"A&R's minus OVE's: {found.mean:+.2e} ± {found.half_width:.1e} (95 %)"
    return f"{text}; in the paper {smaller} is the smaller"


def claim_accurate(page: Page, distances: Iterable[np.ndarray]) -> None:
    """Judge whether A&R's estimates are accurate; ``distances`` are of each seed's probabilities."""
    share = Estimate.of(float(each.mean()) * len(each) for each in distances)
    page.claim(
        "A&R provides accurate estimates of the categorical probabilities (of simulated data)",
        f"the average absolute error is {share.mean:.1%} of the average probability",
        judge_level(share, at_most=ACCURATE, near=ROUGHLY_ACCURATE, of="the error by the average probability"),
        "distances are from the class's share of the rows: from the probabilities that rows are drawn with, which "
        "the paper may mean, these shares are further off by chance, see there",
    )


def _claim_times(page: Page, paper: Mapping[str, Any]) -> None:
    page.claim(
        "On the toy A&R is slightly slower than OVE because of the local step",
        f"the paper: {paper[AR]['minutes']:.3f} against {paper[OVE]['minutes']:.3f} minutes per epoch",
        not_tested("fits need not have had the machine to themselves, which a comparison of times needs"),
    )

"""Ruiz et al. 2018, section 4.1: probabilities of ten thousand classes without features."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from scipy.special import softmax

from xsoftmax.lab.papers._ruiz2018_names import AR, METHODS, OVE, iterations
from xsoftmax.lab.report.tables import number
from xsoftmax.lab.reproduction.estimates import Estimate, paired
from xsoftmax.lab.reproduction.page import Page
from xsoftmax.lab.reproduction.results import Results, middle
from xsoftmax.lab.reproduction.rules import agrees, judge_level, judge_numbers

TOY = "zipf-300k"
# The levels of claims that the paper makes in words.
# "By orders of magnitude" is by two at least; one would be its shape.
ORDERS_OF_MAGNITUDE, ONE_ORDER = 100, 10
# Errors are "similar" in the paper at a ratio of 1.22.
SIMILAR, ROUGHLY_SIMILAR = 1.25, 2


def toy(results: Results, page: Page, paper: Mapping[str, Any], paper_iterations: int) -> None:
    """Compare bounds and errors with the paper's."""
    if not results.has(TOY, AR):
        return
    with results.data(TOY) as data:
        counts = data.class_counts
        n_rows, n_classes = data.n_samples("train"), data.n_classes
    share = counts / counts.sum()
    page.section(
        "Section 4.1: ten thousand probabilities",
        f"{n_rows:,} draws of {n_classes:,} classes that occur (9,035 in the paper); biases are all there is to "
        "learn. The bound is that of 5,000 rows, times the number of rows; the error is the mean over classes of the "
        "distance between the model's probability and the class's share of the rows, which maximises the likelihood. "
        f"{iterations(results, TOY):,} iterations of the paper's {paper_iterations:,}.",
    )
    distances = {
        method: [np.abs(_probabilities(model) - share) for model in results.models(TOY, method)] for method in paper
    }
    bounds = {method: _times(results.bound(TOY, method), n_rows) for method in paper}
    _toy_table(results, page, paper, bounds, distances)
    claim_bounds(page, paper, bounds)
    claim_errors(page, paper, distances)


def _probabilities(model: Any) -> np.ndarray:
    return softmax(model.b.astype(np.float64))


def _times(estimate: Estimate, factor: float) -> Estimate:
    return Estimate(estimate.mean * factor, estimate.error * factor, estimate.n, estimate.n_diverged)


def _ratio(first: Estimate, second: Estimate) -> Estimate:
    ratio = first.mean / second.mean
    error = abs(ratio) * math.hypot(first.error / first.mean, second.error / second.mean)
    return Estimate(ratio, error, min(first.n, second.n))


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
            f"{numbers['bound']:.3g}", f"{bounds[method].mean:.3g}",
            f"{numbers['error']:.2e}", _scientific(error.mean, error.error),
            number(numbers["minutes"], digits=3), number(minutes, digits=4),
        ])  # fmt: skip
    page.table(["method", "bound, paper", "ours", "error, paper", "ours", "minutes per epoch, paper", "ours"], rows)


def claim_bounds(page: Page, paper: Mapping[str, Any], bounds: Mapping[str, Estimate]) -> None:
    """Judge what the paper says of the toy's bounds."""
    told = f"{bounds[AR].mean:.3g} and {bounds[OVE].mean:.3g}"
    page.claim(
        f"On the toy the bounds are {paper[AR]['bound']:.3g} (A&R) and {paper[OVE]['bound']:.3g} (OVE)",
        told,
        judge_numbers([agrees(numbers["bound"], bounds[method]) for method, numbers in paper.items()]),
    )
    page.claim(
        "On the toy A&R's bound is tighter by orders of magnitude",
        told,
        judge_level(
            _ratio(bounds[OVE], bounds[AR]),
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
        f"On the toy the mean absolute errors are {paper[AR]['error']:.2e} (A&R) and {paper[OVE]['error']:.2e} (OVE)",
        told,
        judge_numbers([agrees(numbers["error"], errors[method]) for method, numbers in paper.items()]),
    )
    larger, smaller = sorted(errors.values(), key=lambda error: -error.mean)
    page.claim(
        "On the toy the probabilities are estimated similarly well by both",
        told,
        judge_level(
            _ratio(larger, smaller),
            at_most=SIMILAR,
            near=ROUGHLY_SIMILAR,
            of="the larger error by the smaller",
        ),
    )
    found = paired(distances[AR], distances[OVE])
    page.claim(
        "On the toy the difference of the errors is not statistically significant",
        f"{_scientific(found.mean, found.half_width)}, of classes and seeds together",
        judge_level(
            Estimate(abs(found.mean) / found.half_width, 0.0, len(distances[AR])),
            at_most=1,
            of="the difference by half of its 95 % interval",
        ),
    )

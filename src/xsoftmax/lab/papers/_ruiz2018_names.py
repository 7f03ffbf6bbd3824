"""Ruiz et al. 2018: data sets, methods, and how numbers are told on its page."""

import math
from collections.abc import Mapping

from xsoftmax.lab.report.tables import number
from xsoftmax.lab.reproduction.estimates import Difference, Estimate
from xsoftmax.lab.reproduction.results import Results

MNIST, BIBTEX, OMNIGLOT = "mnist-whole", "bibtex-whole", "omniglot-whole"
DATASETS = {MNIST: "MNIST", BIBTEX: "Bibtex", OMNIGLOT: "Omniglot"}
EXACT, OVE, AR = "exact", "one-vs-each-advi", "augment-reduce-advi"
PROBIT, LOGISTIC = "probit-advi", "logistic-advi"
COMPLEMENTARY = "complementary-sum-advi"
METHODS = {
    EXACT: "exact softmax",
    OVE: "OVE",
    AR: "A&R softmax",
    PROBIT: "A&R probit",
    LOGISTIC: "A&R logistic",
    COMPLEMENTARY: "complementary sum",
}
LIKELIHOOD, ACCURACY = "test.log_likelihood", "test.accuracy"


def signed(found: Difference) -> str:
    """Write a difference with its sign and half of its interval."""
    return ("+" if found.mean > 0 else "") + number(found.mean, found.half_width, digits=4)


def ratio(first: Estimate, second: Estimate) -> Estimate:
    """Divide the means of independent seeds; NaN where one is 0."""
    if not first.mean or not second.mean:
        return Estimate(math.nan, math.nan, 0)
    quotient = first.mean / second.mean
    error = abs(quotient) * math.hypot(first.error / first.mean, second.error / second.mean)
    return Estimate(quotient, error, min(first.n, second.n))


def told_numbers(found: Mapping[str, bool]) -> str:
    """Say how many numbers agree, and which do not."""
    others = ", ".join(name for name, agree in found.items() if not agree)
    return f"{sum(found.values())} of {len(found)} agree{f'; not {others}' if others else ''}"


def iterations(results: Results, dataset: str) -> int:
    """Count the minibatches of a fit of softmax A&R."""
    fit = results.of(dataset, AR)[0]
    return round(fit.history["step"].iloc[-1] / fit.status["parameters"]["batch"]["size"])

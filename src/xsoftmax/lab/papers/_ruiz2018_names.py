"""Ruiz et al. 2018: data sets, methods, and how numbers and orders are told on its page."""

import math
from collections.abc import Iterable, Mapping

from xsoftmax.lab.report.tables import number
from xsoftmax.lab.reproduction.estimates import Difference, Estimate
from xsoftmax.lab.reproduction.page import Page
from xsoftmax.lab.reproduction.results import Results
from xsoftmax.lab.reproduction.rules import judge_orders

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
MEASURES = {"log_likelihood": "log-likelihood", "accuracy": "accuracy"}
# What the last column says of three rules.
STRICTER = "this rule was made stricter while the fits ran, before any fit that it judges had ended"


def signed(found: Difference) -> str:
    """Write a difference with its sign and half of its interval, if that is known."""
    text = ("+" if found.mean > 0 else "") + number(found.mean, found.half_width, digits=4)
    return text if math.isnan(found.half_width) else f"{text} (95 %)"


def joined(*texts: str) -> str:
    """Join those texts of a claim's last column that say something."""
    return "; ".join(text for text in texts if text)


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


def claim_orders(
    results: Results, page: Page, says: str, pairs: Iterable[tuple[str, str, str, str]], why: str = ""
) -> None:
    """Claim orders on the same test rows: of each data set the better method, the worse one, and the measure."""
    told, orders = [], []
    for key, better, worse, measure in pairs:
        if results.has(key, better) and results.has(key, worse):
            found = results.difference(key, better, worse, measure)
            first, second = (results.estimate(key, method, f"test.{measure}") for method in (better, worse))
            told.append(
                f"{DATASETS[key]}, {METHODS[better]} {number(first.mean, digits=3)} against {METHODS[worse]} "
                f"{number(second.mean, digits=3)}: {signed(found)}"
            )
            orders.append(found.is_above)
    page.claim(says, "; ".join(told), judge_orders(orders), why)

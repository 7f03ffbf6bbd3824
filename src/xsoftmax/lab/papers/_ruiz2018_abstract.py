"""Ruiz et al. 2018: what the abstract says of softmax A&R and the approaches before it."""

from xsoftmax.lab.papers._ruiz2018_names import AR, COMPLEMENTARY, DATASETS, MEASURES, METHODS, OVE, joined
from xsoftmax.lab.reproduction.estimates import above
from xsoftmax.lab.reproduction.page import AFTER, Page
from xsoftmax.lab.reproduction.results import Results
from xsoftmax.lab.reproduction.rules import judge_orders, together

OUTCOMES = {True: "as claimed", False: "reversed", None: "too close"}


def existing_approaches(results: Results, page: Page) -> None:
    """Judge bound, test log-likelihood and accuracy on each data set, each against all approaches at once."""
    orders = {}
    for key, name in DATASETS.items():
        others = [each for each in (OVE, COMPLEMENTARY) if results.has(key, each)]
        if results.has(key, AR) and OVE in others:
            orders[f"{name} bound"] = above(results.bound(key, AR), results.bound(key, OVE))
            for measure, words in MEASURES.items():
                found = (results.difference(key, AR, other, measure).is_above for other in others)
                orders[f"{name} {words}"] = together(found)
    page.claim(
        "On several large-scale problems A&R has a tighter bound on the marginal likelihood and better predictive "
        "performance than existing approaches (here softmax A&R, on data sets that are not large)",
        "; ".join(f"{what}: {OUTCOMES[order]}" for what, order in orders.items()),
        judge_orders(orders),
        joined(
            AFTER,
            "the paper itself excepts the bound on Bibtex",
            f"existing approaches here: {_compared(results)}",
            "on each data set one order by the bound against OVE's, and one each by test log-likelihood and test "
            "accuracy, against all of them at once",
        ),
    )


def _compared(results: Results) -> str:
    names = [
        f"{METHODS[other]} ({', '.join(name for key, name in DATASETS.items() if results.has(key, other))})"
        for other in (OVE, COMPLEMENTARY)
        if any(results.has(key, other) for key in DATASETS)
    ]
    return " and ".join(names)

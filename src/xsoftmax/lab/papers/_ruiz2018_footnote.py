"""Ruiz et al. 2018: complementary sum sampling, of which a footnote tells."""

from xsoftmax.lab.papers._ruiz2018_names import (
    AR,
    COMPLEMENTARY,
    DATASETS,
    OVE,
    STRICTER,
    claim_orders,
    joined,
    signed,
)
from xsoftmax.lab.reproduction.estimates import Estimate
from xsoftmax.lab.reproduction.page import Page
from xsoftmax.lab.reproduction.results import Results
from xsoftmax.lab.reproduction.rules import judge_level, not_tested

SUPERIOR = "On the fifth softmax A&R is still superior to it"


def how_complementary(results: Results) -> list[str]:
    """Say how complementary sum sampling was trained here, and where it was not."""
    there = [key for key in DATASETS if results.has(key, COMPLEMENTARY)]
    if not there:
        return []
    missing = [name for key, name in DATASETS.items() if results.has(key, AR) and key not in there]
    text = (
        "Complementary sum sampling has no numbers in the paper. Here it is a softmax over the true class and the "
        "drawn ones, whose sum is weighted to stand for that of all others. It has no local variables; minibatches, "
        f"drawn classes and global steps are those of softmax A&R{_of_a_step(results, there)}."
    )
    left_out = f" It was not trained on {' and '.join(missing)}, to save time." if missing else ""
    return [text + left_out]


def _of_a_step(results: Results, keys: list[str]) -> str:
    """Give the rows and the drawn classes of a step on each data set."""
    told = []
    for key in keys:
        settings = results.of(key, COMPLEMENTARY)[0].status.get("parameters", {})
        if "batch" in settings:
            drawn = settings["proposal"]["n_sampled"]
            told.append(f"{DATASETS[key]} {settings['batch']['size']} rows and {drawn} of the other classes")
    return f" ({'; '.join(told)})" if told else ""


def claim_complementary(results: Results, page: Page, n_datasets: int) -> None:
    """Judge the footnote: whether it is ahead of OVE, and where it is, whether softmax A&R is ahead of it.

    ``n_datasets`` is how many the paper has.
    """
    says = "Complementary sum sampling (Botev et al. 2017) does not outperform OVE in test log-likelihood on four of"
    there = [key for key in DATASETS if results.has(key, COMPLEMENTARY) and results.has(key, OVE)]
    if not there:
        for each in (f"{says} the five data sets", SUPERIOR):
            page.claim(each, "a footnote without numbers", not_tested("this experiment does not train it"))
        return
    found = {key: results.difference(key, COMPLEMENTARY, OVE, "log_likelihood") for key in there}
    ahead = [key for key, each in found.items() if each.is_above]
    names = ", ".join(DATASETS[key] for key in there)
    page.claim(
        f"{says} the five data sets (the paper does not say which; here {names})",
        "; ".join(f"{DATASETS[key]}, it against OVE: {signed(each)}" for key, each in found.items()),
        judge_level(
            Estimate(len(ahead), 0.0, len(there)),
            at_most=0,
            near=1,
            of="the number of data sets here on which it is ahead",
            digits=0,
        ),
        joined(
            STRICTER,
            "one data set on which it is ahead is what the paper's authors saw themselves",
            f"{n_datasets - len(there)} of the paper's {n_datasets} data sets were not tested",
            "too close to tell is not ahead",
        ),
    )
    if ahead:
        pairs = [(key, AR, COMPLEMENTARY, "log_likelihood") for key in ahead]
        claim_orders(
            results,
            page,
            SUPERIOR,
            pairs,
            "which is the fifth the paper does not say: here, where it is ahead of OVE",
        )
    else:
        page.claim(SUPERIOR, "nothing was compared", not_tested("it outperforms OVE on none of the data sets here"))

"""Table 2 of Fagan and Iyengar 2018: rates that were chosen on 10 % of the rows, and what they are worth on all."""

import math
from collections.abc import Mapping
from typing import Any

from xsoftmax.lab.papers._fagan2018_losses import loss, lower, named
from xsoftmax.lab.papers._fagan2018_names import DATASETS, FROM_LOG_K, IMPLICIT, METHODS, PUBLISHED, ROWS_OF_STEP
from xsoftmax.lab.papers._fagan2018_rates import UNITS, cell, shown, tried
from xsoftmax.lab.papers._fagan2018_search import chosen_by_search, transfer
from xsoftmax.lab.report.tables import number
from xsoftmax.lab.reproduction.page import Page
from xsoftmax.lab.reproduction.results import Results
from xsoftmax.lab.reproduction.rules import judge_numbers

SAME_POWER = "a rate agrees if it is the same power of ten; reproduced if all are, in shape if more than half are"


def table_2(results: Results, page: Page, paper: Mapping[str, Any]) -> None:
    """Put the tuned rates beside the paper's."""
    chosen = {
        (dataset, method): found
        for dataset in DATASETS
        for method in METHODS
        if (found := chosen_by_search(results, dataset, method))
    }
    if not chosen:
        return
    page.section(
        "Table 2: tuned rates",
        "Each method is tried with every rate of a grid, on 10 % of the training rows and for as many epochs as the "
        f"fits have; the rate with the highest training log-likelihood is taken. {UNITS}",
    )
    rows, equal, close = [], [], 0
    for (dataset, method), found in chosen.items():
        printed = paper.get(dataset, {}).get(method)
        n_rows = "–" if found.n_rows is None else f"{found.n_rows:,}"
        told = "–" if printed is None else shown(printed)
        rows.append([named(dataset), METHODS[method], n_rows, told, shown(found.rate),
                     f"{found.n_diverged} of {found.n}"])  # fmt: skip
        if printed is not None:
            gap = abs(math.log10(found.rate / printed))
            equal.append(gap < 0.5)
            close += gap < 1.5
    page.table(["data set", "method", "rows of trials", "paper", "ours", "trials diverged"], rows)
    page.claim(
        "The tuned rates of Table 2",
        f"{sum(equal)} of {len(equal)} equal, {close} within a factor of 10",
        judge_numbers(equal, SAME_POWER),
        "what differs in the program, among others and none of it tested apart: it begins u at 0, takes the first 10 "
        "% of the rows, draws five classes or passes over the data three times, and normalises OVE, NCE and IS twice",
    )
    transfer(results, page, {key: found.rate for key, found in chosen.items()})
    _of_the_paper(results, page, {key: found.rate for key, found in chosen.items()}, paper)


def _of_the_paper(
    results: Results, page: Page, chosen: Mapping[tuple[str, str], float], paper: Mapping[str, Any]
) -> None:
    """Tell where the paper's rate ends below that of our search, both with one class a step and one pass."""
    better = []
    for (dataset, method), rate in chosen.items():
        begun = "0" if method == IMPLICIT else "log K"
        at_paper, at_ours = loss(results, dataset, PUBLISHED[method]), loss(results, dataset, method)
        printed = paper.get(dataset, {}).get(method)
        if method not in ROWS_OF_STEP and printed is not None and lower(at_paper, at_ours):
            from_log_k = tried(results, FROM_LOG_K if method == IMPLICIT else method, dataset).get(printed)
            also = "" if from_log_k is None else f" ({cell(from_log_k)} from log K)"
            better.append(
                f"{named(dataset)}, {METHODS[method]}: {number(at_paper.mean, digits=3)} at the paper's "
                f"{shown(printed)}{also}, {number(at_ours.mean, digits=3)} at our {shown(rate)} from {begun}"
            )
    if better:
        page.text(
            "Of vanilla SGD, U-max and Implicit SGD the paper's rate, with u from 0, ends lower than that of our "
            "search here: " + "; ".join(better) + "."
        )

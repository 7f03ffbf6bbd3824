"""Table 2 of Fagan and Iyengar 2018: rates that were chosen on 10 % of the rows, and what they are worth on all."""

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from xsoftmax.lab.papers._fagan2018_losses import loss, lower, named
from xsoftmax.lab.papers._fagan2018_names import DATASETS, IMPLICIT, METHODS, PUBLISHED, ROWS_OF_STEP, STAND_IN
from xsoftmax.lab.papers._fagan2018_rates import RATES, UNITS, cell, tried
from xsoftmax.lab.report.tables import number
from xsoftmax.lab.reproduction.page import Page, ours
from xsoftmax.lab.reproduction.results import Results
from xsoftmax.lab.reproduction.rules import judge_numbers, judge_orders
from xsoftmax.training.search import Search

SAME_POWER = "a rate agrees if it is the same power of ten; reproduced if all are, in shape if more than half are"


class Chosen(NamedTuple):
    """What a search chose: the rate, of how many trials, how many of these diverged, and rows of trials."""

    rate: float
    n: int
    n_diverged: int
    n_rows: int | None


def chosen_by_search(results: Results, dataset: str, method: str) -> Chosen | None:
    """Give the rate that a search chose, in the program's units; None where nothing was searched."""
    for search in results.searches:
        if (search.dataset, search.method) == (dataset, method):
            return _chosen(search, method)
    return None


def _chosen(search: Search, method: str) -> Chosen:
    losses = {
        _rate(method, said["settings"]): math.inf if said["value"] is None else -said["value"]
        for said in search.chosen["trials"]
    }
    rows = search.trials[0].status.get("data", {}).get("n_train") if search.trials else None
    return Chosen(
        min(losses, key=lambda rate: losses[rate]), len(losses), list(losses.values()).count(math.inf), rows
    )


def _rate(method: str, settings: Mapping[str, Any]) -> float:
    """The nearest of ``RATES`` to a rate in the program's units: divisions by 100 leave 0.0099999."""
    rate = settings["optimizer"]["learning_rate"] / ROWS_OF_STEP.get(method, 1)
    return min(RATES, key=lambda known: abs(math.log(known / rate)))


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
        shown = "–" if printed is None else f"{printed:g}"
        rows.append([named(dataset), METHODS[method], n_rows, shown, f"{found.rate:g}",
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
    _transfer(results, page, {method: found for (dataset, method), found in chosen.items() if dataset == STAND_IN})
    _of_the_paper(results, page, {key: found.rate for key, found in chosen.items()}, paper)


def _transfer(results: Results, page: Page, chosen: Mapping[str, Chosen]) -> None:
    """Compare the rates that were best on 10 % of the rows with those that are on all of them."""
    rows, orders, told = [], [], []
    for method, found in chosen.items():
        losses = {rate: each for rate, each in tried(results, method).items() if each.n}
        if not losses:
            continue
        best = min(losses, key=lambda rate: losses[rate].mean)
        here = loss(results, STAND_IN, method)
        orders.append(False if best == found.rate else lower(losses[best], here))
        cells = [METHODS[method], f"{found.rate:g}", ours(here), f"{best:g}", ours(losses[best])]
        rows.append([*cells, number(here.mean / losses[best].mean, digits=2)])
        told.append(f"{METHODS[method]} {rows[-1][-1]}")
    if not rows:
        return
    page.text(
        f"What a rate of 10 % of the rows is worth on all of them, on {named(STAND_IN)}: the log-loss at the rate "
        "that the search chose, and at the best of those in the section of Figure 3, which are of all rows."
    )
    page.table(["method", "rate of 10 %", "log-loss", "best rate of all rows", "log-loss", "factor"], rows)
    page.claim(
        f"The search on 10 % of the rows finds no method's best rate of all rows ({named(STAND_IN)})",
        "log-loss at the rate of the search, in units of the best: " + "; ".join(told),
        judge_orders(orders, "methods"),
        ours=True,
    )


def _of_the_paper(
    results: Results, page: Page, chosen: Mapping[tuple[str, str], float], paper: Mapping[str, Any]
) -> None:
    """Tell where the paper's rate ends below that of our search, both with one class a step and one pass."""
    better = []
    for (dataset, method), rate in chosen.items():
        at_paper, at_ours = loss(results, dataset, PUBLISHED[method]), loss(results, dataset, method)
        printed = paper.get(dataset, {}).get(method)
        if method not in ROWS_OF_STEP and printed is not None and lower(at_paper, at_ours):
            better.append(
                f"{named(dataset)}, {METHODS[method]}: {number(at_paper.mean, digits=3)} at the paper's {printed:g}, "
                f"{number(at_ours.mean, digits=3)} at our {rate:g}"
            )
    if better:
        page.text(
            "Of vanilla SGD, U-max and Implicit SGD the paper's rate (with u from 0) ends lower than that of our "
            "search (with u from log K) here: " + "; ".join(better) + "."
        )


def beside_the_search(results: Results, page: Page) -> None:
    """Show every rate on all rows of the data sets but the stand-in, which has a section of its own."""
    others = [dataset for dataset in DATASETS if dataset != STAND_IN and tried(results, IMPLICIT, dataset)]
    if not others:
        return
    page.text(
        "How well do rates that are best on 10 % of the rows do on all? All rates, in the units of the authors' "
        f"program (see Figure 3, which has those of {named(STAND_IN)}), on all rows; a star marks what the search "
        "chose if it is among them, a dash what was not run:"
    )
    columns = sorted({rate for dataset in others for method in METHODS for rate in tried(results, method, dataset)})
    page.table(
        ["final log-loss at rate", *(f"{rate:g}" for rate in columns)],
        [
            [f"{named(dataset)}, {METHODS[method]}", *_starred(results, dataset, method, columns)]
            for dataset in others
            for method in METHODS
            if results.has(dataset, method)
        ],
    )


def _starred(results: Results, dataset: str, method: str, rates: Iterable[float]) -> list[str]:
    chosen = chosen_by_search(results, dataset, method)
    losses = tried(results, method, dataset)
    return [cell(losses.get(rate)) + "*" * (chosen is not None and math.isclose(rate, chosen.rate)) for rate in rates]

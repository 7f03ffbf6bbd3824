"""The searches on 10 % of the rows of Fagan and Iyengar 2018, and what the rates that they chose are worth on all."""

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from xsoftmax.lab.papers._fagan2018_losses import best_of, loss, named, ratio
from xsoftmax.lab.papers._fagan2018_names import (
    ALL_METHODS,
    DATASETS,
    FROM_LOG_K,
    IMPLICIT,
    METHODS,
    ROWS_OF_STEP,
    STAND_IN,
    TRANSFERS,
)
from xsoftmax.lab.papers._fagan2018_rates import RATES, cell, shown, tried
from xsoftmax.lab.report.tables import number
from xsoftmax.lab.reproduction.estimates import Estimate
from xsoftmax.lab.reproduction.page import Page, ours
from xsoftmax.lab.reproduction.results import Results
from xsoftmax.lab.reproduction.rules import judge_orders
from xsoftmax.training.search import Search

ABOVE = f"{100 * (TRANSFERS - 1):.0f} %"  # in words


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


class Transfer(NamedTuple):
    """What a rate of the search is worth on all rows: it, its log-loss, the best rate's, and their quotient."""

    rate: float
    here: Estimate
    best_rate: float
    best: Estimate
    factor: Estimate

    @property
    def is_bad(self) -> bool | None:
        """Tell whether it surely ends above ``TRANSFERS`` times the best; None if that is too close to tell."""
        if not self.here.n:
            return True
        if self.factor.mean <= TRANSFERS or self.rate == self.best_rate:
            return False
        return True if self.factor.mean - self.factor.half_width > TRANSFERS else None


def transfer(results: Results, page: Page, chosen: Mapping[tuple[str, str], float]) -> None:
    """Compare the rates that were best on 10 % of the rows with those that are on all of them."""
    found = {key: each for key, rate in chosen.items() if (each := _transfer(results, *key, rate))}
    if not found:
        return
    bad = {key: each for key, each in found.items() if each.is_bad}
    page.text(
        "What a rate of 10 % of the rows is worth on all of them: the log-loss at the rate that the search chose, at "
        "the best of all rates that were run on all rows, and their quotient."
    )
    page.table(
        ["data set", "method", "rate of 10 %", "log-loss", "best rate of all rows", "log-loss", "factor"],
        [
            [named(dataset), METHODS[method], shown(each.rate), ours(each.here), shown(each.best_rate),
             ours(each.best), number(each.factor.mean, digits=2)]
            for (dataset, method), each in found.items()
        ],
    )  # fmt: skip
    page.text(_sentence(found, bad))
    page.claim(
        f"On each data set some rate that the search on 10 % of the rows chose ends more than {ABOVE} above the best "
        "rate of all rows",
        f"{len(bad)} of {len(found)}: " + "; ".join(_told(*key, each) for key, each in bad.items()),
        judge_orders(
            {d: _any(each.is_bad for (of, _), each in found.items() if of == d) for d, _ in found}, "data sets"
        ),
        "a rate at which all seeds diverged counts, and a data set has as many chances as methods. In an earlier run "
        "this claim took the place of one that the search finds no method's best rate, which did not hold",
        ours=True,
    )


def _transfer(results: Results, dataset: str, method: str, rate: float) -> Transfer | None:
    losses = {each: found for each, found in tried(results, method, dataset).items() if found.n}
    if not losses or not results.has(dataset, method):
        return None
    best, here = best_of(losses), loss(results, dataset, method)
    return Transfer(rate, here, best, losses[best], ratio(here, losses[best]))


def _any(orders: Iterable[bool | None]) -> bool | None:
    """Tell whether one of them is true; None if that is too close to tell."""
    found = list(orders)
    return True if True in found else None if None in found else False


def _told(dataset: str, method: str, each: Transfer) -> str:
    factor = number(each.factor.mean, digits=2) if each.here.n else "diverged"
    return f"{named(dataset)} {METHODS[method]} {factor}"


def _sentence(found: Mapping[Any, Transfer], bad: Mapping[Any, Transfer]) -> str:
    """Say in a sentence how well the search transfers."""
    if not bad:
        return f"Of the search's {len(found)} rates none ends more than {ABOVE} above the best rate of all rows."
    factors = [each.factor.mean for each in bad.values() if each.here.n]
    diverged = len(bad) - len(factors)
    worst = f", by a factor of up to {number(max(factors), digits=2)}" if factors else ""
    ends = f", and {diverged} of these diverge{'s' if diverged == 1 else ''}" if diverged else ""
    return (
        f"Of the search's {len(found)} rates {len(bad)} end more than {ABOVE} above the best rate of all rows{worst}"
        f"{ends}."
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
        ["final log-loss at rate", *map(shown, columns)],
        [
            [f"{named(dataset)}, {ALL_METHODS[method]}", *_starred(results, dataset, method, columns)]
            for dataset in others
            for method in (*METHODS, FROM_LOG_K)
            if tried(results, method, dataset)
        ],
    )


def _starred(results: Results, dataset: str, method: str, rates: Iterable[float]) -> list[str]:
    chosen = chosen_by_search(results, dataset, method)
    losses = tried(results, method, dataset)
    return [cell(losses.get(rate)) + "*" * (chosen is not None and math.isclose(rate, chosen.rate)) for rate in rates]

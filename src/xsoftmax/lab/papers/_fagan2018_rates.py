"""The rates of Fagan and Iyengar 2018: table 2, figure 3 (how much they matter), figure 2 (of two double sums)."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from xsoftmax.lab.papers._fagan2018_losses import best_of, counts, loss, losses_of_seeds, lower, named
from xsoftmax.lab.papers._fagan2018_names import (
    ALL_METHODS,
    DATASETS,
    EXTREME,
    HALF_WAY,
    IDENTICAL,
    IMPLICIT,
    LARGE,
    LEARNS,
    METHODS,
    NCE,
    NCE_ONE,
    PUBLISHED,
    RAMAN,
    ROWS_OF_STEP,
    STAND_IN,
    U_MAX,
    VANILLA,
    WITHIN,
    at,
)
from xsoftmax.lab.report.tables import number
from xsoftmax.lab.reproduction.estimates import Estimate, above
from xsoftmax.lab.reproduction.figures import Line, Panel, figure_of
from xsoftmax.lab.reproduction.page import Page, ours
from xsoftmax.lab.reproduction.results import Results
from xsoftmax.lab.reproduction.rules import TOLERANCE, agrees, judge_level, judge_numbers, judge_orders
from xsoftmax.training.search import Search

RATES = [10.0**exponent for exponent in range(-5, 4)]
COLORS = ("#9c9c9c", "#30123b", "#4662d7", "#36a9e1", "#13b58d", "#72c93b", "#e0a010", "#f66b19", "#a01101")
UNITS = (
    "Rates are in the units of the authors' program: the paper's η times the number of rows for vanilla SGD, U-max "
    "and Implicit SGD; for OVE, NCE and IS it sums the gradients of 100 rows; ours, of their mean, are 100 times "
    "as large as those shown."
)
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


def tried(results: Results, method: str) -> dict[float, Estimate]:
    """Give the final log-losses of a method on all rows of the stand-in, by its rate."""
    return {
        rate: loss(results, STAND_IN, at(method, rate)) for rate in RATES if results.has(STAND_IN, at(method, rate))
    }


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
        "Of each method's trials, on 10 % of the training rows in the paper, the one with the highest training "
        f"log-likelihood after as many epochs as the fits have. {UNITS}",
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
        "the program begins u at 0, takes the first 10 % of the rows, draws five classes or passes over the data "
        "three times, and normalises OVE, NCE and IS twice",
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
        "that the search chose, and at the best rate of the seven in the section of Figure 3, which are of all rows."
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


def every_rate(results: Results, page: Page, rates: Sequence[float]) -> None:
    """Show every rate on all rows of the stand-in, and judge what the paper says of its figure 3."""
    found = {method: losses for method in ALL_METHODS if (losses := tried(results, method))}
    if IMPLICIT not in found:
        return
    page.section(
        "Figure 3: every rate",
        f"Eurlex cannot be had here; {named(STAND_IN)} stands in for it: all its training rows, 50 epochs, one class "
        f"a step for vanilla SGD, U-max and Implicit SGD, u from log K. {UNITS}",
    )
    panels = [
        Panel(ALL_METHODS[method], lines, "epoch", "training log-loss (nats)", y_scale="log")
        for method, losses in found.items()
        if (lines := [line for rate in losses for line in _curve(results, method, rate)])
    ]
    page.figure("rates", figure_of(panels), "Means over seeds; a rate at which all seeds diverged has no curve")
    columns = [rate for rate in RATES if any(rate in losses for losses in found.values())]
    rows = [[ALL_METHODS[method], *(_cell(losses.get(rate)) for rate in columns)] for method, losses in found.items()]
    page.table(["final log-loss at rate", *(f"{rate:g}" for rate in columns)], rows)
    own = {method: losses for method, losses in found.items() if method in METHODS}
    _claim_lowest(results, page, own, rates)
    _claim_robust(results, page, own, rates)
    _claim_large(results, page, max(rates))
    _claims_of_vanilla(results, page, own)
    _claim_nce_one(page, found)


def _curve(results: Results, method: str, rate: float) -> list[Line]:
    curve = results.curve(STAND_IN, at(method, rate))
    if curve.empty:
        return []
    style = {"color": COLORS[RATES.index(rate)], "linestyle": "-"}
    losses = -curve["train_log_likelihood"].to_numpy(dtype=float)
    return [Line(f"{rate:g}", curve["epoch"].to_numpy(dtype=float), losses, method="rate", style=style)]


def _of_seeds(results: Results, method: str, rates: Sequence[float]) -> list[dict[float, float]]:
    """Give for each seed the final log-losses by rate, infinite where it diverged."""
    losses = {
        rate: losses_of_seeds(results, STAND_IN, at(method, rate))
        for rate in rates
        if results.has(STAND_IN, at(method, rate))
    }
    n_seeds = min((len(of_seeds) for of_seeds in losses.values()), default=0)
    return [{rate: of_seeds[seed] for rate, of_seeds in losses.items()} for seed in range(n_seeds)]


def _claim_lowest(
    results: Results, page: Page, found: Mapping[str, Mapping[float, Estimate]], rates: Sequence[float]
) -> None:
    common = [rate for rate in rates if rate in found[IMPLICIT]]
    if len(found) < 2 or not common:
        return
    of_seeds = {method: _of_seeds(results, method, common) for method in found}
    hits = [
        [
            all(mine[rate] < others[rate] for others in rest if rate in others)
            for mine, *rest in zip(of_seeds[IMPLICIT], *(of_seeds[m] for m in found if m != IMPLICIT), strict=False)
        ]
        for rate in common
    ]
    best = {rate: best_of({m: losses[rate] for m, losses in found.items() if rate in losses}) for rate in common}
    page.claim(
        "At most of the seven rates Implicit SGD has the lowest log-loss",
        "; ".join(f"{rate:g} {METHODS[method]}" for rate, method in best.items()),
        judge_level(
            counts(hits), at_least=len(common) // 2 + 1, of=f"the number of rates, of {len(common)}", digits=1
        ),
        f"{named(STAND_IN)} in place of Eurlex; OVE, NCE and IS are normalised once",
    )
    least = {method: losses[_best(losses)] for method, losses in found.items() if any(e.n for e in losses.values())}
    page.claim(
        f"Each at the best of all rates, on all rows of {named(STAND_IN)}, Implicit SGD has the lowest log-loss",
        "; ".join(
            f"{METHODS[method]} {number(each.mean, digits=3)} at {_best(found[method]):g}"
            for method, each in least.items()
        ),
        judge_orders({m: lower(least[IMPLICIT], each) for m, each in least.items() if m != IMPLICIT}),
        ours=True,
    )


def _best(losses: Mapping[float, Estimate]) -> float:
    return min((rate for rate in losses if losses[rate].n), key=lambda rate: losses[rate].mean)


def _claim_robust(
    results: Results, page: Page, found: Mapping[str, Mapping[float, Estimate]], rates: Sequence[float]
) -> None:
    """Claim that Implicit SGD ends near its own best at more rates than the others do near theirs."""
    widths = {
        method: Estimate.of(
            float(sum(each <= WITHIN * min(losses.values()) for each in losses.values() if math.isfinite(each)))
            for losses in _of_seeds(results, method, rates)
        )
        for method in found
    }
    page.claim(
        "Implicit SGD is more robust to the rate than the others",
        f"rates of {len(rates)} with at most {WITHIN:g} times the method's own lowest log-loss: "
        + "; ".join(f"{METHODS[method]} {number(width.mean, digits=1)}" for method, width in widths.items()),
        judge_orders({m: above(widths[IMPLICIT], width) for m, width in widths.items() if m != IMPLICIT}),
        f"{named(STAND_IN)} in place of Eurlex",
    )


def _start(results: Results) -> float:
    """Give the log-loss of W = 0."""
    method = next(fit.method for fit in results.fits if fit.dataset == STAND_IN)
    return math.log(results.of(STAND_IN, method)[0].status["data"]["n_classes"])


def _claim_large(results: Results, page: Page, rate: float) -> None:
    if results.has(STAND_IN, at(U_MAX, rate)):
        losses = losses_of_seeds(results, STAND_IN, at(U_MAX, rate))
        page.claim(
            f"At a rate of {rate:g} U-max's log-loss is extremely large",
            _cell(Estimate.of(losses)),
            judge_level(
                Estimate.of(each / _start(results) for each in losses),
                at_least=EXTREME,
                near=LARGE,
                of="log-loss in units of that of W = 0",
                digits=1,
            ),
            f"{named(STAND_IN)} in place of Eurlex",
        )


def _claims_of_vanilla(results: Results, page: Page, found: Mapping[str, Mapping[float, Estimate]]) -> None:
    """Claim that vanilla SGD needs small rates, and that this is what parts it from U-max."""
    three = [method for method in (VANILLA, U_MAX, IMPLICIT) if method in found]
    if len(three) < 3:
        return
    of_seeds = {method: _of_seeds(results, method, list(found[method])) for method in three}
    largest = {
        method: Estimate.of(
            max((math.log10(rate) for rate, each in losses.items() if math.isfinite(each)), default=math.nan)
            for losses in seeds
        )
        for method, seeds in of_seeds.items()
    }
    page.claim(
        "Vanilla SGD overflows at rates at which U-max and Implicit SGD do not",
        "largest rate without overflow: " + _powers(largest),
        judge_orders({m: above(largest[m], largest[VANILLA]) for m in three if m != VANILLA}),
        f"{named(STAND_IN)}; the largest rate tried is {max(found[U_MAX]):g}",
    )
    best = {
        method: Estimate.of(math.log10(min(losses, key=lambda rate: losses[rate])) for losses in seeds)
        for method, seeds in of_seeds.items()
    }
    page.claim(
        "The best rate of vanilla SGD is smaller than those of U-max and Implicit SGD",
        "best of all rows: " + _powers(best),
        judge_orders({m: above(best[m], best[VANILLA]) for m in three if m != VANILLA}),
        f"{named(STAND_IN)}; equal rates are too close to tell",
    )
    shared = [rate for rate in found[VANILLA] if found[VANILLA][rate].n and rate in found[U_MAX]]
    equal = [rate for rate in shared if _of_rate(results, VANILLA, rate) == _of_rate(results, U_MAX, rate)]
    page.claim(
        "The difference between vanilla SGD and U-max is largely explained by the smaller rates of vanilla SGD",
        f"the same log-loss at {len(equal)} of the {len(shared)} rates at which vanilla SGD does not overflow, to "
        "the last digit",
        judge_numbers([agrees(found[VANILLA][rate].mean, found[U_MAX][rate]) for rate in shared]),
    )
    if equal:
        page.text(
            "U-max and vanilla SGD end with the same log-loss, to the last digit, at the rates "
            f"{', '.join(f'{rate:g}' for rate in equal)}. Rows, draws and rate are the same, and the two differ by "
            "U-max's guard alone: it raises u where it is more than 1 below a bound. At these rates no u ever is, so "
            "that the guard never fires, and U-max is vanilla SGD."
        )


def _of_rate(results: Results, method: str, rate: float) -> list[float]:
    return losses_of_seeds(results, STAND_IN, at(method, rate))


def _powers(exponents: Mapping[str, Estimate]) -> str:
    return "; ".join(f"{METHODS[method]} {10**each.mean:g}" for method, each in exponents.items())


def _claim_nce_one(page: Page, found: Mapping[str, Mapping[float, Estimate]]) -> None:
    shared = [rate for rate in found.get(NCE_ONE, {}) if rate in found.get(NCE, {})]
    if shared:
        one, many = found[NCE_ONE], found[NCE]
        page.claim(
            "NCE with one row and one class a step and NCE with 100 and 5 perform near identically",
            "; ".join(f"at {rate:g} {_cell(one[rate])} and {_cell(many[rate])}" for rate in shared),
            judge_numbers(
                [agrees(many[rate].mean, one[rate], IDENTICAL) for rate in shared],
                f"two log-losses agree within {IDENTICAL:.0%} or two standard errors; reproduced if they do at all "
                "rates, in shape at more than half",
            ),
            f"{named(STAND_IN)} in place of Eurlex; normalised twice, as the program scores NCE, all is near log K",
        )


def figure_2(results: Results, page: Page, numbers: Mapping[str, Any]) -> None:
    """Compare the two double sums at every rate."""
    proposed, theirs = tried(results, U_MAX), tried(results, RAMAN)
    shared = [rate for rate in numbers["double_sum_rates"] if rate in proposed and rate in theirs]
    if not shared:
        return
    page.section(
        "Figure 2: the proposed double sum against that of Raman et al.",
        f"U-max on either, on all rows of {named(STAND_IN)} in place of Eurlex. The authors' stored program has "
        "errors in its variant of Raman et al. (an exponential of an exponential in the gradient of u, and no features "
        "in that of the true class), so that this comparison is made anew here with the paper's eq. 8. U-max's guard "
        "takes its own bound for each: of the scores for eq. 8, of their differences for eq. 6.",
    )
    panels = [
        Panel(title, lines, "epoch", "training log-loss (nats)", y_scale="log")
        for title, method in (("proposed double sum", U_MAX), ("Raman et al.", RAMAN))
        if (lines := [line for rate in shared for line in _curve(results, method, rate)])
    ]
    finals = [
        Line(label, np.array(shared), np.array([losses[rate].mean for rate in shared]), method=method)
        for label, losses, method in (("proposed", proposed, U_MAX), ("Raman et al.", theirs, RAMAN))
    ]
    panels.append(Panel("at the end", finals, "rate", "training log-loss (nats)", "log", "log"))
    page.figure("double-sums", figure_of(panels), "U-max with either double sum, by rate; means over seeds")
    ratios = {rate: theirs[rate].mean / proposed[rate].mean for rate in shared}
    rows = [
        [f"{rate:g}", _cell(proposed[rate]), _cell(theirs[rate]), number(ratios[rate], digits=2)] for rate in shared
    ]
    page.table(["rate", "proposed", "Raman et al.", "Raman / proposed"], rows)
    orders = {f"{rate:g}": lower(proposed[rate], theirs[rate]) for rate in shared}
    page.claim(
        "The proposed double sum has the lower log-loss at every rate",
        f"at {sum(order is True for order in orders.values())} of {len(shared)} rates",
        judge_orders(orders, "rates"),
        f"{named(STAND_IN)} in place of Eurlex, and eq. 8 in place of the stored program's variant; by eq. 8 the "
        "true class is pushed by 1 − exp(s − u) at every step, which no draw makes noisy",
    )
    _claim_average(results, page, shared, numbers["double_sums"])


def _claim_average(results: Results, page: Page, shared: Sequence[float], paper: float) -> None:
    """Claim the paper's average factor, over those rates at which both sums learn."""
    level = LEARNS * _start(results)
    learning = [
        rate
        for rate in shared
        if all(each < level for method in (U_MAX, RAMAN) for each in _of_rate(results, method, rate))
    ]
    factors = [
        [theirs / mine for mine, theirs in zip(*(_of_rate(results, m, rate) for m in (U_MAX, RAMAN)), strict=False)]
        for rate in learning
    ]
    means = Estimate.of(sum(of_seed) / len(of_seed) for of_seed in zip(*factors, strict=False))
    page.claim(
        f"On average its log-loss is {paper} times lower",
        f"over the {len(learning)} of {len(shared)} rates at which both end below the log-loss of W = 0",
        judge_level(
            means,
            at_least=(1 - TOLERANCE) * paper,
            near=1 + HALF_WAY * (paper - 1),
            of="the mean factor",
            digits=2,
        ),
        "the stored variant of Raman et al. has errors in both gradients",
    )


def _cell(each: Estimate | None) -> str:
    if each is None:
        return "–"
    if not each.n:
        return "diverged"
    return number(each.mean) + (f" ({each.n_diverged} diverged)" if each.n_diverged else "")

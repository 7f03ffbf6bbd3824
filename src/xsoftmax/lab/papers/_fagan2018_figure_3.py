"""Figure 3 of Fagan and Iyengar 2018: every rate on all rows of a data set, and what the paper says of them."""

from collections.abc import Mapping, Sequence

from xsoftmax.lab.papers._fagan2018_losses import best_of, counts, lowest, named, start
from xsoftmax.lab.papers._fagan2018_names import (
    ALL_METHODS,
    DATASETS,
    EXTREME,
    FROM_LOG_K,
    IMPLICIT,
    LARGE,
    METHODS,
    STAND_IN,
    U_MAX,
)
from xsoftmax.lab.papers._fagan2018_nce_one import claims_of_nce_one
from xsoftmax.lab.papers._fagan2018_rates import (
    RATES,
    UNITS,
    at_best,
    cell,
    curve,
    of_rate,
    of_seeds,
    shown,
    tried,
)
from xsoftmax.lab.papers._fagan2018_vanilla import claims_of_vanilla, robustness
from xsoftmax.lab.reproduction.estimates import Estimate
from xsoftmax.lab.reproduction.figures import Panel, figure_of
from xsoftmax.lab.reproduction.page import Page
from xsoftmax.lab.reproduction.results import Results
from xsoftmax.lab.reproduction.rules import judge_level, judge_orders


def every_rate(results: Results, page: Page, rates: Sequence[float]) -> None:
    """Show every rate on all rows of the stand-in, and judge what the paper says of its figure 3."""
    found = {method: losses for method in ALL_METHODS if (losses := tried(results, method))}
    if IMPLICIT not in found:
        return
    page.section(
        "Figure 3: every rate",
        f"Eurlex cannot be had here; {named(STAND_IN)} stands in for it: all its training rows, 50 epochs, one class "
        "a step for vanilla SGD, U-max and Implicit SGD, u from log K for the first two and from 0 for the third. "
        f"{UNITS} A dash: not run. Claims of "
        f"this section but the one of U-max's largest losses are of rates up to {shown(max(rates))}, the greatest of "
        "the paper's Figure 3.",
    )
    panels = [
        Panel(ALL_METHODS[method], lines, "epoch", "training log-loss (nats)", y_scale="log")
        for method, losses in found.items()
        if (lines := [line for rate in losses for line in curve(results, method, rate)])
    ]
    figure = figure_of(panels, first=[shown(rate) for rate in RATES])
    page.figure("rates", figure, "Means over seeds; a rate at which all seeds diverged has no curve")
    columns = [rate for rate in RATES if any(rate in losses for losses in found.values())]
    rows = [[ALL_METHODS[method], *(cell(losses.get(rate)) for rate in columns)] for method, losses in found.items()]
    page.table(["final log-loss at rate", *map(shown, columns)], rows)
    own = {
        method: {rate: each for rate, each in losses.items() if rate in rates}
        for method, losses in found.items()
        if method in METHODS
    }
    _claim_lowest(results, page, own, rates)
    robustness(results, page, rates)
    _claim_large(results, page, found.get(U_MAX, {}), rates)
    claims_of_vanilla(results, page, rates)
    claims_of_nce_one(results, page)


def _claim_lowest(
    results: Results, page: Page, found: Mapping[str, Mapping[float, Estimate]], rates: Sequence[float]
) -> None:
    common = [rate for rate in rates if rate in found[IMPLICIT]]
    if len(found) < 2 or not common:
        return
    losses_of = {method: of_seeds(results, method, common) for method in found}
    hits = [
        [
            all(mine[rate] < others[rate] for others in rest if rate in others)
            for mine, *rest in zip(losses_of[IMPLICIT], *(losses_of[m] for m in found if m != IMPLICIT), strict=False)
        ]
        for rate in common
    ]
    best = {rate: best_of({m: losses[rate] for m, losses in found.items() if rate in losses}) for rate in common}
    page.claim(
        "At most of the seven rates Implicit SGD has the lowest log-loss",
        "; ".join(f"{shown(rate)} {METHODS[method]}" for rate, method in best.items()),
        judge_level(
            counts(hits), at_least=len(common) // 2 + 1, of=f"the number of rates, of {len(common)}", digits=1
        ),
        f"{named(STAND_IN)} in place of Eurlex; OVE, NCE and IS are normalised once{_elsewhere(results, rates)}",
    )
    least = {dataset: losses for dataset in DATASETS if IMPLICIT in (losses := at_best(results, dataset, rates))}
    page.claim(
        "Each at the best of all rates, on all rows, Implicit SGD has the lowest log-loss",
        "lowest: " + "; ".join(f"{named(dataset)} {METHODS[best_of(losses)]}" for dataset, losses in least.items()),
        judge_orders({dataset: lowest(losses, IMPLICIT) for dataset, losses in least.items()}, "data sets"),
        "see the tables of all rates" + _from_log_k(results, least, rates),
        ours=True,
    )


def _from_log_k(results: Results, least: Mapping[str, Mapping[str, Estimate]], rates: Sequence[float]) -> str:
    """Tell the same with Implicit SGD from log K, as the others are."""
    found = {dataset: at_best(results, dataset, rates, implicit=FROM_LOG_K) for dataset in least}
    found = {dataset: losses for dataset, losses in found.items() if IMPLICIT in losses}
    if not found:
        return ""
    told = "; ".join(f"{named(dataset)} {METHODS[best_of(losses)]}" for dataset, losses in found.items())
    orders = [lowest(losses, IMPLICIT) for losses in found.values()]
    return f"; with Implicit SGD from log K, as U-max is, {orders.count(True)} of {len(orders)} are so: {told}"


def _elsewhere(results: Results, rates: Sequence[float]) -> str:
    """Tell at how many rates Implicit SGD has the lowest mean loss on data sets but the stand-in."""
    told = []
    for dataset in DATASETS:
        found = {method: tried(results, method, dataset) for method in METHODS} if dataset != STAND_IN else {}
        at_rates = [{m: losses[rate] for m, losses in found.items() if rate in losses} for rate in rates]
        if all(IMPLICIT in losses and any(each.n for each in losses.values()) for losses in at_rates):
            n = sum(best_of(losses) == IMPLICIT for losses in at_rates)
            told.append(f"on {named(dataset)} it has the lowest mean at {n} of {len(rates)}")
    return "".join(f"; {each}" for each in told)


def _claim_large(results: Results, page: Page, found: Mapping[float, Estimate], rates: Sequence[float]) -> None:
    """Claim that U-max's loss is extremely large at the greatest rates, and tell where else it is."""
    greatest = [rate for rate in found if rate >= max(rates)]
    if not greatest:
        return
    each = {rate: Estimate.of(of_rate(results, U_MAX, rate)).times(1 / start(results, STAND_IN)) for rate in found}
    # Where all seeds diverged it is no lower.
    least = min((each[rate] for rate in greatest), key=lambda end: end.mean if end.n else float("inf"))
    smaller = [rate for rate in found if rate < max(rates) and each[rate].mean - each[rate].half_width >= EXTREME]
    page.claim(
        f"At rates of {' and '.join(map(shown, greatest))} U-max's log-loss is extremely large",
        "; ".join(f"at {shown(rate)} {cell(found[rate])}" for rate in greatest),
        judge_level(
            least,
            at_least=EXTREME,
            near=LARGE,
            of="the lower log-loss in units of that of W = 0" if len(greatest) > 1 else "log-loss by that of W = 0",
            digits=1,
        ),
        f"{named(STAND_IN)} in place of Eurlex"
        + (
            f"; by the same rule it is extremely large at {' and '.join(map(shown, smaller))}, too" if smaller else ""
        ),
    )

"""Every rate of Fagan and Iyengar 2018 on all rows of a data set: figure 3, and what other figures share with it."""

import math
from collections.abc import Iterable, Mapping, Sequence

from xsoftmax.lab.papers._fagan2018_losses import (
    TWICE,
    best_of,
    counts,
    loss,
    losses_of_seeds,
    lowest,
    named,
    same_fits,
)
from xsoftmax.lab.papers._fagan2018_names import (
    ALL_METHODS,
    DATASETS,
    EXTREME,
    IDENTICAL,
    IMPLICIT,
    LARGE,
    METHODS,
    NCE,
    NCE_ONE,
    STAND_IN,
    U_MAX,
    VANILLA,
    WITHIN,
    at,
)
from xsoftmax.lab.report.tables import number
from xsoftmax.lab.reproduction.estimates import Estimate, above
from xsoftmax.lab.reproduction.figures import Line, Panel, figure_of
from xsoftmax.lab.reproduction.page import Page
from xsoftmax.lab.reproduction.results import Results
from xsoftmax.lab.reproduction.rules import agrees, judge_level, judge_numbers, judge_orders

RATES = [10.0**exponent for exponent in range(-5, 5)]
COLORS = (
    *("#9c9c9c", "#30123b", "#4662d7", "#36a9e1", "#13b58d", "#72c93b", "#e0a010", "#f66b19", "#a01101"),
    "#5a0000",
)
UNITS = (
    "Rates are in the units of the authors' program: the paper's η times the number of rows for vanilla SGD, U-max "
    "and Implicit SGD; for OVE, NCE and IS it sums the gradients of 100 rows; ours, of their mean, are 100 times "
    "as large as those shown."
)


def tried(results: Results, method: str, dataset: str = STAND_IN) -> dict[float, Estimate]:
    """Give the final log-losses of a method on all rows of a data set, by its rate."""
    return {
        rate: loss(results, dataset, at(method, rate)) for rate in RATES if results.has(dataset, at(method, rate))
    }


def every_rate(results: Results, page: Page, rates: Sequence[float]) -> None:
    """Show every rate on all rows of the stand-in, and judge what the paper says of its figure 3."""
    found = {method: losses for method in ALL_METHODS if (losses := tried(results, method))}
    if IMPLICIT not in found:
        return
    page.section(
        "Figure 3: every rate",
        f"Eurlex cannot be had here; {named(STAND_IN)} stands in for it: all its training rows, 50 epochs, one class "
        f"a step for vanilla SGD, U-max and Implicit SGD, u from log K. {UNITS} A dash: not run. Claims of "
        f"this section but the one of U-max's largest losses are of rates up to {max(rates):g}, the greatest of the "
        "paper's Figure 3.",
    )
    panels = [
        Panel(ALL_METHODS[method], lines, "epoch", "training log-loss (nats)", y_scale="log")
        for method, losses in found.items()
        if (lines := [line for rate in losses for line in curve(results, method, rate)])
    ]
    figure = figure_of(panels, first=[f"{rate:g}" for rate in RATES])
    page.figure("rates", figure, "Means over seeds; a rate at which all seeds diverged has no curve")
    columns = [rate for rate in RATES if any(rate in losses for losses in found.values())]
    rows = [[ALL_METHODS[method], *(cell(losses.get(rate)) for rate in columns)] for method, losses in found.items()]
    page.table(["final log-loss at rate", *(f"{rate:g}" for rate in columns)], rows)
    own = {
        method: {rate: each for rate, each in losses.items() if rate <= max(rates)}
        for method, losses in found.items()
        if method in METHODS
    }
    _claim_lowest(results, page, own, rates)
    _claim_robust(results, page, own, rates)
    _claim_large(results, page, [rate for rate in found.get(U_MAX, {}) if rate >= max(rates)])
    _claims_of_vanilla(results, page, own)
    _claim_nce_one(results, page, found)


def curve(results: Results, method: str, rate: float) -> list[Line]:
    """Draw the mean of those seeds that did not diverge; nothing if there is none."""
    mean = results.curve(STAND_IN, at(method, rate))
    if mean.empty:
        return []
    style = {"color": COLORS[RATES.index(rate)], "linestyle": "-"}
    losses = -mean["train_log_likelihood"].to_numpy(dtype=float)
    return [Line(f"{rate:g}", mean["epoch"].to_numpy(dtype=float), losses, method="rate", style=style)]


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
        f"{named(STAND_IN)} in place of Eurlex; OVE, NCE and IS are normalised once{_elsewhere(results, rates)}",
    )
    least = {dataset: losses for dataset in DATASETS if IMPLICIT in (losses := at_best(results, dataset, rates))}
    page.claim(
        "Each at the best of all rates, on all rows, Implicit SGD has the lowest log-loss",
        "lowest: " + "; ".join(f"{named(dataset)} {METHODS[best_of(losses)]}" for dataset, losses in least.items()),
        judge_orders({dataset: lowest(losses, IMPLICIT) for dataset, losses in least.items()}, "data sets"),
        f"see the tables of all rates; before the run this claim was of {named(STAND_IN)} alone",
        ours=True,
    )


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


def at_best(results: Results, dataset: str, rates: Iterable[float]) -> dict[str, Estimate]:
    """Give each method's log-loss on all rows at the best of some rates, at any where all diverged."""
    rates, best = set(rates), {}
    for method in METHODS:
        losses = {rate: each for rate, each in tried(results, method, dataset).items() if rate in rates}
        if losses:
            best[method] = losses[best_of(losses) if any(each.n for each in losses.values()) else min(losses)]
    return best


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
        f"{named(STAND_IN)} in place of Eurlex; {WITHIN:g} times is our level, with which rates count at which "
        "vanilla SGD and U-max have hardly learnt; the grid's end cuts off Implicit SGD's",
    )


def start(results: Results) -> float:
    """Give the log-loss of W = 0."""
    method = next(fit.method for fit in results.fits if fit.dataset == STAND_IN)
    return math.log(results.of(STAND_IN, method)[0].status["data"]["n_classes"])


def _claim_large(results: Results, page: Page, rates: Sequence[float]) -> None:
    if rates:
        losses = {rate: of_rate(results, U_MAX, rate) for rate in rates}
        ends = [Estimate.of(each) for each in losses.values()]
        least = min(ends, key=lambda end: end.mean if end.n else math.inf)  # where all diverged it is no lower
        page.claim(
            f"At rates of {' and '.join(f'{rate:g}' for rate in rates)} U-max's log-loss is extremely large",
            "; ".join(f"at {rate:g} {cell(Estimate.of(each))}" for rate, each in losses.items()),
            judge_level(
                least.times(1 / start(results)),
                at_least=EXTREME,
                near=LARGE,
                of="the lower log-loss in units of that of W = 0" if len(rates) > 1 else "log-loss by that of W = 0",
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
        f"{named(STAND_IN)}; rates up to {max(found[U_MAX]):g} count",
    )
    best = {
        method: Estimate.of(math.log10(min(losses, key=lambda rate: losses[rate])) for losses in seeds)
        for method, seeds in of_seeds.items()
    }
    page.claim(
        "The best rate of vanilla SGD is smaller than those of U-max and Implicit SGD",
        "best of all rows: " + _powers(best),
        judge_orders({m: above(best[m], best[VANILLA]) for m in three if m != VANILLA}),
        f"{named(STAND_IN)}; equal rates are too close to tell; the rates of our search, as in Table 2, are in its "
        "table",
    )
    shared = [rate for rate in found[VANILLA] if found[VANILLA][rate].n and rate in found[U_MAX]]
    equal = [rate for rate in shared if of_rate(results, VANILLA, rate) == of_rate(results, U_MAX, rate)]
    page.claim(
        "The difference between vanilla SGD and U-max is largely explained by the smaller rates of vanilla SGD "
        "(judged: at equal rates they end alike)",
        f"the same log-loss at {len(equal)} of the {len(shared)} rates at which vanilla SGD does not overflow, to "
        "the last digit",
        judge_numbers([agrees(found[VANILLA][rate].mean, found[U_MAX][rate]) for rate in shared]),
        f"{named(STAND_IN)}; that U-max gains by larger rates is not judged by this; where vanilla SGD overflows, "
        "U-max' loss is in the table",
    )
    if equal:
        page.text(same_fits(f"at the rates {', '.join(f'{rate:g}' for rate in equal)}"))


def of_rate(results: Results, method: str, rate: float) -> list[float]:
    """Give the final log-loss of each seed."""
    return losses_of_seeds(results, STAND_IN, at(method, rate))


def _powers(exponents: Mapping[str, Estimate]) -> str:
    return "; ".join(f"{METHODS[method]} {10**each.mean:g}" for method, each in exponents.items())


def _claim_nce_one(results: Results, page: Page, found: Mapping[str, Mapping[float, Estimate]]) -> None:
    shared = [rate for rate in found.get(NCE_ONE, {}) if rate in found.get(NCE, {})]
    if shared:
        one, many = found[NCE_ONE], found[NCE]
        twice = [[loss(results, STAND_IN, at(method, rate), TWICE) for method in (NCE_ONE, NCE)] for rate in shared]
        page.claim(
            "NCE with one row and one class a step and NCE with 100 and 5 perform near identically",
            "; ".join(f"at {rate:g} {cell(one[rate])} and {cell(many[rate])}" for rate in shared),
            judge_numbers(
                [agrees(many[rate].mean, one[rate], IDENTICAL) for rate in shared],
                f"two log-losses agree within {IDENTICAL:.0%} or two standard errors; reproduced if they do at all "
                "rates, in shape at more than half",
            ),
            f"{named(STAND_IN)} in place of Eurlex, {len(shared)} of seven rates, and normalised once; normalised "
            "twice, as in the paper, where such losses hardly differ, they are "
            + "; ".join(f"{number(one.mean)} and {number(many.mean)}" for one, many in twice)
            + f", of which {sum(agrees(many.mean, one, IDENTICAL) for one, many in twice)} agree by the same rule",
        )


def cell(each: Estimate | None) -> str:
    """Write a log-loss, and how many seeds diverged."""
    if each is None:
        return "–"
    if not each.n:
        return "diverged"
    return number(each.mean) + (f" ({each.n_diverged} diverged)" if each.n_diverged else "")

"""The methods of Yen et al. 2018, and what the pages of its experiments share: curves, rates, progress, factors."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from xsoftmax.lab.report.tables import number
from xsoftmax.lab.reproduction.estimates import Estimate, quotient
from xsoftmax.lab.reproduction.figures import Line, Panel, figure_of, lines_of
from xsoftmax.lab.reproduction.page import Page
from xsoftmax.lab.reproduction.results import Results
from xsoftmax.lab.reproduction.rules import Finding, judge_level, not_tested
from xsoftmax.training.folders import Fit
from xsoftmax.training.search import Search

SOFTMAX, SAMPLED, MARGIN, MIPS, DECOMPOSED = LOSSES = ("softmax", "sampled", "margin", "mips", "decomposed")
# How rates fall and where they begin: as in the paper, where t of 1 / (1 + t) counts iterations; from the same rates,
# where it counts epochs; and from larger rates, where it counts epochs, too.
PAPER, EPOCHS, LARGE = KINDS = ("paper", "epochs", "large")
# Claims are judged in these ways: as in the paper; with t in epochs; and, with t in epochs, at each method's best
# rates, the paper's or larger ones. See ``_yen2018_ways``.
BEST = "best"
WAYS = (PAPER, EPOCHS, BEST)
KIND_TEXTS = {PAPER: "t in iterations", EPOCHS: "t in epochs", LARGE: "larger rates", BEST: "best rates"}
LOSS_TEXTS = dict(zip(LOSSES, ("Softmax", "Sampled-Softmax", "Margin", "MIPS", "Decomp-MIPS"), strict=True))
METHODS = {
    f"{loss}-{kind}": text if kind == PAPER else f"{text}, {KIND_TEXTS[kind]}"
    for kind in KINDS
    for loss, text in LOSS_TEXTS.items()
}
SECONDS = "fit.seconds_per_epoch"
# A colour per loss, and a line per kind.
COLORS = {SOFTMAX: "#0072b2", SAMPLED: "#009e73", MARGIN: "#d55e00", MIPS: "#cc79a7", DECOMPOSED: "#e69f00"}
DASHES = {PAPER: ":", EPOCHS: "-", LARGE: "--"}


def curves(results: Results, page: Page, dataset: str, metric: str, says: str) -> None:
    """Draw a metric of test rows against time, and of training rows against time and epochs."""
    panels = [
        Panel(title, _lines(results, dataset, f"{rows}_{metric}", x), text, says, x_scale="log")
        for title, rows, x, text in (
            ("test rows", "test", "seconds", "training time (s)"),
            ("training rows", "train", "seconds", "training time (s)"),
            ("training rows", "train", "epoch", "epochs"),
        )
    ]
    caption = f"{says[0].upper()}{says[1:]}, means and ranges over seeds"
    page.figure(f"accuracy-{dataset}", figure_of(panels), caption)


def _lines(results: Results, dataset: str, column: str, x: str) -> list[Line]:
    """Give the methods' lines; the start is left out, for which a logarithmic axis has no place."""
    found = []
    for line in lines_of(results, dataset, METHODS, column, x, from_evaluation=1):
        loss, kind = (line.method or "").split("-")
        found.append(replace(line, style={"color": COLORS[loss], "linestyle": DASHES[kind]}))
    return found


def rates(results: Results, page: Page, dataset: str, says: str) -> None:
    """Add a table of all initial rates that were tried, and what each came to."""
    searched = [search for search in results.searches if search.dataset == dataset and search.method in METHODS]
    rows = []
    for search in sorted(searched, key=lambda search: list(METHODS).index(search.method)):
        for trial, told in zip(search.trials, search.chosen["trials"], strict=True):
            chosen = " (chosen)" if told["name"] == search.chosen["name"] else ""
            value = number(np.nan if told["value"] is None else told["value"], digits=3)
            rate = trial.status["parameters"]["optimizer"]["learning_rate"]
            rows.append([METHODS[search.method], f"{rate:g}", value + chosen])
    page.table(["method", "initial rate", says], rows)
    tied, close, highest = [], [], []
    n_rows = _n_validation(results, dataset)
    for search in searched:
        tried = {
            trial.status["parameters"]["optimizer"]["learning_rate"]: told["value"]
            for trial, told in zip(search.trials, search.chosen["trials"], strict=True)
        }
        values = sorted((value for value in tried.values() if value is not None), reverse=True)
        if is_tied(search):
            tied.append(METHODS[search.method])
            continue
        if len(values) > 1 and not _told_apart(values[0], values[1], n_rows):
            close.append(METHODS[search.method])
        if values and tried[max(tried)] == values[0]:
            highest.append(METHODS[search.method])
    if tied:
        page.text(f"Validation rows do not tell the best rates apart, and the lowest is taken: {'; '.join(tied)}.")
    if close:
        page.text(
            f"On {n_rows:,} validation rows the two best rates differ by less than two standard errors, so that "
            f"another run may choose another: {'; '.join(close)}."
        )
    if highest:
        page.text(f"The best rate is the highest of the method's own grid: {'; '.join(highest)}.")
    if worse := worse_with_larger_rates(results, dataset):
        page.text(f"By validation rows larger rates are worse than the paper's for {', '.join(worse)}.")


def trained(results: Results, dataset: str) -> dict[str, str]:
    """Name the methods that were trained on a data set."""
    return {method: text for method, text in METHODS.items() if results.has(dataset, method)}


def kinds(results: Results, dataset: str, *losses: str) -> list[str]:
    """List the ways in which all of some losses were trained on a data set.

    The best rates are no other way where they are the paper's for all of them.
    """
    there = [kind for kind in WAYS if all(results.has(dataset, f"{loss}-{kind}") for loss in losses)]
    same = all(best_by_validation(results, dataset, loss) == EPOCHS for loss in losses)
    return [kind for kind in there if kind != BEST or not same]


def best_by_validation(results: Results, dataset: str, loss: str) -> str | None:
    """Tell which rates validation rows prefer with t in epochs: the paper's or larger ones; None without fits."""
    there = [kind for kind in (EPOCHS, LARGE) if results.has(dataset, f"{loss}-{kind}")]
    if len(there) < 2:
        return there[0] if there else None
    values = _values_of_searches(results, dataset)
    return LARGE if values.get(f"{loss}-{LARGE}", np.inf) > values.get(f"{loss}-{EPOCHS}", 0) else EPOCHS


def common_end(results: Results, dataset: str, methods: Iterable[str], column: str) -> float:
    """Tell how far all fits of some methods have come, in epochs or seconds: the least of their last looks."""
    ends = (
        float(fit.history[column].iloc[-1])
        for method in methods
        for fit in results.of(dataset, method)
        if not fit.diverged
    )
    return min(ends, default=0.0)


def values_at(
    results: Results, dataset: str, method: str, metric: str, x: str, place: float | Sequence[float]
) -> list[float | None]:
    """Give a metric of each seed's fit after so many epochs or seconds, or after its own; linear between looks."""
    fits = results.of(dataset, method)
    return [
        None if fit.diverged else float(np.interp(its, fit.history[x], fit.history[metric]))
        for fit, its in zip(fits, np.broadcast_to(place, len(fits)), strict=True)
    ]


def is_looked_at(results: Results, dataset: str, method: str, x: str, place: float) -> bool:
    """Tell whether all fits of a method were looked at by then, the start apart, or diverged."""
    return all(fit.diverged or fit.history[x].iloc[1] <= place for fit in results.of(dataset, method))


def worse_with_larger_rates(results: Results, dataset: str) -> list[str]:
    """Name the losses whose searches came to less from larger rates than from the paper's, where rows can tell."""
    best, n_rows = _values_of_searches(results, dataset), _n_validation(results, dataset)
    return [
        text
        for loss, text in LOSS_TEXTS.items()
        if best.get(f"{loss}-{LARGE}", np.inf) < best.get(f"{loss}-{EPOCHS}", 0)
        and _told_apart(best[f"{loss}-{LARGE}"], best[f"{loss}-{EPOCHS}"], n_rows)
    ]


def is_tied(search: Search) -> bool:
    """Tell whether several rates came to the best value."""
    values = [told["value"] for told in search.chosen["trials"] if told["value"] is not None]
    return values.count(max(values, default=np.nan)) > 1


def _n_validation(results: Results, dataset: str) -> int:
    """Tell how many validation rows of a data set are looked at; 0 if that is not known."""
    status = next((fit.status for fit in results.fits if fit.dataset == dataset), {})
    n_rows = status.get("data", {}).get("n_validation", 0)
    return min(n_rows, status.get("rows_looked_at") or n_rows)


def _told_apart(first: float, second: float, n_rows: int) -> bool:
    """Tell whether two shares of so many rows differ by two standard errors; of no rows, whether they differ."""
    variance = sum(share * (1 - share) for share in (first, second)) / n_rows if n_rows else 0.0
    return abs(first - second) > 2 * math.sqrt(variance)


def _values_of_searches(results: Results, dataset: str) -> dict[str, float]:
    """Give the best value by validation rows of each method that was searched; 0 where all trials diverged."""
    return {
        search.method: max(
            (told["value"] for told in search.chosen["trials"] if told["value"] is not None), default=0
        )
        for search in results.searches
        if search.dataset == dataset
    }


def sooner(results: Results, dataset: str, fast: str, slow: str, metric: str) -> Estimate:
    """Estimate how many times as soon a method comes to what both reach, the lower of their last values.

    Seed by seed. Between evaluations a metric is taken to be linear, and nothing to be reached before the first one
    after the start.
    """
    times = [_times(pair, metric) for pair in _pairs(results, dataset, fast, slow)]
    return Estimate.of(each and each[1] / each[0] for each in times)


def tells_no_time(results: Results, dataset: str, fast: str, slow: str, metric: str) -> bool:
    """Tell whether with some seed both methods are there at their first looks, so that no time is measured."""
    pairs = _pairs(results, dataset, fast, slow)
    firsts = [tuple(float(fit.history["seconds"].iloc[1]) for fit in pair) for pair in pairs]
    return any(_times(pair, metric) == first for pair, first in zip(pairs, firsts, strict=True))


def _pairs(results: Results, dataset: str, fast: str, slow: str) -> list[tuple[Fit, Fit]]:
    return list(zip(results.of(dataset, fast), results.of(dataset, slow), strict=True))


def _times(pair: tuple[Fit, Fit], metric: str) -> tuple[float, float] | None:
    """Tell when two fits come to the lower of their last values; None if one diverged."""
    if any(fit.diverged for fit in pair):
        return None
    (x, y), (others_x, others_y) = (
        [fit.history[column].to_numpy()[1:] for column in ("seconds", metric)] for fit in pair
    )
    goal = min(y[-1], others_y[-1])
    return _first_at(x, y, goal), _first_at(others_x, others_y, goal)


def most_times_sooner(results: Results, dataset: str, fast: str, slow: str) -> float:
    """Tell the highest factor that ``sooner`` may find: the time of one method over the first look at the other."""
    first, last = (
        [float(fit.history["seconds"].iloc[at]) for fit in results.of(dataset, method) if not fit.diverged]
        for method, at in ((fast, 1), (slow, -1))
    )
    return min(last, default=np.inf) / max(first, default=np.inf)


def _first_at(x: np.ndarray, values: np.ndarray, goal: float) -> float:
    """Tell where a curve first comes to a value that it reaches."""
    k = int(np.argmax(values >= goal))
    return float(np.interp(goal, values[k - 1 : k + 1], x[k - 1 : k + 1]) if k else x[0])


def times_as_fast(results: Results, dataset: str, fast: str, slow: str) -> Estimate:
    """Estimate how many epochs a method makes in an epoch of another."""
    return quotient(*(results.values(dataset, name, SECONDS) for name in (slow, fast)))


def judge_least(values: Iterable[Estimate], of: str, at_least: float, near: float) -> Finding:
    """Judge several values by the least of them: all are to reach the level."""
    found = list(values)
    if not found:
        return not_tested("nothing was compared")
    least = min(found, key=lambda each: -np.inf if np.isnan(each.mean) else each.mean)
    return judge_level(least, at_least=at_least, near=near, of=f"the least of {len(found)} {of}", digits=2)


def told(parts: Mapping[str, str]) -> str:
    """Join what is told of data sets or kinds of rates."""
    return "; ".join(f"{name} {text}" for name, text in parts.items())

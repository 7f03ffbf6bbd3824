"""The rates of Fagan and Iyengar 2018: table 2, figure 3 (how much they matter), figure 2 (of two double sums)."""

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from xsoftmax.lab.report.tables import number
from xsoftmax.lab.reproduction.figures import Line, Panel, figure_of
from xsoftmax.lab.reproduction.page import TOLERANCE, Page, Verdict, verdict_of_orders
from xsoftmax.lab.reproduction.results import Results
from xsoftmax.training.folders import Fit

DATASETS = {
    "mnist-unit": "MNIST",
    "bibtex-unit": "Bibtex",
    "delicious-unit": "Delicious",
    "eurlex-4k-unit": "Eurlex",
    "amazoncat-13k-unit": "AmazonCat",
    "wiki10-31k-unit": "Wiki10",
    "wiki-small-unit": "Wiki-small",
}
SWEEP = "icd10"  # stands in for Eurlex in figures 2 and 3
ALL_DATASETS = DATASETS | {SWEEP: "ICD-10 (ours)"}
VANILLA, U_MAX, IMPLICIT, RAMAN = "sgd", "u-max", "implicit-sgd", "raman-u-max"
BIASED = {"one-vs-each-fagan": "OVE", "nce-fagan": "NCE", "importance-sampling": "IS"}
UNBIASED = {VANILLA: "vanilla SGD", U_MAX: "U-max", IMPLICIT: "Implicit SGD"}
METHODS = BIASED | UNBIASED
ALL_METHODS = METHODS | {RAMAN: "U-max, Raman's sum"}
# The authors' program sums over so many rows of a minibatch, of which we take the mean.
ROWS_OF_STEP = dict.fromkeys(BIASED, 100)
LARGE = 1000.0  # where the paper found U-max's log-loss extremely large
RATES = [10.0**exponent for exponent in range(-5, 4)]
COLORS = ("#9c9c9c", "#30123b", "#4662d7", "#36a9e1", "#13b58d", "#72c93b", "#e0a010", "#f66b19", "#a01101")
UNITS = (
    "Rates are in the units of the authors' program: the paper's η times the number of rows for vanilla SGD, U-max "
    "and Implicit SGD; for OVE, NCE and IS it sums the gradients of 100 rows; ours, of their mean, are 100 times "
    "as large as those shown."
)


class Trial(NamedTuple):
    """One trial: its last training log-loss, infinite where it diverged, and the fit."""

    loss: float
    fit: Fit


def trials_of(results: Results, dataset: str, method: str) -> dict[float, Trial]:
    """Give the trials of a search by their rate in the program's units; none where nothing was searched."""
    found = {}
    for search in results.searches:
        if (search.dataset, search.method) == (dataset, method):
            for said, fit in zip(search.chosen["trials"], search.trials, strict=True):
                loss = math.inf if said["value"] is None else -said["value"]
                found[_rate(method, said["settings"])] = Trial(loss, fit)
    return dict(sorted(found.items()))


def _rate(method: str, settings: Mapping[str, Any]) -> float:
    """The nearest of ``RATES`` to a rate in the program's units: divisions by 100 leave 0.0099999."""
    rate = settings["optimizer"]["learning_rate"] / ROWS_OF_STEP.get(method, 1)
    return min(RATES, key=lambda known: abs(math.log(known / rate)))


def _best(trials: Mapping[float, Trial]) -> float:
    return min(trials, key=lambda rate: trials[rate].loss)


def table_2(results: Results, page: Page, paper: Mapping[str, Any]) -> None:
    """Put the tuned rates beside the paper's."""
    page.section(
        "Table 2: tuned rates",
        "Of each method's trials, on 10 % of the training rows in the paper, the one with the highest training "
        f"log-likelihood after as many epochs as the fits have. {UNITS}",
    )
    rows, near, smaller = [], [], {}
    for dataset, name in ALL_DATASETS.items():
        tried = {method: trials for method in METHODS if (trials := trials_of(results, dataset, method))}
        chosen = {method: _best(trials) for method, trials in tried.items()}
        for method, trials in tried.items():
            printed = paper.get(dataset, {}).get(method)
            diverged = sum(math.isinf(trial.loss) for trial in trials.values())
            shown = "–" if printed is None else f"{printed:g}"
            rows.append([name, METHODS[method], _rows_of(trials[chosen[method]].fit), shown, f"{chosen[method]:g}",
                         f"{diverged} of {len(trials)}"])  # fmt: skip
            if printed is not None:
                near.append(abs(math.log10(chosen[method] / printed)))
        if {VANILLA, U_MAX, IMPLICIT} <= chosen.keys():
            smaller[name] = chosen
    page.table(["data set", "method", "rows of trials", "paper", "ours", "trials diverged"], rows)
    if near:
        equal, close = sum(gap < 0.5 for gap in near), sum(gap < 1.5 for gap in near)
        page.claim(
            "The tuned rates of Table 2",
            f"{equal} of {len(near)} equal, {close} within a factor of 10",
            Verdict.REPRODUCED if equal == len(near) else _majority(close, len(near)),
            "the program begins u at 0, takes the first 10 % of the rows, and normalises OVE, NCE and IS twice",
        )
    if smaller:
        page.claim(
            "Vanilla SGD needs a smaller rate than U-max and Implicit SGD",
            "; ".join(
                f"{name} {chosen[VANILLA]:g} against {chosen[U_MAX]:g} and {chosen[IMPLICIT]:g}"
                for name, chosen in smaller.items()
            ),
            verdict_of_orders(
                chosen[VANILLA] < min(chosen[U_MAX], chosen[IMPLICIT]) or
                (None if chosen[VANILLA] == min(chosen[U_MAX], chosen[IMPLICIT]) else False)
                for chosen in smaller.values()
            ),
            "equal rates count as too close to tell",
        )  # fmt: skip


def _majority(hits: int, of: int) -> Verdict:
    return Verdict.IN_SHAPE if 2 * hits > of else Verdict.NOT


def figure_3(results: Results, page: Page) -> None:
    """Draw every trial of the stand-in's searches, and tell how much rates matter."""
    tried = {method: trials for method in ALL_METHODS if (trials := trials_of(results, SWEEP, method))}
    if not tried:
        return
    page.section(
        "Figure 3: every rate",
        f"Eurlex cannot be had here; {ALL_DATASETS[SWEEP]} stands in for it. Training log-loss on up to 5,000 of the "
        f"rows trained on, one seed. {UNITS}",
    )
    panels = [
        Panel(ALL_METHODS[method], [_line(rate, trial.fit) for rate, trial in trials.items()], "epoch",
              "training log-loss (nats)", y_scale="log")
        for method, trials in tried.items()
    ]  # fmt: skip
    page.figure("rates", figure_of(panels), "A curve ends where a fit diverged")
    rates = [rate for rate in RATES if any(rate in trials for trials in tried.values())]
    rows = [[ALL_METHODS[method], *(_cell(trials.get(rate)) for rate in rates)] for method, trials in tried.items()]
    page.table(["final log-loss at rate", *(f"{rate:g}" for rate in rates)], rows)
    tried.pop(RAMAN, None)
    if IMPLICIT in tried and len(tried) > 1:
        _claim_robust(page, tried)
    if LARGE in tried.get(U_MAX, {}):
        loss = tried[U_MAX][LARGE].loss
        page.claim(
            f"At a rate of {LARGE:g} U-max's log-loss is extremely large",
            _cell(tried[U_MAX][LARGE]),
            Verdict.REPRODUCED if loss > 2 * _first(tried[U_MAX][LARGE].fit) else Verdict.NOT,
            "on another data set; large is: above twice the loss at W = 0",
        )


def _claim_robust(page: Page, tried: Mapping[str, Mapping[float, Trial]]) -> None:
    """Claim that Implicit SGD is the best at most rates, and that few rates spoil it."""
    common = [rate for rate in tried[IMPLICIT] if sum(rate in trials for trials in tried.values()) > 1]
    best = {rate: min((m for m in tried if rate in tried[m]), key=lambda m: tried[m][rate].loss) for rate in common}
    wins = sum(method == IMPLICIT for method in best.values())
    page.claim(
        "At most rates Implicit SGD has the lowest log-loss",
        f"at {wins} of {len(common)} rates; "
        + "; ".join(f"{rate:g} {METHODS[method]}" for rate, method in best.items()),
        Verdict.REPRODUCED if 2 * wins > len(common) else Verdict.NOT,
        "on another data set; OVE, NCE and IS are normalised once, and rates of these are of sums over 100 rows",
    )
    least = min(trial.loss for trials in tried.values() for trial in trials.values())
    good = {method: sum(trial.loss <= 2 * least for trial in trials.values()) for method, trials in tried.items()}
    others = max(count for method, count in good.items() if method != IMPLICIT)
    page.claim(
        "Implicit SGD is more robust to the rate than the others",
        "rates with at most twice the lowest loss of all: "
        + "; ".join(f"{METHODS[m]} {count} of {len(tried[m])}" for m, count in good.items()),
        Verdict.REPRODUCED if good[IMPLICIT] > others else
        Verdict.IN_SHAPE if good[IMPLICIT] == others else Verdict.NOT,
    )  # fmt: skip


def figure_2(results: Results, page: Page, numbers: Mapping[str, Any]) -> None:
    """Compare the two double sums at every rate."""
    ours, theirs = (trials_of(results, SWEEP, method) for method in (U_MAX, RAMAN))
    shared = [rate for rate in numbers["double_sum_rates"] if rate in ours and rate in theirs]
    if not shared:
        return
    page.section(
        "Figure 2: the proposed double sum against that of Raman et al.",
        f"U-max on either, on {ALL_DATASETS[SWEEP]} in place of Eurlex. The authors' stored program has errors in "
        "its variant of Raman et al. (an exponential of an exponential in the gradient of u, and no features in "
        "that of the true class), so that this comparison is made anew here with the paper's eq. 8. U-max's guard "
        "takes its own bound for each: of the scores for eq. 8, of their differences for eq. 6.",
    )
    panels = [
        Panel(title, [_line(rate, trials[rate].fit) for rate in shared], "epoch", "training log-loss (nats)",
              y_scale="log")
        for title, trials in (("proposed double sum", ours), ("Raman et al.", theirs))
    ]  # fmt: skip
    finals = [
        Line(label, np.array(shared), np.array([_finite(trials[rate].loss) for rate in shared]), method=method)
        for label, trials, method in (("proposed", ours, U_MAX), ("Raman et al.", theirs, RAMAN))
    ]
    panels.append(Panel("at the end", finals, "rate", "training log-loss (nats)", "log", "log"))
    page.figure("double-sums", figure_of(panels), "U-max with either double sum, by rate")
    ratios = {rate: theirs[rate].loss / ours[rate].loss for rate in shared if not math.isinf(ours[rate].loss)}
    rows = [
        [f"{rate:g}", _cell(ours[rate]), _cell(theirs[rate]), _factor(ratios.get(rate, math.nan))] for rate in shared
    ]
    page.table(["rate", "proposed", "Raman et al.", "Raman / proposed"], rows)
    page.claim(
        "The proposed double sum has the lower log-loss at every rate",
        f"at {sum(theirs[rate].loss > ours[rate].loss for rate in shared)} of {len(shared)} rates",
        verdict_of_orders(theirs[rate].loss > ours[rate].loss for rate in shared),
        "on another data set, and with eq. 8 in place of the stored program's variant; by eq. 8 the true class is "
        "pushed by 1 − exp(s − u) at every step, which no draw makes noisy",
    )
    _claim_average(page, ratios.values(), numbers["double_sums"])


def _claim_average(page: Page, ratios: Iterable[float], paper: float) -> None:
    finite = [ratio for ratio in ratios if math.isfinite(ratio)]
    mean = float(np.mean(finite)) if finite else math.nan
    agrees = abs(mean - paper) <= TOLERANCE * paper
    page.claim(
        f"On average its log-loss is {paper} times lower",
        f"{_factor(mean)} times, over {len(finite)} rates at which neither diverged",
        Verdict.REPRODUCED if agrees else Verdict.IN_SHAPE if mean > 1 + (paper - 1) / 2 else Verdict.NOT,
        "the stored variant of Raman et al. has errors in both gradients",
    )


def _line(rate: float, fit: Fit) -> Line:
    losses = -fit.history["train_log_likelihood"].to_numpy(dtype=float)
    style = {"color": COLORS[RATES.index(rate)], "linestyle": "-"}
    return Line(f"{rate:g}", fit.history["epoch"].to_numpy(dtype=float), losses, method="rate", style=style)


def _rows_of(fit: Fit) -> str:
    n_train = fit.status.get("data", {}).get("n_train")
    return "–" if n_train is None else f"{n_train:,}"


def _first(fit: Fit) -> float:
    return -float(fit.history["train_log_likelihood"].iloc[0])


def _finite(loss: float) -> float:
    return loss if math.isfinite(loss) else math.nan


def _factor(ratio: float) -> str:
    return number(ratio, digits=2) if math.isfinite(ratio) else "–"


def _cell(trial: Trial | None) -> str:
    if trial is None:
        return "–"
    return "diverged" if math.isinf(trial.loss) else number(trial.loss)

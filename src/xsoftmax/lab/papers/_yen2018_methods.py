"""The methods of Yen et al. 2018, and what the pages of its experiments share: curves, rates, progress per epoch."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from xsoftmax.lab.report.tables import number
from xsoftmax.lab.reproduction.figures import Line, Panel, figure_of, lines_of
from xsoftmax.lab.reproduction.page import Page, Verdict
from xsoftmax.lab.reproduction.results import Estimate, Results, middle

SOFTMAX, SAMPLED, MARGIN, MIPS, DECOMPOSED = (
    f"{name}-paper" for name in ("softmax", "sampled", "margin", "mips", "decomposed")
)
PAPER = {SOFTMAX: "Softmax", SAMPLED: "Sampled-Softmax", MARGIN: "Margin", MIPS: "MIPS", DECOMPOSED: "Decomp-MIPS"}
LARGE = {name.replace("-paper", "-large"): f"{text}, larger rates" for name, text in PAPER.items()}
METHODS = PAPER | LARGE
SECONDS = "fit.seconds_per_epoch"
# A colour per loss; larger rates are dashed.
COLORS = {"softmax": "#0072b2", "sampled": "#009e73", "margin": "#d55e00", "mips": "#cc79a7", "decomposed": "#e69f00"}
# Cooling counts iterations where its scale is below this, and epochs where it is a number of training rows.
LEAST_ROWS = 1000


class Paced:
    """Methods on one data set, and what an epoch of each takes: the median over seeds, in seconds."""

    def __init__(self, results: Results, dataset: str, methods: Iterable[str]) -> None:
        self.pace = {name: middle(results.values(dataset, name, SECONDS)) for name in methods}

    def speed(self, slow: str, fast: str) -> float:
        """How many epochs one method makes in an epoch of the other."""
        return self.pace[slow] / self.pace[fast]


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
        found.append(replace(line, style={"color": COLORS[loss], "linestyle": "-" if kind == "paper" else "--"}))
    return found


def rates(results: Results, page: Page, dataset: str, says: str) -> None:
    """Add a table of all initial rates and coolings that were tried, and what each came to."""
    searched = [search for search in results.searches if search.dataset == dataset and search.method in METHODS]
    rows = []
    for search in sorted(searched, key=lambda search: list(METHODS).index(search.method)):
        for trial, told in zip(search.trials, search.chosen["trials"], strict=True):
            settings = trial.status["parameters"]
            iterations = settings["schedule"]["scale"] < LEAST_ROWS
            chosen = " (chosen)" if told["name"] == search.chosen["name"] else ""
            cells = [f"{settings['optimizer']['learning_rate']:g}", "iterations" if iterations else "epochs"]
            value = number(np.nan if told["value"] is None else told["value"], digits=3)
            rows.append([METHODS[search.method], *cells, value + chosen])
    page.table(["method", "initial rate", "t counts", says], rows)


def trained(results: Results, dataset: str) -> dict[str, str]:
    """Name the methods that were trained on a data set."""
    return {method: text for method, text in METHODS.items() if results.has(dataset, method)}


def common_end(results: Results, dataset: str, methods: Mapping[str, str], column: str) -> float:
    """Tell how far all fits of some methods have come, in epochs or seconds: the least of their last looks."""
    return min(
        float(fit.history[column].iloc[-1])
        for method in methods
        for fit in results.of(dataset, method)
        if not fit.diverged
    )


def at(results: Results, dataset: str, method: str, metric: str, x: str, place: float) -> Estimate:
    """Estimate a metric after so many epochs or seconds, linear between evaluations."""
    return Estimate.of(
        None if fit.diverged else float(np.interp(place, fit.history[x], fit.history[metric]))
        for fit in results.of(dataset, method)
    )


def at_least(ratio: float, full: float, in_shape: float) -> Verdict:
    """Judge a factor by what it is to be, and what it is to be in shape."""
    return Verdict.REPRODUCED if ratio >= full else Verdict.IN_SHAPE if ratio >= in_shape else Verdict.NOT

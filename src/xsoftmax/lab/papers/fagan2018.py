"""Fagan and Iyengar, Unbiased scalable softmax optimization, 2018: tables 2 and 3, figures 1 to 3."""

from collections.abc import Mapping
from typing import Any

from xsoftmax.lab.papers._fagan2018_checks import convergence, speed
from xsoftmax.lab.papers._fagan2018_double_sums import figure_2
from xsoftmax.lab.papers._fagan2018_figure_3 import every_rate
from xsoftmax.lab.papers._fagan2018_losses import best_of, called, lowest, named
from xsoftmax.lab.papers._fagan2018_names import DATASETS, IMPLICIT, METHODS
from xsoftmax.lab.papers._fagan2018_orders import Losses
from xsoftmax.lab.papers._fagan2018_records import normalised_twice, unequal_work
from xsoftmax.lab.papers._fagan2018_table_2 import table_2
from xsoftmax.lab.papers._fagan2018_table_3 import table_3
from xsoftmax.lab.papers._fagan2018_untested import of_methods, of_tables
from xsoftmax.lab.reproduction.estimates import Estimate
from xsoftmax.lab.reproduction.figures import Panel, figure_of, lines_of
from xsoftmax.lab.reproduction.page import Page
from xsoftmax.lab.reproduction.results import Results
from xsoftmax.lab.reproduction.rules import judge_orders


def tell(results: Results, page: Page, numbers: Mapping[str, Any]) -> None:
    """Put the paper's tables and figures beside ours."""
    page.text(
        "An earlier run, of seeds 0, 1 and 2, had the same data sets, searches and rates, and its results were known "
        "when rules and texts were last revised. What is drawn, and the order of rows, is new here: seeds are "
        "others. New, too, are Implicit SGD with u from 0 as the method that is judged, OVE with several penalties, "
        "NCE(1,1) at all rates, and three seeds where the earlier run had one."
    )
    normalised_twice(results, page, numbers)
    unequal_work(results, page, numbers)
    table_3(results, page, numbers)
    of_tables(page)
    _figure_1(results, page)
    table_2(results, page, numbers["table_2"])
    every_rate(results, page, numbers["rates"])
    figure_2(results, page, numbers)
    convergence(results, page, numbers["table_2"])
    speed(results, page)
    of_methods(results, page)


def _figure_1(results: Results, page: Page) -> None:
    panels = [
        Panel(name, lines, "epoch", "training log-loss (nats)", y_scale="log")
        for dataset, name in DATASETS.items()
        if (lines := lines_of(results, dataset, METHODS, "train_log_likelihood", of_y=lambda values: -values))
    ]
    if not panels:
        return
    page.section("Figure 1: training log-loss", "Rates by our search, as in the section above.")
    page.figure(
        "log-loss", figure_of(panels), "On up to 5,000 training rows, normalised once; means and ranges over seeds"
    )
    early = {
        dataset: {m: _at_first_look(results, dataset, m) for m in METHODS if results.has(dataset, m)}
        for dataset in DATASETS
        if results.has(dataset, IMPLICIT)
    }
    page.claim(
        "Implicit SGD converges faster in the first few epochs",
        f"lowest at the first look, after {_first_epoch(results, early):g} epochs: "
        + "; ".join(f"{named(dataset)} {called(best_of(losses))}" for dataset, losses in early.items()),
        judge_orders({dataset: lowest(losses, IMPLICIT) for dataset, losses in early.items()}, "data sets"),
        f"the first look of {_n_looks(results, early)} is after {_first_epoch(results, early):g} epochs, so that "
        "what is before is not seen; on up to 5,000 training rows, as in the figure, with rates of our search",
    )


def _at_first_look(results: Results, dataset: str, method: str) -> Estimate:
    """Give the log-loss at the first look after the start."""
    columns = [fit.history["train_log_likelihood"] for fit in results.of(dataset, method)]
    return Estimate.of(-float(column.iloc[1]) if len(column) > 1 else None for column in columns)


def _n_looks(results: Results, early: Losses) -> int:
    return len(results.of(next(iter(early)), IMPLICIT)[0].history) - 1


def _first_epoch(results: Results, early: Losses) -> float:
    history = results.of(next(iter(early)), IMPLICIT)[0].history
    return float(history["epoch"].iloc[min(1, len(history) - 1)])

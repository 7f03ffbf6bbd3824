"""What the page says and shows of one data set."""

import base64
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from xsoftmax.evaluation.metrics import title_of
from xsoftmax.internal.text import pruning_in_words
from xsoftmax.lab.report.appearance import appearances_of
from xsoftmax.lab.report.figures import GAP, PLOTS, SEARCHES
from xsoftmax.lab.report.page.best import best_fit
from xsoftmax.lab.report.page.curves import color_of, curves_of
from xsoftmax.lab.report.page.methods import listed
from xsoftmax.lab.report.page.winner import verdict
from xsoftmax.lab.report.reliability import RELIABILITY
from xsoftmax.lab.report.tables import (
    cell,
    cells,
    headings,
    number,
    ranking,
    shown,
    training_objectives,
    without_empty,
)
from xsoftmax.training.folders import DIVERGED, flatten

SIZES = {
    "n_classes": "classes",
    "n_features": "features",
    "n_train": "training examples",
    "n_validation": "validation examples",
    "n_test": "test examples",
}
DROPPED = {
    "n_dropped_empty": "empty examples dropped",
    "n_dropped_unlabelled": "examples without a label dropped",
    "n_dropped_unseen_validation": "validation examples of classes unseen in training dropped",
    "n_dropped_unseen_test": "test examples of classes unseen in training dropped",
    "n_dropped_unseen_labels_validation": "labels of validation examples unseen in training dropped",
    "n_dropped_unseen_labels_test": "labels of test examples unseen in training dropped",
}


def section(
    figures: Path, rows: pd.DataFrame, curves: pd.DataFrame, fits: Sequence[dict], searches: Sequence[dict]
) -> dict[str, Any]:
    """Collect what the page has of one data set.

    Parameters
    ----------
    figures : Path
        The folder of the figures.
    rows, curves : DataFrame
        The data set's rows of the summary, and its curves.
    fits, searches : sequence of dict
        Its entries of ``fits.json`` and ``searches.json``.
    """
    dataset, rows = rows.dataset.iloc[0], without_empty(rows)
    ranked, found = ranking(rows), verdict(rows)
    appearances = appearances_of(ranked.method)
    return {
        "dataset": dataset,
        "sizes": _sizes(fits[0].get("data", {})) if fits else "",
        "verdict": found,
        "best": best_fit(found, fits),
        "messages": [_message(fit) for fit in fits if fit["status"] == DIVERGED],
        "pruned": [_pruned(fit) for fit in fits if fit.get("pruning")],
        "headings": headings(rows),
        "fit_headings": ["method", "seed", *(heading for _, heading, _ in shown(rows)), "epochs", "status"],
        "rows": [{"cells": cells(row), "color": color_of(appearances[row.method])} for _, row in ranked.iterrows()],
        "objectives": [_objective_cells(row) for _, row in training_objectives(rows).iterrows()],
        "several_seeds": bool((ranked.seeds > 1).any()),
        "fits": [_fit_cells(row) for _, row in rows.iterrows()],
        "curves": curves_of(curves, rows, {name: appearances[name] for name in ranked.method}),
        "pictures": list(_pictures(figures, dataset)),
        "searches": [_search(each) for each in searches],
    }


def _search(search: dict[str, Any]) -> dict[str, Any]:
    """Take a search apart: which method, how it was tried, and a row for each trial, the chosen one marked."""
    (unit, amount), column = next(iter(search["budget"].items())), title_of(search["by"])
    rows = [
        {
            "name": listed(flatten(trial["settings"])),
            "value": _tried(trial["value"]),
            "chosen": trial["name"] == search["name"],
        }
        for trial in search["trials"]
    ]
    return {
        "method": search["method"],
        "how": f"{search['rows']:,} training rows, seed {search['seed']}, {amount:g} {unit}; by {column}",
        "rows": rows,
    }


def _tried(value: float | None) -> str:
    return DIVERGED if value is None else number(value, digits=4)


def _sizes(data: dict[str, Any]) -> str:
    """Say how large a data set is, and what was dropped where that is known."""
    said = [f"{data[name]:,} {words}" for name, words in SIZES.items() if data.get(name) is not None]
    return " · ".join(said + [f"{data[name]:,} {words}" for name, words in DROPPED.items() if data.get(name)])


def _message(fit: dict[str, Any]) -> str:
    said = fit.get("message") or f"{fit['method']} diverged at step {fit.get('step')}"
    return f"{fit['method']}, seed {fit['seed']}: {said.removeprefix(fit['method']).strip()}"


def _pruned(fit: dict[str, Any]) -> str:
    return f"{fit['method']}, seed {fit['seed']}, {pruning_in_words(fit['pruning'])}"


def _fit_cells(row: Any) -> list[str]:
    numbers = [cell(row, *column) for column in shown(row)]
    return [row.method, str(row.seed), *numbers, "–" if pd.isna(row.epochs) else f"{row.epochs:g}", row.status]


def _objective_cells(row: Any) -> list[str]:
    """Write a row of `training_objectives`: method, its objective's own name, and two numbers."""
    digits = {"training_objective": None, "train_log_likelihood": 3}
    numbers = [number(row[name], row[f"{name}_sd"], shown) for name, shown in digits.items()]
    return [row.method, row.objective_name, *numbers]


def _pictures(folder: Path, dataset: Any) -> Iterable[dict[str, str]]:
    for plot in (*PLOTS, *SEARCHES, GAP, RELIABILITY):
        path = folder / f"{dataset}_{plot.name}.svg"
        if path.exists():
            yield {"title": plot.title, "data": base64.b64encode(path.read_bytes()).decode()}

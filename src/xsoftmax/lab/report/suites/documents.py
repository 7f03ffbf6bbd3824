"""Documents: what training on generated texts costs, and how good it is, against the number of classes."""

from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from xsoftmax.internal.text import duration, megabytes
from xsoftmax.lab.report.appearance import COLORS, MARKERS
from xsoftmax.lab.report.suites import style, table

PANELS = {
    "row_us": "µs of training per training row",
    "peak_mb": "peak memory (MB)",
    "accuracy": "test accuracy",
    "recall": "recall of the shortlists",
}
GROWING = ("row_us", "peak_mb")


def blocks(content: dict[str, Any]) -> dict[str, str]:
    """Give the table ``documents``, and say which clock its seconds are of."""
    rows = [_row(found) for found in content["results"]]
    headings = ["classes", "rows", "program", "training", "per row", "peak memory", "accuracy", "recall", "weights"]
    clock = "Seconds are those that a run computed.\n\n" if content.get("clock") == "cpu" else ""
    return {"documents": clock + table(headings, rows, right=6)}


def figures(content: dict[str, Any]) -> dict[str, Figure]:
    """Draw a panel for each quantity against the number of classes, a curve for each program."""
    found = points(content["results"])
    return {} if found.empty else {"documents": _draw(found)}


def points(results: list[dict[str, Any]]) -> pd.DataFrame:
    """Make one row for each run that came to a result."""
    rows = [
        {"program": found["program"], "classes": found["classes"], "accuracy": found["accuracy"]}
        | {
            "row_us": 1e6 * found["seconds_per_row"],
            "peak_mb": found["peak_bytes"] / 2**20,
            "recall": found.get("recall"),
        }
        for found in results
        if found.get("accuracy") is not None
    ]
    return pd.DataFrame(rows)


def _row(found: dict[str, Any]) -> tuple[str, ...]:
    head = (f"{found['classes']:,}", f"{found['samples']:,}", found["program"])
    if found.get("accuracy") is None:
        return (*head, f"{found['status']}: {found['message']}", *"–––––")
    recall, n_weights = found.get("recall"), found.get("n_weights")
    return (
        *head,
        duration(found["seconds"]),
        duration(found["seconds_per_row"]),
        megabytes(found["peak_bytes"]),
        f"{found['accuracy']:.3f}",
        "–" if recall is None else f"{recall:.3f}",
        "–" if n_weights is None else f"{n_weights:,}",
    )


def _draw(found: pd.DataFrame) -> Figure:
    programs = list(dict.fromkeys(found.program))
    with style():
        figure = Figure(figsize=(8.6, 5.0), layout="constrained")
        panels = figure.subplots(2, 2).ravel()
        for axes, (column, label) in zip(panels, PANELS.items(), strict=True):
            for k, program in enumerate(programs):
                curve = found[found.program == program].dropna(subset=[column])
                axes.plot(curve.classes, curve[column], color=COLORS[k], marker=MARKERS[k], label=program)
            axes.set_xscale("log")
            axes.set_xlabel("classes")
            axes.set_ylabel(label)
            if column in GROWING:
                axes.set_yscale("log")
            else:
                axes.set_ylim(0, 1.03)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
        sns.despine(figure)
    return figure

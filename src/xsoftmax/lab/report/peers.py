"""Tables and figures of the benchmark beside other programs."""

from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from xsoftmax.lab.report.figures import PLOTS, Plot, draw, save
from xsoftmax.lab.report.tables import number

OURS = "xsoftmax-"
HEADINGS = ("", "log-likelihood", "accuracy")
MEASURES = {"log_likelihood": "LL", "accuracy": "acc."}
DRAWN = [plot for plot in PLOTS if plot.x == "seconds"]


def markdown(found: dict[str, Any], summaries: dict[str, dict[str, Any]], sentences: dict[str, list[str]]) -> str:
    """Write everything as Markdown: per data set a table of all entrants, the first on top, and what to say of it.

    Parameters
    ----------
    found : dict
        What ``xsoftmax.lab.benchmark.peers.run`` returns under ``datasets``.
    summaries, sentences : dict
        By data set: what ``summarise`` returns; the verdict and the reasons.
    """
    parts = []
    for dataset, content in found.items():
        if "unavailable" in content:
            parts.append(f"### {dataset}\n\nData not available here: {content['unavailable']}\n")
        else:
            parts.append(_dataset(dataset, content["data"], summaries[dataset], sentences[dataset]))
    return "\n".join(parts)


def write_figures(found: dict[str, Any], folder: Path) -> list[Path]:
    """Draw test log-likelihood and accuracy against seconds of training, for each data set, as SVG and PNG."""
    written: list[Path] = []
    for dataset, content in found.items():
        rows, ended = _frames(content.get("entrants", {}))
        for plot in DRAWN:
            with_values = set(rows.dropna(subset=[plot.y]).method) if len(rows) else set()
            if with_values:
                shown = rows[rows.method.isin(with_values)], ended[ended.method.isin(with_values)]
                written += save(_drawn(*shown, plot, dataset), folder / f"peers-{dataset}_{plot.name}")
    return written


def _dataset(dataset: str, data: dict[str, Any], summary: dict[str, Any], sentences: list[str]) -> str:
    sizes = f"{data['n_train']:,} rows, {data['n_features']:,} features, {data['n_classes']:,} classes"
    steps = summary["levels"]
    columns = [f"s to {MEASURES[level['measure']]} −{level['share']:.0%}".replace("%", " %") for level in steps]
    head = [*HEADINGS, *columns, "÷ ours (LL)", "÷ ours (acc.)", "s/epoch", "MB", "note"]
    lines = [f"### {dataset}", "", f"{sizes}.", "", _line(head), _line(["---", *["--:"] * (len(head) - 2), "---"])]
    lines += [_line(_cells(name, row, summary)) for name, row in sorted(summary["rows"].items(), key=_order)]
    return "\n".join([*lines, "", *(f"- {sentence}" for sentence in sentences), ""])


def _cells(name: str, row: dict[str, Any], summary: dict[str, Any]) -> list[str]:
    shown = f"**{name}**" if name.startswith(OURS) else name
    quality = [number(_or_nan(row[measure]), digits=4) for measure in ("log_likelihood", "accuracy")]
    times = [number(_or_nan(seconds)) for seconds in row["seconds"]]
    measures = [level["measure"] for level in summary["levels"]]
    ratios = [number(_or_nan(_ratio(row, summary, measures.index(measure)))) for measure in MEASURES]
    costs = [number(_or_nan(row["seconds_per_epoch"])), number(_or_nan(row["memory_mb"]), digits=0)]
    return [shown, *quality, *times, *ratios, *costs, row["note"].replace("|", "/").replace("\n", " ")]


def _ratio(row: dict[str, Any], summary: dict[str, Any], n: int) -> float | None:
    """Time to a level over that of the first of ours."""
    ours = summary["first"][n]["ours"]
    if ours is None or row["seconds"][n] is None:
        return None
    return row["seconds"][n] / summary["rows"][ours]["seconds"][n]


def _order(item: tuple[str, dict[str, Any]]) -> tuple[Any, ...]:
    """By the time to the levels, the closest to the best first; then by what was reached."""
    name, row = item
    times = tuple(float("inf") if seconds is None else seconds for seconds in row["seconds"])
    return (*times, -(row["log_likelihood"] or float("-inf")), -(row["accuracy"] or 0.0), name)


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else value


def _line(texts: list[str]) -> str:
    return "| " + " | ".join(texts) + " |"


def _frames(entrants: dict[str, Any]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Curves and ends, as the figures of experiments take them."""
    runs = [(name, seed, run) for name, entry in entrants.items() for seed, run in enumerate(entry["runs"])]
    points = [
        {
            "method": name,
            "seed": seed,
            "seconds": point["seconds"],
            "epoch": 1.0 if point["epochs"] is None else point["epochs"],
            "test_log_likelihood": point["log_likelihood"],
            "test_accuracy": point["accuracy"],
        }
        for name, seed, run in runs
        for point in run["curve"]
    ]
    rows = pd.DataFrame(points)
    if len(rows):
        rows = rows.astype({"test_log_likelihood": float, "test_accuracy": float})
    return rows, pd.DataFrame([{"method": name, "seed": seed, "status": run["status"]} for name, seed, run in runs])


def _drawn(rows: pd.DataFrame, ended: pd.DataFrame, plot: Plot, dataset: str) -> Figure:
    """A figure of all entrants, ours in wide lines."""
    figure = draw(rows, ended, plot, title=f"{dataset}: {plot.title.lower()}")
    figure.set_size_inches(7.6, 5.2)
    for line in figure.axes[0].get_lines():
        ours = str(line.get_label()).startswith(OURS)
        line.set(linewidth=2.6 if ours else 1.0, zorder=4 if ours else 2)
    return figure

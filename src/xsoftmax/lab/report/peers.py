"""Tables and figures of the benchmark beside other programs."""

from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from xsoftmax.lab.report.figures import PLOTS, Plot, draw, save
from xsoftmax.lab.report.quality import RANKING
from xsoftmax.lab.report.tables import number

OURS = "xsoftmax-"
DRAWN = [plot for plot in PLOTS if plot.x == "seconds"]


def markdown(found: dict[str, Any], summaries: dict[str, dict[str, Any]], sentences: dict[str, list[str]]) -> str:
    """Write everything as Markdown: per data set two tables of all entrants, the best on top, and what to say of it.

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
    several = ", several labels per row" if data.get("multilabel") else ""
    sizes = f"{data['n_train']:,} rows, {data['n_features']:,} features, {data['n_classes']:,} classes{several}"
    if summary["measures"] is RANKING:
        tables = ["", *_ranking_table(summary)]
    else:
        tables = [line for measure in summary["measures"] for line in ("", *_table(summary, measure))]
    clock = " Seconds are those that a run computed." if data.get("clock") == "cpu" else ""
    return "\n".join(
        [f"### {dataset}", "", f"{sizes}.{clock}", *tables, "", *(f"- {each}" for each in sentences), ""]
    )


def _table(summary: dict[str, Any], measure: str) -> list[str]:
    """One table by one measure, the best on top; who has no value stands below in the first one, to say why."""
    numbers = [n for n, level in enumerate(summary["levels"]) if level["measure"] == measure]
    shares = [f"s to −{summary['levels'][n]['share']:.0%}".replace("%", " %") for n in numbers]
    head = ["", summary["measures"][measure], "at s", *shares, "÷ ours", "s/epoch", "MB", "note"]
    rows = sorted(summary["rows"].items(), key=lambda item: _order(item, measure))
    shown = (
        rows if measure == next(iter(summary["measures"])) else [(name, row) for name, row in rows if row[measure]]
    )
    lines = [_cells(name, row, summary, measure, numbers) for name, row in shown]
    return [line_of(head), line_of(["---", *["--:"] * (len(head) - 2), "---"]), *map(line_of, lines)]


def _ranking_table(summary: dict[str, Any]) -> list[str]:
    """One table by P@k and PSP@k of rows with several labels, the best P@1 on top."""
    lines = []
    for name, row in sorted(summary["rows"].items(), key=lambda item: _order(item, next(iter(RANKING)))):
        found = [row[measure] for measure in RANKING]
        values = [number(_or_nan(each and each.value), digits=4) for each in found]
        seconds = number(max((each.seconds for each in found if each), default=float("nan")))
        shown = f"**{name}**" if name.startswith(OURS) else name
        memory = number(_or_nan(row["memory_mb"]), digits=0)
        lines.append([shown, *values, seconds, memory, row["note"].replace("|", "/").replace("\n", " ")])
    head = ["", *RANKING.values(), "at s", "MB", "note"]
    return [line_of(head), line_of(["---", *["--:"] * (len(head) - 2), "---"]), *map(line_of, lines)]


def _cells(name: str, row: dict[str, Any], summary: dict[str, Any], measure: str, numbers: list[int]) -> list[str]:
    value, seconds = (row[measure].value, row[measure].seconds) if row[measure] else (None, None)
    shown = f"**{name}**" if name.startswith(OURS) else name
    times = [number(_or_nan(row["seconds"][n])) for n in numbers]
    costs = [number(_or_nan(row["seconds_per_epoch"])), number(_or_nan(row["memory_mb"]), digits=0)]
    ratio = number(_or_nan(_ratio(row, summary, numbers[0])))
    note = row["note"].replace("|", "/").replace("\n", " ")
    return [shown, number(_or_nan(value), digits=4), number(_or_nan(seconds)), *times, ratio, *costs, note]


def _ratio(row: dict[str, Any], summary: dict[str, Any], n: int) -> float | None:
    """Time to a level over that of the first of ours."""
    ours = summary["first"][n]["ours"]
    if ours is None or row["seconds"][n] is None:
        return None
    return row["seconds"][n] / summary["rows"][ours]["seconds"][n]


def _order(item: tuple[str, dict[str, Any]], measure: str) -> tuple[Any, ...]:
    """By what was reached; then by its time."""
    name, row = item
    found = row[measure]
    return (-found.value, found.seconds, name) if found else (float("inf"), float("inf"), name)


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else value


def line_of(texts: list[str]) -> str:
    """Write the cells of a row of a table."""
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

"""Ours beside other programs: a table for each data set, and how fast everybody learns."""

from typing import Any

import matplotlib as mpl
import seaborn as sns
from matplotlib.figure import Figure

from xsoftmax.lab.report.appearance import appearances_of
from xsoftmax.lab.report.leaderboard import standing, summaries, verdict, verdicts
from xsoftmax.lab.report.peers import OURS, markdown
from xsoftmax.lab.report.suites import style
from xsoftmax.lab.report.targets import targets_table

PANELS = {"log_likelihood": "test log-likelihood (nats)", "accuracy": "test accuracy"}


def blocks(content: dict[str, Any]) -> dict[str, str]:
    """Give ``targets``, whether they are met and how ours stand on each data set, and ``peers``, the tables."""
    found = content["datasets"]
    summary = summaries(found)
    sentences = verdicts(found, summary)
    said = "\n".join(
        f"- **{dataset}**: {' '.join([verdict(found[dataset], each), *standing(each)]).strip()}"
        for dataset, each in summary.items()
    )
    targets = f"{targets_table(content)}\n\n{said}".lstrip()
    return {"targets": targets, "peers": markdown(found, summary, sentences)}


def figures(content: dict[str, Any]) -> dict[str, Figure]:
    """Draw log-likelihood and accuracy against seconds of training, a row of panels for each data set."""
    found = {name: each["entrants"] for name, each in content["datasets"].items() if _curves(each)}
    return {"peers": _draw(found)} if found else {}


def _curves(dataset: dict[str, Any]) -> bool:
    return any(run["curve"] for entry in dataset.get("entrants", {}).values() for run in entry["runs"])


def _draw(found: dict[str, dict[str, Any]]) -> Figure:
    names = dict.fromkeys(name for entrants in found.values() for name in entrants)
    drawn = appearances_of(name.removeprefix(OURS) for name in names)
    with style():
        figure = Figure(figsize=(8.6, 2.5 * len(found) + 1.6), layout="constrained")
        grid = figure.subplots(len(found), len(PANELS), squeeze=False)
        handles: dict[str, Any] = {}
        for row, (dataset, entrants) in zip(grid, found.items(), strict=True):
            for axes, (measure, label) in zip(row, PANELS.items(), strict=True):
                values = []
                for name, entry in entrants.items():
                    for run in entry["runs"]:
                        begun = [point for point in run["curve"] if point["epochs"] != 0]
                        points = [(p["seconds"], p[measure]) for p in begun if p[measure] is not None]
                        if points:
                            (handles[name],) = axes.plot(*zip(*points, strict=True), label=name, **_line(name, drawn))
                            values += [value for _, value in points]
                axes.set_xscale("log")
                axes.set(title=f"{dataset}: {label}")
                if measure == "log_likelihood" and values:
                    top = max(values)
                    axes.set_ylim(top - 1.5 * abs(top) - 0.1, top + 0.05 * abs(top))
        figure.supxlabel("seconds of training (log scale)", fontsize=9)
        shown = sorted(handles, key=lambda name: (not name.startswith(OURS), name))
        figure.legend([handles[name] for name in shown], shown, loc="outside upper center", ncols=3, frameon=False)
        sns.despine(figure)
    return figure


def _line(name: str, drawn: dict[str, Any]) -> dict[str, Any]:
    """Ours in wide, unbroken lines; who trains only once is a point."""
    ours, appearance = name.startswith(OURS), drawn[name.removeprefix(OURS)]
    size = mpl.rcParams["lines.markersize"]
    return {
        "color": appearance.color,
        "marker": appearance.marker,
        "linestyle": "-" if ours else appearance.linestyle,
        "linewidth": 2.2 if ours else 0.9,
        "markersize": size * (0.7 if ours else 0.5),
        "zorder": 4 if ours else 2,
    }

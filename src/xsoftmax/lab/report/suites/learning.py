"""The advice: how well it predicts times, and what it would have advised on data sets that it does not know."""

import math
import statistics
from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from xsoftmax.internal.text import duration
from xsoftmax.lab.report.appearance import appearances_of
from xsoftmax.lab.report.suites import style, table

NEAR = 1.1


def blocks(content: dict[str, Any]) -> dict[str, str]:
    """Give the tables ``advice``, ``trials`` and ``candidates``."""
    return {
        "advice": _advice(content["left_out"]),
        "trials": _trials(content["verdicts"]),
        "candidates": _candidates(content),
    }


def figures(content: dict[str, Any]) -> dict[str, Figure]:
    """Draw the best curve of every candidate on every data set."""
    return {"candidates": _draw(content["curves"])} if content["curves"] else {}


def _advice(trials: list[dict[str, Any]]) -> str:
    rows = [
        (
            trial["dataset"],
            f"{100 * trial['gap']:g} %",
            trial["best"],
            duration(trial["best_seconds"]),
            trial["advised"],
            "–" if trial["seconds"] is None else duration(trial["seconds"]),
            "–" if trial["seconds"] is None else f"**{trial['seconds'] / trial['best_seconds']:.2f}**",
        )
        for trial in trials
    ]
    return _outcome(trials) + table(["data set", "gap", "fastest", "in", "advised", "in", "ratio"], rows, right=1)


def _outcome(trials: list[dict[str, Any]]) -> str:
    """Say how many cases came how near."""
    if not trials:
        return ""
    ratios = [math.inf if each["seconds"] is None else each["seconds"] / each["best_seconds"] for each in trials]
    near, twice = (sum(ratio <= limit for ratio in ratios) / len(ratios) for limit in (NEAR, 2))
    return (
        f"Of {len(ratios)} cases, {100 * near:.0f} % came within 10 % of the fastest and {100 * twice:.0f} % within "
        f"a factor of two; {sum(map(math.isinf, ratios))} did not get there; the median ratio is "
        f"{statistics.median(ratios):.2f}.\n\n"
    )


def _trials(verdicts: list[dict[str, float]]) -> str:
    rows = [(f"{each['epochs']:g}", f"{100 * each['near']:.0f} %", str(each["cases"])) for each in verdicts]
    return table(["epochs of a trial", "near the best rate", "cases"], rows, right=0)


def _candidates(content: dict[str, Any]) -> str:
    settings, errors = content["candidates"], content["cost_errors"]
    rows = [(name, settings[name].get("source", ""), f"{100 * errors[name]:.0f} %") for name in settings]
    return table(["candidate", "what it is", "error of fitted times"], rows, right=1)


def _draw(curves: list[dict[str, Any]]) -> Figure:
    """One panel per data set: validation log-likelihood against seconds, the best rate of each candidate."""
    datasets = list(dict.fromkeys(curve["dataset"] for curve in curves))
    methods = list(dict.fromkeys(curve["method"] for curve in curves))
    columns, styles = 3, appearances_of(methods)
    with style():
        figure = Figure(figsize=(8.6, 2.3 * -(-len(datasets) // columns)), layout="constrained")
        panels = figure.subplots(-(-len(datasets) // columns), columns, squeeze=False).ravel()
        for axes in panels[len(datasets) :]:
            axes.set_axis_off()
        for axes, dataset in zip(panels, datasets, strict=False):
            shown = []
            for method in methods:
                own = [curve for curve in curves if (curve["dataset"], curve["method"]) == (dataset, method)]
                best = max(own, key=_best, default=None)
                if best is not None:
                    points = pd.DataFrame(best["points"], columns=["epochs", "seconds", "value"]).dropna()
                    drawn = styles[method]
                    axes.plot(
                        *(points.seconds, points.value),
                        color=drawn.color,
                        linestyle=drawn.linestyle,
                        label=method,
                        linewidth=1.2,
                    )
                    shown.append(points.value.max())
            axes.set_xscale("log")
            axes.xaxis.set_minor_formatter(NullFormatter())
            top = max(shown)
            axes.set_ylim(top - 1.5 * abs(top) - 0.1, top + 0.05 * abs(top))
            axes.set_title(dataset)
        figure.supxlabel("seconds of training (log scale)", fontsize=9)
        figure.supylabel("validation log-likelihood (nats)", fontsize=9)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False)
        sns.despine(figure)
    return figure


def _best(curve: dict[str, Any]) -> float:
    return max((value for _, _, value in curve["points"] if value is not None), default=float("-inf"))

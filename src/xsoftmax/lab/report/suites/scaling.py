"""Scaling: cost per step as one size grows, and peak memory against its formula."""

from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from xsoftmax.internal.text import duration, megabytes
from xsoftmax.lab.report.appearance import COLORS, MARKERS
from xsoftmax.lab.report.scales import plain_ticks, set_ticks
from xsoftmax.lab.report.suites import promised, style, table

AXES = {
    "classes": "classes",
    "features": "features",
    "sampled": "classes drawn per step",
    "threads": "threads",
}


def blocks(content: dict[str, Any]) -> dict[str, str]:
    """Give the tables ``growth``, ``scaling`` and ``memory``."""
    results = content["results"]
    return {"growth": _growth(results), "scaling": _scaling(points(results)), "memory": _memory(results)}


def figures(content: dict[str, Any]) -> dict[str, Figure]:
    """Draw all sweeps in one figure, one panel per size that grows."""
    found = points(content["results"])
    return {} if found.empty else {"scaling": _draw(found)}


def points(results: list[dict[str, Any]]) -> pd.DataFrame:
    """Make one row per size of a sweep; ``seconds`` is the median of the rounds."""
    rows = [
        {"axis": found["axis"], "method": found["method"], "value": point[found["axis"]], "fixed": _fixed(found)}
        | {"seconds": float(np.median(point["seconds"]["wall"])), "bytes": point["bytes"]}
        for found in results
        if found["part"] == "steps"
        for point in found["points"]
    ]
    return pd.DataFrame(rows)


def _fixed(found: dict[str, Any]) -> str:
    """The sizes that stay as they are."""
    others = [name for name in ("classes", "features") if name != found["axis"]]
    return ", ".join(f"{found['points'][0][name]:,} {name}" for name in others)


def _scaling(found: pd.DataFrame) -> str:
    """One table per panel of the figure: methods in columns."""
    if found.empty:
        return ""
    parts = []
    for (axis, fixed), panel in found.groupby(["axis", "fixed"], sort=False):
        methods = list(dict.fromkeys(panel.method))
        by = panel.set_index(["value", "method"]).seconds
        rows = [
            (f"{value:,}", *(duration(by[value, name]) if (value, name) in by else "–" for name in methods))
            for value in sorted(set(panel.value))
        ]
        heading = table([AXES[str(axis)], *methods], rows, right=len(methods) + 1)
        parts.append(f"Time per step; {fixed}:\n\n{heading}\n")
    return "\n".join(parts)


def _growth(results: list[dict[str, Any]]) -> str:
    rows = [
        (found["method"], _fixed(found), f"{found['growth']:.3f}", promised(found["limit"], found["growth"]))
        for found in results
        if found["part"] == "steps" and found["growth"] is not None
    ]
    return table(["method", "at", "exponent", "at most"], rows, right=2)


def _memory(results: list[dict[str, Any]]) -> str:
    rows = [
        (
            found["method"],
            f"{found['classes']:,}",
            f"{found['features']:,}" + (f" ({found['nonzeros']} non-zero)" if found["nonzeros"] else ""),
            megabytes(found["model_and_optimizer"]),
            megabytes(found["peak"]),
            f"{found['ratio']:.3f}",
            promised(found["limit"], found["ratio"]),
            megabytes(found["estimate"]),
        )
        for found in results
        if found["part"] == "memory"
    ]
    headings = ["method", "classes", "features", "model + optimizer", "peak", "ratio", "at most", "our estimate"]
    return table(headings, rows, right=7)


def _draw(found: pd.DataFrame) -> Figure:
    panels = list(found.groupby(["axis", "fixed"], sort=False))
    methods = list(dict.fromkeys(found.method))
    with style():
        figure = Figure(figsize=(8.6, 2.6 * -(-len(panels) // 2)), layout="constrained")
        for place, ((axis, fixed), panel) in enumerate(panels):
            axes = figure.add_subplot(-(-len(panels) // 2), 2, place + 1)
            for name, curve in panel.groupby("method", sort=False):
                k = methods.index(name)
                axes.plot(curve.value, curve.seconds * 1e6, color=COLORS[k], marker=MARKERS[k], label=name)
            _finish(axes, str(axis), str(fixed), panel)
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
        sns.despine(figure)
    return figure


def _finish(axes: Axes, axis: str, fixed: str, panel: pd.DataFrame) -> None:
    """Label a panel; costs that grow in proportion are on logarithmic axes, those that should not grow begin at 0."""
    low, high = panel.seconds.min() * 1e6, panel.seconds.max() * 1e6
    axes.set_title(fixed)
    axes.set_xlabel(AXES[axis])
    axes.set_ylabel("µs per step")
    axes.set_ylim(0, 1.15 * high)
    if axis == "classes":
        axes.set_xscale("log")
    elif axis == "threads":
        axes.set_xticks(sorted(set(panel.value)))
    else:
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_ylim(0.8 * low, 1.25 * high)
        set_ticks(axes.xaxis, sorted(set(panel.value)))
        set_ticks(axes.yaxis, plain_ticks(0.8 * low, 1.25 * high))

"""Figures of a paper's page: panels of lines side by side, methods in the looks that they have everywhere."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from xsoftmax.lab.report.appearance import Appearance, appearances_of
from xsoftmax.lab.report.figures import SETTINGS
from xsoftmax.lab.report.scales import plain_ticks, set_ticks
from xsoftmax.lab.reproduction.results import Results

WIDTH, HEIGHT = 4.3, 3.4


@dataclass(frozen=True)
class Line:
    """One line, and the band from the least to the greatest seed; ``method`` gives it its look."""

    label: str
    x: np.ndarray
    y: np.ndarray
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    method: str | None = None
    style: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Panel:
    """One pair of axes; ``also`` draws what is no line, see ``drawings``."""

    title: str
    lines: Sequence[Line]
    x: str
    y: str
    x_scale: str = "linear"
    y_scale: str = "linear"
    also: Callable[[Axes], None] | None = None


def figure_of(panels: Sequence[Panel], columns: int = 3, first: Sequence[str] = ()) -> Figure:
    """Draw panels in rows; labels that are in several are in one legend, below, those of ``first`` in their order."""
    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    with mpl.rc_context(), sns.axes_style("ticks", {"axes.grid": True, "grid.color": "#e6e6e6"}):
        mpl.rcParams.update(SETTINGS)
        figure = Figure(figsize=(WIDTH * columns, HEIGHT * rows + 0.5), layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False)
        looks = appearances_of(line.method or line.label for panel in panels for line in panel.lines)
        for axes, panel in zip(grid.flat, panels, strict=False):
            _draw(axes, panel, looks)
        for axes in grid.flat[len(panels) :]:
            axes.set_visible(False)
        handles = {
            label: handle
            for axes in grid.flat
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        handles = {label: handles[label] for label in [*first, *handles] if label in handles}
        figure.legend(
            handles.values(),
            handles.keys(),
            loc="outside lower center",
            ncols=_columns_of_legend(handles, columns),
            frameon=False,
        )
        sns.despine(figure)
    return figure


def _columns_of_legend(labels: Collection[str], columns: int) -> int:
    """Tell how many labels stand side by side, two below a panel at most, so that none is cut off; in inches."""
    widest = 0.6 + 0.075 * max(map(len, labels), default=0)
    return max(1, min(len(labels), 2 * columns, int(WIDTH * columns / widest)))


def _draw(axes: Axes, panel: Panel, looks: Mapping[str, Appearance]) -> None:
    axes.set(title=panel.title, xlabel=panel.x, ylabel=panel.y, xscale=panel.x_scale, yscale=panel.y_scale)
    if panel.also is not None:
        panel.also(axes)
    for line in panel.lines:
        given = looks[line.method or line.label]
        style: dict[str, Any] = {"color": given.color, "linestyle": given.linestyle, "marker": given.marker}
        style |= {"markeredgecolor": "white", "markeredgewidth": 0.6, "markevery": max(1, len(line.x) // 12)}
        drawn = axes.plot(line.x, line.y, label=line.label, **{**style, **line.style})[0]
        if line.low is not None and line.high is not None:
            axes.fill_between(line.x, line.low, line.high, color=drawn.get_color(), alpha=0.18, linewidth=0)
    for axis, scale in ((axes.xaxis, panel.x_scale), (axes.yaxis, panel.y_scale)):
        if scale == "log":
            set_ticks(axis, plain_ticks(*axis.get_view_interval()))


def lines_of(
    results: Results,
    dataset: str,
    methods: Mapping[str, str],
    y: str,
    x: str = "epoch",
    of_y: Callable[[pd.Series], pd.Series] = lambda values: values,
    from_evaluation: int = 0,
) -> list[Line]:
    """Give one line per method: the mean over seeds of a column of their histories.

    Parameters
    ----------
    results : Results
    dataset : str
    methods : mapping of str to str
        What the paper calls them, by our names; those that were not trained are left out.
    y, x : str
        Columns of ``history.csv``.
    of_y : callable
        What is drawn of the column.
    from_evaluation : int
        Evaluations before it are left out: 1 leaves out the start, for which a logarithmic axis has no place.
    """
    found = []
    for method, label in methods.items():
        if results.has(dataset, method):
            histories = [
                fit.history.iloc[from_evaluation:] for fit in results.of(dataset, method) if not fit.diverged
            ]
            common = min((len(history) for history in histories), default=0)
            if common:
                values = np.array([of_y(history[y].iloc[:common]).to_numpy() for history in histories])
                places = np.mean([history[x].iloc[:common] for history in histories], axis=0)
                found.append(Line(label, places, values.mean(0), values.min(0), values.max(0), method))
    return found

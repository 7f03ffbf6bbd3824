"""The signal-to-noise ratio of proposals as a figure: computed and measured, relative to what is possible."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from xsoftmax.internal.files import written_aside
from xsoftmax.lab.report.appearance import BLACK, VERMILION
from xsoftmax.lab.report.figures import SETTINGS

_METADATA: dict[str, Any] = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None}}


def write_figure(table: pd.DataFrame, dataset: str, path: Path) -> None:
    """Draw the table of the verb `snr` as SVG, and as PNG beside it."""
    figure = draw(table, dataset)
    for kind, metadata in _METADATA.items():
        with mpl.rc_context(SETTINGS), written_aside(path.with_suffix(f".{kind}")) as aside:
            figure.savefig(aside, format=kind, metadata=metadata)


def draw(table: pd.DataFrame, dataset: str) -> Figure:
    """Draw one line of the figure per proposal, the best on top.

    Parameters
    ----------
    table : DataFrame
        With the columns of ``xsoftmax.evaluation.signal_to_noise.SignalToNoise.row``.
    dataset : str
        For the title.
    """
    rows = table.sort_values("eta_relative", kind="stable")
    with mpl.rc_context(), sns.axes_style("ticks", {"axes.grid": True, "grid.color": "#e6e6e6"}):
        mpl.rcParams.update(SETTINGS)
        figure = Figure(figsize=(6.8, 1.7 + 0.42 * len(rows)), layout="constrained")
        axes = figure.subplots()
        _limits(axes, rows)
        _points(axes, rows)
        axes.set_title(f"{dataset}: signal-to-noise ratio of negative sampling")
        axes.set_xlabel("$\\eta$ relative to its maximum; no proposal is below $(K-1)/K$ or above 1")
        handles, labels = axes.get_legend_handles_labels()
        figure.legend(handles[::-1], labels[::-1], loc="outside lower center", ncols=3, frameon=False)
        sns.despine(figure)
    return figure


def _limits(axes: Axes, rows: pd.DataFrame) -> None:
    """Show between which values every proposal is, and keep a margin on both sides."""
    lowest = 1 - 1 / int(rows.n_classes.iloc[0])
    outermost = (rows.eta_relative_measured + rows.standard_error).max()
    margin = 0.12 * (1 - lowest)
    high = max(1.0, outermost) + margin
    axes.set_xlim(lowest - margin, high)
    axes.axvspan(lowest - margin, lowest, color="#f0f0f0", linewidth=0, label="out of reach")
    axes.axvspan(1, high, color="#f0f0f0", linewidth=0)
    axes.axvline(1, color="#9a9a9a", linewidth=1)
    axes.axvline(lowest, color="#9a9a9a", linewidth=1)


def _points(axes: Axes, rows: pd.DataFrame) -> None:
    places = range(len(rows))
    axes.errorbar(
        rows.eta_relative_measured, places, xerr=rows.standard_error, fmt="o", color=VERMILION, capsize=4, zorder=3,
        label="measured, with standard error",
    )  # fmt: skip
    axes.plot(
        rows.eta_relative, places, linestyle="none", marker="|", color=BLACK, markersize=17, markeredgewidth=1.8,
        zorder=4, label="computed, eq. 16",
    )  # fmt: skip
    axes.set_yticks(places, list(rows.proposal))
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.grid(visible=False, axis="y")

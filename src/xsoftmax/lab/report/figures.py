"""Learning curves: test measures against training time and epochs, methods in fixed looks."""

import io
import math
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from xsoftmax.internal.files import write_text, written_aside
from xsoftmax.lab.report.appearance import Appearance, appearances_of
from xsoftmax.lab.report.scales import LEAST_GAP, set_scales
from xsoftmax.training.folders import DIVERGED

LABELS = {
    "seconds": "training time (seconds)",
    "epoch": "epochs",
    "test_log_likelihood": "test log-likelihood\n(nats per example, log scale)",
    "train_log_likelihood": "log-likelihood of up to 5,000 training rows\n(nats per example, log scale)",
    "test_accuracy": "test accuracy",
    "search_recall": "share of 100 training rows whose\nhighest other class is found",
    "gradient_found": "share of the gradient found,\nof 100 training rows",
    "gap": "regularised training log-loss\nabove the optimum (nats, log scale)",
}
SETTINGS: Any = {
    "svg.hashsalt": "xsoftmax",
    "svg.fonttype": "path",
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "legend.fontsize": 9.5,
    "legend.labelspacing": 0.7,
    "lines.linewidth": 1.7,
    "lines.markersize": 5,
    "savefig.dpi": 160,
}
SOFT = "#5f6368"
# Of a stored figure, by its kind: what would be another at each run.
METADATA: Any = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None}}
Lines = list[tuple[np.ndarray, np.ndarray]]
TITLE, NAME = 60, 24  # letters to a line of a title, and of a name in the legend


@dataclass(frozen=True)
class Plot:
    """One kind of figure: which column against which, and where it is stored."""

    x: str
    y: str
    title: str

    @property
    def name(self) -> str:
        """Give the last part of the file name, such as ``test-log-likelihood_by_seconds``."""
        return f"{self.y}_by_{self.x}".replace("_", "-").replace("-by-", "_by_")


PLOTS = (
    Plot("seconds", "test_log_likelihood", "Test log-likelihood against training time"),
    Plot("seconds", "test_accuracy", "Test accuracy against training time"),
    Plot("epoch", "test_log_likelihood", "Test log-likelihood against epochs"),
    Plot("epoch", "test_accuracy", "Test accuracy against epochs"),
    Plot("epoch", "train_log_likelihood", "Training log-likelihood against epochs"),
)
# Where a method searches.
SEARCHES = (
    Plot("epoch", "search_recall", "Recall of the search against epochs"),
    Plot("epoch", "gradient_found", "Share of the gradient that is found against epochs"),
)
# Where an experiment names a reference.
GAP = Plot("epoch", "gap", "Gap to the optimum against epochs")


def write_figures(
    table: pd.DataFrame, summary: pd.DataFrame, folder: Path, others: Sequence[Path] = ()
) -> list[Path]:
    """Draw all plots of all data sets as SVG and PNG; figures of an earlier call are removed.

    Parameters
    ----------
    table : DataFrame
        What `xsoftmax.lab.report.tables.curves` returns.
    summary : DataFrame
        What `xsoftmax.lab.report.tables.summary` returns.
    folder : Path
        Where ``<data set>_<plot>.svg`` and ``.png`` go.
    others : sequence of Path
        Figures that are there already, and stay.
    """
    written: list[Path] = [*others]
    for dataset, rows in table.groupby("dataset", sort=True):
        ended = summary[summary.dataset == dataset]
        for plot in (*PLOTS, *SEARCHES, GAP):
            if plot.y in rows and rows[plot.y].notna().any():
                figure = draw(rows, ended, plot, title=f"{dataset}: {plot.title.lower()}")
                written += save(figure, folder / f"{dataset}_{plot.name}")
    for path in set(folder.glob("*.svg")) | set(folder.glob("*.png")):
        if path not in written:
            path.unlink()
    return written


def draw(rows: pd.DataFrame, ended: pd.DataFrame, plot: Plot, title: str = "") -> Figure:
    """Draw the curves of one data set, with the legend beside the axes in the order of the outcome.

    Parameters
    ----------
    rows : DataFrame
        The curves of one data set.
    ended : DataFrame
        Its rows of the summary: which fits diverged.
    plot : Plot
        What to draw.
    title : str
        Above the axes.
    """
    with mpl.rc_context(), sns.axes_style("ticks", {"axes.grid": True, "grid.color": "#e6e6e6"}):
        mpl.rcParams.update(SETTINGS)
        figure = Figure(figsize=(6.0, 4.0), layout="constrained")
        axes = figure.subplots()
        curves(axes, rows, ended, plot)
        axes.set_title(_wrapped(title, TITLE), parse_math=False)
        legend(axes)
        sns.despine(figure)
    return figure


def curves(axes: Axes, rows: pd.DataFrame, ended: pd.DataFrame, plot: Plot) -> None:
    """Draw one line per method into ``axes``: the mean over its seeds, and a band from least to greatest.

    Only what all seeds that ended well have recorded goes into the mean. A seed that diverged is a line of
    its own, ending in a cross. A logarithmic axis begins with the first record after the start: there is no
    place on it for a start at (almost) zero. Where the summary has ``kept_epoch``, a ring marks the record of each
    seed whose weights its model has.
    """
    rows = rows.dropna(subset=[plot.x, plot.y])
    if plot == GAP:
        rows = rows[rows.gap >= 0]  # below is who has passed a reference that has not converged
        rows = rows.assign(gap=rows.gap.clip(lower=LEAST_GAP))
    set_scales(axes, rows, plot.x, plot.y)
    shown = rows[rows[plot.x] >= rows[rows.epoch > 0][plot.x].min()] if axes.get_xscale() == "log" else rows
    appearances = appearances_of(ended.method)
    for method, statuses in _by_outcome(shown, ended, plot.y):
        well, broken = _split(shown[shown.method == method], statuses, plot)
        _method(axes, appearances[method], _label(method, statuses), well, broken)
    _rings(axes, shown, ended, plot)
    axes.set_xlabel(LABELS.get(plot.x, plot.x))
    axes.set_ylabel(LABELS.get(plot.y, plot.y))


def legend(axes: Axes) -> None:
    """Name the methods to the right of the axes, best first."""
    if axes.get_legend_handles_labels()[0]:
        named = axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, handlelength=2.4)
        for text in named.get_texts():
            text.set_parse_math(False)


def _by_outcome(rows: pd.DataFrame, ended: pd.DataFrame, y: str) -> list[tuple[str, pd.Series]]:
    """Order the methods by their mean last value, diverged ones last; with how each seed ended."""
    last = rows.groupby(["method", "seed"])[y].last().groupby("method").mean()
    statuses = {name: group.set_index("seed").status for name, group in ended.groupby("method")}
    failed = {name: (status == DIVERGED).all() for name, status in statuses.items()}
    if y == GAP.y:
        last = -last
    names = sorted(statuses, key=lambda name: (failed[name], -last.get(name, -math.inf), name))
    return [(str(name), statuses[name]) for name in names]


def _split(rows: pd.DataFrame, statuses: pd.Series, plot: Plot) -> tuple[Lines, Lines]:
    """Take the curves of the seeds apart by how they ended."""
    well: Lines = []
    broken: Lines = []
    for seed, curve in rows.groupby("seed", sort=True):
        kind = broken if statuses[seed] == DIVERGED else well
        kind.append((curve[plot.x].to_numpy(), curve[plot.y].to_numpy()))
    return well, broken


def _method(axes: Axes, appearance: Appearance, label: str, well: Lines, broken: Lines) -> None:
    """Draw one method: mean and band of the seeds that ended well, a line and a cross for others."""
    style: Any = {"color": appearance.color, "linestyle": appearance.linestyle}
    dots: Any = {"marker": appearance.marker, "markeredgecolor": "white", "markeredgewidth": 0.6}
    common = min((len(x) for x, _ in well), default=0)
    x = np.array([x[:common] for x, _ in well]).reshape(len(well), common)
    y = np.array([y[:common] for _, y in well]).reshape(len(well), common)
    mean = (x.mean(axis=0), y.mean(axis=0)) if well else ([], [])
    axes.plot(*mean, label=label, **dots, **style)
    if len(well) > 1:
        axes.fill_between(mean[0], y.min(axis=0), y.max(axis=0), color=appearance.color, alpha=0.18, linewidth=0)
    for x_seed, y_seed in broken:
        axes.plot(x_seed, y_seed, linewidth=1, **style)
        axes.plot(x_seed[-1:], y_seed[-1:], "x", color=appearance.color, markersize=9, markeredgewidth=2.2)


def _rings(axes: Axes, rows: pd.DataFrame, ended: pd.DataFrame, plot: Plot) -> None:
    """Mark the records whose weights were kept, those that are known and on the axes."""
    if "kept_epoch" not in ended:
        return
    known = ended[ended.status != DIVERGED].dropna(subset="kept_epoch").astype({"kept_epoch": float})
    found = rows.merge(known[["method", "seed", "kept_epoch"]], on=["method", "seed"])
    kept = found[np.isclose(found.epoch, found.kept_epoch, rtol=1e-9, atol=0)]
    if len(kept):
        colors = [appearance.color for appearance in map(appearances_of(ended.method).get, kept.method) if appearance]
        ring: Any = {"s": 70, "facecolors": "none", "linewidths": 1.1, "zorder": 3}
        axes.scatter(kept[plot.x], kept[plot.y], edgecolors=colors, **ring)
        axes.scatter([], [], edgecolors=SOFT, label="kept", **ring)


def _label(method: str, statuses: pd.Series) -> str:
    n_diverged, name = int((statuses == DIVERGED).sum()), _wrapped(method, NAME)
    if n_diverged in (0, len(statuses)):
        return f"{name} (diverged)" if n_diverged else name
    return f"{name}\n({n_diverged} of {len(statuses)} diverged)"


def _wrapped(text: str, width: int) -> str:
    """Break a text into lines, so that what is beside it keeps its place."""
    return textwrap.fill(text, width)


def save(figure: Figure, stem: Path, kinds: Sequence[str] = tuple(METADATA)) -> list[Path]:
    """Store a figure as SVG, PNG or both, without a date or a version in it."""
    paths = []
    for kind in kinds:
        paths.append(stem.with_name(f"{stem.name}.{kind}"))
        with mpl.rc_context(SETTINGS), written_aside(paths[-1]) as aside:
            figure.savefig(aside, format=kind, metadata=METADATA[kind])
    return paths


def save_plain(figure: Figure, path: Path, style: Any) -> None:
    """Store a figure as SVG without a date or a version in it, coordinates to a hundredth of a point."""
    text = io.StringIO()
    with mpl.rc_context(style):
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    write_text(path, re.sub(r"(\d\.\d\d)\d+", r"\1", text.getvalue()))

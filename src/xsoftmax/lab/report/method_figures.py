"""One small figure per method: its learning curve before those of all others, for the documentation's pages."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import seaborn as sns
import yaml
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from xsoftmax.internal.errors import InputError
from xsoftmax.internal.files import written_aside
from xsoftmax.lab.report.figures import LABELS, SETTINGS, save_plain
from xsoftmax.lab.report.scales import set_scales

MEASURE = "test_log_likelihood"
OUTCOME = ["dataset", "method", "status", "epochs", "seconds", MEASURE, "test_accuracy"]
GREY, DARK, ACCENT = "#d4d4d4", "#1a1a1a", "#d55e00"
STYLE: Any = SETTINGS | {
    "svg.fonttype": "none",
    "font.size": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
}


def write_method_figures(results: Path, folder: Path, optimum: str) -> list[Path]:
    """Draw ``<method>.svg`` for every method of an experiment, and write how each ended to ``outcome.csv``.

    Its column ``set`` has what the experiment's ``set:`` changed for the method, if `config.yaml` is there to say.

    Parameters
    ----------
    results : Path
        A folder that `compare` has filled, of one data set.
    folder : Path
        Where the figures go; those of methods that are no longer there are removed.
    optimum : str
        The method whose last value is drawn as a line for all to be compared with.

    Raises
    ------
    InputError
        If `compare` has not been run, there are several data sets, or ``optimum`` is not among the methods.
    """
    curves, summary = _read(results / "curves.csv"), _read(results / "summary.csv")
    if summary.dataset.nunique() != 1:
        raise InputError(f"{results} has {summary.dataset.nunique()} data sets; the figures need exactly one")
    if optimum not in set(summary.method):
        raise InputError(f"{results} has no method {optimum!r}; known: {', '.join(sorted(summary.method))}")
    best = float(summary[summary.method == optimum][MEASURE].iloc[0])
    written = []
    for method in sorted(set(summary.method)):
        written.append(folder / f"{method}.svg")
        save_plain(draw(curves, str(method), optimum, best), written[-1], STYLE)
    for path in set(folder.glob("*.svg")) - set(written):
        path.unlink()
    with written_aside(folder / "outcome.csv") as aside:
        changes = _changes(results / "config.yaml")
        changed = [changes.get(method, "") for method in summary.method]
        aside.write_text(summary[OUTCOME].assign(set=changed).sort_values("method").to_csv(index=False))
    return written


def _changes(path: Path) -> dict[str, str]:
    """What an experiment sets for each method, as "optimizer.learning_rate 0.3, l2 1"; its file may be missing."""
    config = yaml.safe_load(path.read_text(encoding="utf-8")) if path.exists() else {}
    changes = config.get("set") or {}
    return {method: ", ".join(_flat(settings)) for method, settings in changes.items()}


def _flat(settings: Any, prefix: str = "") -> list[str]:
    if not isinstance(settings, dict):
        return [f"{prefix} {settings}"]
    dot = "." if prefix else ""
    return [text for key, value in settings.items() for text in _flat(value, f"{prefix}{dot}{key}")]


def draw(curves: pd.DataFrame, method: str, optimum: str, best: float) -> Figure:
    """Draw one method's test log-likelihood over epochs and over seconds; ``best``: the optimum's last value."""
    with mpl.rc_context(), sns.axes_style("ticks", {"axes.grid": False}):
        mpl.rcParams.update(STYLE)
        figure = Figure(figsize=(6.4, 2.4), layout="constrained")
        for axes, x in zip(figure.subplots(1, 2, sharey=True), ("epoch", "seconds"), strict=True):
            _panel(axes, curves, x, method, best, optimum)
        figure.axes[0].set_ylabel("test log-likelihood\n(nats, log scale)")
        figure.axes[1].legend(loc="lower right", frameon=False, fontsize=7)
        sns.despine(figure)
    return figure


def _panel(axes: Axes, curves: pd.DataFrame, x: str, method: str, best: float, optimum: str) -> None:
    rows = curves.dropna(subset=[x, MEASURE])
    set_scales(axes, rows, x, MEASURE)
    if axes.get_xscale() == "log":
        rows = rows[rows.epoch > 0]
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0) if x == "epoch" else (1.0,)))
    axes.plot(*_joined(rows[rows.method != method], x), color=GREY, linewidth=0.7, zorder=1, label="_others")
    axes.axhline(best, color=DARK, linewidth=0.8, linestyle="--", zorder=2, label=f"end of {optimum}")
    for k, (_, curve) in enumerate(rows[rows.method == method].groupby("seed")):
        label = "_" if k else method
        axes.plot(curve[x], curve[MEASURE], color=ACCENT, marker="o", markersize=2.5, zorder=3, label=label)
    axes.set_xlabel(LABELS[x])


def _joined(rows: pd.DataFrame, x: str) -> tuple[np.ndarray, np.ndarray]:
    """Join curves into one line with gaps, which takes half the bytes of as many lines."""
    gap = pd.DataFrame({x: [np.nan], MEASURE: [np.nan]})
    parts = [part for _, curve in rows.groupby(["method", "seed"], sort=True) for part in (curve[[x, MEASURE]], gap)]
    table = pd.concat(parts) if parts else gap
    return table[x].to_numpy(), table[MEASURE].to_numpy()


def _read(path: Path) -> pd.DataFrame:
    if not path.exists():
        raise InputError(f"{path} is missing; run `python -m xsoftmax compare` first")
    return pd.read_csv(path)

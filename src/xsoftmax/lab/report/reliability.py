"""Reliability curves: accuracy against confidence on test rows, a line per method, a figure per data set."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from xsoftmax.lab.report.appearance import Appearance, appearances_of
from xsoftmax.lab.report.figures import SETTINGS, SOFT, Plot, legend, save
from xsoftmax.training.folders import Fit

RELIABILITY = Plot("confidence", "reliability", "Test accuracy against confidence")


def write_reliability(fits: Sequence[Fit], folder: Path) -> list[Path]:
    """Draw each data set's figure as SVG and PNG, where fits have been evaluated with it; give the paths."""
    written: list[Path] = []
    for dataset, group in groupby(fits, lambda fit: fit.dataset):
        known = [fit for fit in group if _bins(fit)]
        if known:
            title = f"{dataset}: {RELIABILITY.title.lower()}"
            written += save(draw_reliability(known, title), folder / f"{dataset}_{RELIABILITY.name}")
    return written


def draw_reliability(fits: Sequence[Fit], title: str) -> Figure:
    """Draw a line per method, the mean over its seeds bin by bin; on the diagonal, confidence is accuracy."""
    with mpl.rc_context(), sns.axes_style("ticks", {"axes.grid": True, "grid.color": "#e6e6e6"}):
        mpl.rcParams.update(SETTINGS)
        figure = Figure(figsize=(6.0, 4.0), layout="constrained")
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], color=SOFT, linewidth=1, linestyle=(0, (4, 3)))
        appearances = appearances_of(fit.method for fit in fits)
        for error, method, curves in sorted(_by_method(fits), key=lambda found: found[:2]):
            _line(axes, appearances[method], f"{method} ({error:.3f})", curves)
        axes.set(
            xlim=(0, 1), ylim=(0, 1), xlabel="confidence (probability of the likeliest class)", ylabel="accuracy"
        )
        axes.set_title(title, parse_math=False)
        legend(axes)
        sns.despine(figure)
    return figure


def _bins(fit: Fit) -> dict[str, Any]:
    found: dict[str, Any] = (fit.metrics.get("reliability") or {}).get("test") or {}
    return found if found.get("n") and not fit.diverged else {}


def _by_method(fits: Sequence[Fit]) -> list[tuple[float, str, list[dict[str, Any]]]]:
    """Give each method's mean calibration error, its name, and the curves of its seeds."""
    found: dict[str, list[Fit]] = {}
    for fit in fits:
        found.setdefault(fit.method, []).append(fit)
    return [
        (
            float(np.mean([fit.metrics["test"]["expected_calibration_error"] for fit in seeds])),
            method,
            list(map(_bins, seeds)),
        )
        for method, seeds in found.items()
    ]


def _line(axes: Axes, appearance: Appearance, label: str, curves: list[dict[str, Any]]) -> None:
    x, y = (np.mean([curve[key] for curve in curves], axis=0) for key in ("confidence", "accuracy"))
    dots: Any = {"marker": appearance.marker, "markeredgecolor": "white", "markeredgewidth": 0.6}
    axes.plot(x, y, color=appearance.color, linestyle=appearance.linestyle, label=label, **dots)

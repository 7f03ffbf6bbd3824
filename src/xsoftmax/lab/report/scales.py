"""Axes of the figures: scales on which curves stay apart, and ticks that read as plain numbers."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

LOG_FROM = 20  # the longest time over the shortest from which a logarithmic axis tells more
FEW = 5  # ticks that an axis needs to be read off
STEPS = ((1, 10), (1, 2, 5, 10), (1, 1.5, 2, 3, 4, 5, 7, 10))
LEAST_LOSS = 1e-4  # the least there is a place for on a mirrored logarithmic axis
LEAST_GAP = 1e-6  # float32 weights and scores hold no less
BELOW_START = 1.3  # times the log-loss at the start: what is still shown
MARGIN = 0.05


def set_scales(axes: Axes, rows: pd.DataFrame, x: str, y: str) -> None:
    """Choose both scales by the records after the start, which would squeeze the others.

    A log-likelihood lies on a mirrored logarithmic axis: the log-loss that is its negative, upside down, so
    that better is up and both 0.4 from 0.5 and 2 from 4 nats stay apart. What falls far below the start of
    training (an exploding fit) is cut off.

    Parameters
    ----------
    axes : Axes
        Where the curves are drawn.
    rows : DataFrame
        The curves of one data set.
    x, y : str
        The columns drawn.
    """
    rows = rows[np.isfinite(rows[y])]
    if rows.empty:
        return
    after = rows[rows.epoch > 0]
    after = rows if after.empty else after
    _scale_x(axes, rows, after, x)
    if y.endswith("log_likelihood"):
        start = rows[rows.epoch == rows.epoch.min()]
        _mirrored_log(axes, _losses(start, y).max(), _losses(after, y))
    elif y == "gap":
        low, high = float(after[y].min()), float(after[y].max())
        workspace = (high / low) ** MARGIN if high > low else 1 + MARGIN
        axes.set_yscale("log")
        axes.set_ylim(low / workspace, high * workspace)
    else:
        low, high = float(after[y].min()), float(after[y].max())
        margin = MARGIN * (high - low) or MARGIN
        axes.set_ylim(low - margin, high + margin)


def plain_ticks(low: float, high: float) -> list[float]:
    """Find round numbers between two positive ones for a logarithmic axis: five or more if the range is wide."""
    decades = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    for steps in STEPS:
        numbers = {float(f"{step * decade:.3g}") for decade in decades for step in steps}
        ticks = sorted(number for number in numbers if low <= number <= high)
        if len(ticks) >= FEW:
            return ticks
    ticks = [float(tick) for tick in MaxNLocator(FEW, steps=[1, 2, 5, 10]).tick_values(low, high)]
    return [tick for tick in ticks if low <= tick <= high]


def _scale_x(axes: Axes, rows: pd.DataFrame, after: pd.DataFrame, x: str) -> None:
    """Choose a logarithmic axis, from the first record after the start, where times differ much."""
    low, high = float(after[x].min()), float(rows[x].max())
    if high > LOG_FROM * low > 0:
        axes.set_xscale("log")
        workspace = (high / low) ** MARGIN
        axes.set_xlim(low / workspace, high * workspace)
        set_ticks(axes.xaxis, plain_ticks(low / workspace, high * workspace))
    elif x == "epoch":
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))


def _losses(rows: pd.DataFrame, y: str) -> np.ndarray:
    return np.maximum(-rows[y].to_numpy(), LEAST_LOSS)


def _mirrored_log(axes: Axes, start: float, losses: np.ndarray) -> None:
    low, high = min(float(losses.min()), start), min(float(losses.max()), BELOW_START * start)
    workspace = (high / low) ** MARGIN if high > low else 1 + MARGIN
    functions: Any = (
        lambda value: -np.log(np.maximum(-value, LEAST_LOSS / 10)),
        lambda place: -np.exp(-place),
    )
    axes.set_yscale("function", functions=functions)
    axes.set_ylim(-high * workspace, -low / workspace)
    set_ticks(axes.yaxis, [-tick for tick in plain_ticks(low / workspace, high * workspace)])


def set_ticks(axis: Axis, ticks: list[float]) -> None:
    """Mark these places alone, as plain numbers."""
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}".replace("-", "−")))

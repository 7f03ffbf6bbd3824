"""What a panel may show beside lines: bars, and points in a plane with the borders between classes."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes

from xsoftmax.model import Model

PLACES = 300  # of a grid, each way


class Series(NamedTuple):
    """Bars of one colour, one per group."""

    label: str
    color: str
    heights: np.ndarray


class Borders(NamedTuple):
    """A model of two features, whose classes' borders are drawn in a colour."""

    label: str
    color: str
    model: Model


def bars(groups: Sequence[str], series: Sequence[Series]) -> Callable[[Axes], None]:
    """Draw bars side by side, a bar of each series for each group."""
    width = 0.8 / len(series)

    def draw(axes: Axes) -> None:
        places = np.arange(len(groups))
        for j, one in enumerate(series):
            axes.bar(places + (j + 0.5) * width - 0.4, one.heights, width, color=one.color, label=one.label)
        axes.set_xticks(places, groups)

    return draw


def plane(X: np.ndarray, y: np.ndarray, borders: Sequence[Borders]) -> Callable[[Axes], None]:
    """Draw rows, a marker for each class, and where the models' highest scores change hands.

    Parameters
    ----------
    X : ndarray of shape (n_samples, 2)
    y : ndarray of shape (n_samples,), int32
    borders : sequence of Borders
    """
    low, high = X.min(axis=0) - 0.2, X.max(axis=0) + 0.2
    places = [np.linspace(low[j], high[j], PLACES, dtype=np.float32) for j in range(2)]

    def draw(axes: Axes) -> None:
        for k, marker in zip(np.unique(y), "osDv^<>ph*" * len(y), strict=False):
            axes.plot(*X[y == k].T, marker, color="#8c8c8c", markersize=4, markerfacecolor="none")
        for one in borders:
            for lead in leads(one.model, *places):
                axes.contour(*places, lead, [0.0], colors=[one.color], linewidths=1.2)
            axes.plot([], [], color=one.color, label=one.label)

    return draw


def leads(model: Model, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """By how much each class's score is above the highest other one.

    Parameters
    ----------
    model : Model
        Of two features.
    x, y : ndarray of shape (n_columns,) and (n_rows,)
        Of a grid.

    Returns
    -------
    ndarray of shape (n_classes, n_rows, n_columns)
    """
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    W = model.rows.astype(np.float64)
    scores = grid @ W[:, :2].T + W[:, 2]
    ordered = np.sort(scores, axis=1)
    others = np.where(scores == ordered[:, -1:], ordered[:, -2:-1], ordered[:, -1:])
    return (scores - others).T.reshape(-1, len(y), len(x))

"""What the interactive figure of a data set draws: every measure of every method against time, epochs and steps."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from xsoftmax.evaluation.metrics import SPLITS, known
from xsoftmax.lab.report.appearance import BLACK, Appearance
from xsoftmax.lab.report.figures import GAP, SEARCHES
from xsoftmax.training.folders import DIVERGED

AXES = {"seconds": "training time (s)", "epoch": "epochs", "step": "steps (training rows seen)"}
LOGARITHMIC = ("log_likelihood", GAP.y)
DIGITS = 8  # significant ones of a number that is drawn
WIDTH = 2  # of a line, in pixels
# Markers in matplotlib's letters, as plotly calls them, and as a letter of a legend.
MARKERS = {
    "o": ("circle", "●"),
    "s": ("square", "■"),
    "^": ("triangle-up", "▲"),
    "D": ("diamond", "◆"),
    "v": ("triangle-down", "▼"),
    "P": ("cross", "✚"),
    "<": ("triangle-left", "◀"),
    ">": ("triangle-right", "▶"),
    "p": ("pentagon", "⬟"),
    "h": ("hexagon", "⬢"),
    "*": ("star", "★"),
}


class Measure(NamedTuple):
    """A column that can be drawn, its name for people, and whether its axis is logarithmic at first."""

    name: str
    title: str
    logarithmic: bool


def color_of(appearance: Appearance) -> str:
    """Give a method's colour as CSS has it: black is the colour of the text, which is light on a dark page."""
    return "var(--ink)" if appearance.color == BLACK else appearance.color


def measures_of(rows: pd.DataFrame) -> list[Measure]:
    """List the measures that some fit of a data set has recorded: of test rows first."""
    names = [f"{split}_{column}" for split in reversed(SPLITS) for column, metric in known().items() if metric.shown]
    titles = {name: _title(name) for name in names}
    titles |= {plot.y: plot.title.partition(" against ")[0] for plot in (*SEARCHES, GAP)}
    return [
        Measure(name, title, name.endswith(LOGARITHMIC))
        for name, title in titles.items()
        if name in rows and rows[name].notna().any()
    ]


def curves_of(rows: pd.DataFrame, ended: pd.DataFrame, appearances: dict[str, Appearance]) -> dict[str, Any]:
    """Collect what is drawn of one data set.

    Parameters
    ----------
    rows : DataFrame
        Its rows of what `xsoftmax.lab.report.tables.curves` returns.
    ended : DataFrame
        Its rows of the summary: which fits diverged, and which epoch each kept.
    appearances : dict
        How each method looks, in the order in which they are listed.

    Returns
    -------
    dict
        ``axes``: columns by name; ``measures``: see ``Measure``; ``methods``: of each its looks, under ``curves`` by
        measure the mean over its seeds with the least and the greatest, ``kept``, the record that each seed kept, and
        ``broken``, the curves of seeds that diverged. Numbers that are not finite are None.
    """
    measures = measures_of(rows)
    names = [measure.name for measure in measures]
    columns = rows[["method", "seed", *AXES, *names]].merge(
        ended[["method", "seed", "status"]], on=["method", "seed"]
    )
    return {
        "axes": AXES,
        "measures": [measure._asdict() for measure in measures],
        "methods": [
            {
                "name": method,
                **look(appearance),
                **_method(columns[columns.method == method], names, _kept(ended, method)),
            }
            for method, appearance in appearances.items()
        ],
    }


def look(appearance: Appearance) -> dict[str, str]:
    """Give a method's looks in the words of CSS and plotly; ``mark`` is its marker as a letter."""
    symbol, mark = MARKERS[appearance.marker]
    dash = ",".join(f"{WIDTH * length:g}px" for length in appearance.dash) or "solid"
    return {"color": color_of(appearance), "dash": dash, "symbol": symbol, "mark": mark}


def _title(name: str) -> str:
    split, _, column = name.partition("_")
    return f"{split} {known()[column].heading}"


def _kept(ended: pd.DataFrame, method: str) -> dict[int, float]:
    """Give the epoch that each seed of a method kept, where that is known."""
    if "kept_epoch" not in ended:
        return {}
    own = ended[(ended.method == method) & (ended.status != DIVERGED)].dropna(subset="kept_epoch")
    return dict(zip(own.seed, own.kept_epoch.astype(float), strict=True))


def _method(rows: pd.DataFrame, names: list[str], kept: dict[int, float]) -> dict[str, Any]:
    seeds = {int(seed): rows[rows.seed == seed] for seed in sorted(set(rows.seed))}
    well = [own for own in seeds.values() if (own.status != DIVERGED).all()]
    records = {
        seed: own[np.isclose(own.epoch, kept[seed], rtol=1e-9, atol=0)] for seed, own in seeds.items() if seed in kept
    }
    return {
        "n_seeds": len(well),
        "curves": {name: _band([own.dropna(subset=name) for own in well], name) for name in names},
        "kept": [{"seed": seed, **_points(own, names)} for seed, own in records.items() if len(own)],
        "broken": [
            {"seed": seed, **_points(own, names)} for seed, own in seeds.items() if (own.status == DIVERGED).all()
        ],
    }


def _band(seeds: list[pd.DataFrame], name: str) -> dict[str, Any]:
    """Average what all seeds have recorded of a measure, and find its least and greatest."""
    common = min(map(len, seeds), default=0)
    stacked = {column: np.array([own[column][:common] for own in seeds], float) for column in (*AXES, name)}
    if not common:
        return {"x": {axis: [] for axis in AXES}, "mean": [], "low": [], "high": []}
    values = stacked[name]
    return {
        "x": {axis: _rounded(stacked[axis].mean(axis=0)) for axis in AXES},
        "mean": _rounded(values.mean(axis=0)),
        "low": _rounded(values.min(axis=0)),
        "high": _rounded(values.max(axis=0)),
    }


def _points(rows: pd.DataFrame, names: list[str]) -> dict[str, Any]:
    return {
        "x": {axis: _rounded(rows[axis].to_numpy(float)) for axis in AXES},
        "y": {name: _rounded(rows[name].to_numpy(float)) for name in names},
    }


def _rounded(values: np.ndarray) -> list[float | None]:
    return [float(f"{value:.{DIGITS}g}") if np.isfinite(value) else None for value in values.tolist()]

"""How long a trial must be: how often the rate that looks best after some epochs is near the best in the end."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from xsoftmax.advice.fit import best_of
from xsoftmax.advice.learned import gaps, seconds_to

EPOCHS = (0.1, 0.25, 0.5, 1, 2, 4)
GAPS = (0.05, 0.02)
NEAR = 1.1


def verdicts(curves: Sequence[Mapping[str, Any]]) -> list[dict[str, float]]:
    """For trials of some ``epochs``: ``near``, the share of data sets, methods and gaps where the rate with the best
    log-likelihood then is as fast to the gap as the best rate, but for a tenth; and how many ``cases`` there are.
    """
    ratios: dict[float, list[float]] = {epochs: [] for epochs in EPOCHS}
    for _, of_dataset in groupby(curves, key=lambda curve: curve["dataset"]):
        known = list(of_dataset)
        best = max(best_of(curve) for curve in known)
        for _, rates in groupby(known, key=lambda curve: curve["method"]):
            own = list(rates)
            for gap in GAPS:
                times = [_time_to(curve, gap, best) for curve in own]
                if np.isfinite(min(times)):
                    for epochs, found in ratios.items():
                        evaluations_best = int(np.argmax([_value_after(curve, epochs) for curve in own]))
                        found.append(times[evaluations_best] / min(times))
    return [
        {"epochs": epochs, "near": float(np.mean(np.array(found) <= NEAR)), "cases": len(found)}
        for epochs, found in ratios.items()
        if found
    ]


def _time_to(curve: Mapping[str, Any], gap: float, best: float) -> float:
    points = np.array(curve["points"], float)
    return seconds_to(gap, points[:, 1], gaps(points[:, 2], curve["facts"]["n_classes"], best))


def _value_after(curve: Mapping[str, Any], epochs: float) -> float:
    """Log-likelihood after so many epochs, interpolated between evaluations; a fit that diverged is the worst."""
    points = np.array(curve["points"], float)
    return float(np.interp(epochs, points[:, 0], np.nan_to_num(points[:, 2], nan=-1e9)))

"""Searches: short fits of one method with different settings, of which the best one's are taken."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xsoftmax.evaluation import metrics
from xsoftmax.internal.documents import read_json
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.outputs import CHOSEN
from xsoftmax.training.folders import Fit, read_history, read_status


@dataclass(frozen=True)
class Search:
    """What was tried, and what was chosen.

    Attributes
    ----------
    folder : Path
        With ``chosen.json`` and a folder for each trial.
    chosen : dict
        What ``choose`` gave.
    trials : list of Fit
        In the order of the grid, named by their folders; their metrics are empty.
    """

    folder: Path
    chosen: dict[str, Any]
    trials: list[Fit]

    @property
    def dataset(self) -> str:
        """Name the data set."""
        return self.trials[0].dataset

    @property
    def method(self) -> str:
        """Name the method."""
        return self.trials[0].method

    def content_hash(self) -> str:
        """Hash the trials and the choice: 32 hexadecimal digits."""
        parts = [json.dumps(self.chosen, sort_keys=True), *(trial.content_hash() for trial in self.trials)]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def read_search(folder: Path) -> Search:
    """Read what `choose` and `train` left of a search.

    Raises
    ------
    InputError
        If a file is missing, or not what they write.
    """
    chosen = read_chosen(folder / CHOSEN)
    return Search(folder, chosen, [_trial(folder / trial["name"]) for trial in chosen["trials"]])


def read_chosen(path: Path) -> dict[str, Any]:
    """Read what ``choose`` chose.

    Raises
    ------
    InputError
        If it is missing, or not what ``choose`` gives.
    """
    try:
        chosen = read_json(path)
        kinds: dict[str, Any] = {"by": str, "name": str, "settings": dict, "value": (int, float), "trials": list}
        if all(isinstance(chosen[key], kind) for key, kind in kinds.items()):
            names = [trial["name"] for trial in chosen["trials"]]
            if names and all(isinstance(name, str) for name in names):
                return chosen
    except (InputError, LookupError, TypeError):
        pass
    raise InputError(f"{path} is not what `choose` writes; search again")


def choose(folder: Path, grid: Mapping[str, Mapping[str, Any]], by: str) -> dict[str, Any]:
    """Take the trial whose model has the best value of a metric's column; of equal ones the first.

    Parameters
    ----------
    folder : Path
        With a folder for each trial: what `train` wrote.
    grid : mapping of str to mapping
        What each trial changes of its method, by its name.
    by : str
        A metric's column of ``history.csv``, such as ``validation_log_likelihood``; or ``objective``, what the
        method minimises.

    Returns
    -------
    dict
        ``by``; ``name``, ``settings`` and ``value`` of the best trial; and ``trials``, all of them with ``name``,
        ``settings`` and ``value`` (None if it diverged).

    Raises
    ------
    InputError
        If there is no such column, or all trials diverged.
    """
    sign = metrics.sign_of(by)
    trials: list[dict[str, Any]] = [
        {"name": name, "settings": settings, "value": _value(_trial(folder / name), by)}
        for name, settings in grid.items()
    ]
    known = [trial for trial in trials if trial["value"] is not None]
    if not known:
        raise InputError(f"{folder}: all trials diverged; search smaller rates than {', '.join(grid)}")
    return {"by": by, **max(known, key=lambda trial: sign * trial["value"]), "trials": trials}


def _trial(folder: Path) -> Fit:
    return Fit(folder, read_status(folder), {}, read_history(folder))


def _value(trial: Fit, by: str) -> float | None:
    if by not in trial.history or trial.history.empty:
        raise InputError(f"{trial.folder / 'history.csv'}: no column {by}; prepare the data with validation rows")
    if not trial.diverged and trial.history[by].isna().all():
        why = metrics.why_empty(by.partition("_")[2])
        raise InputError(f"{trial.folder / 'history.csv'}: column {by} is empty{why}; choose by another")
    kept = trial.status.get("kept") or {}
    rows = trial.history[trial.history["epoch"] == kept["epoch"]] if "epoch" in kept else trial.history
    value = float((rows if len(rows) else trial.history)[by].iloc[-1])
    return None if trial.diverged or not math.isfinite(value) else value

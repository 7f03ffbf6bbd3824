"""What a search over several data sets says of one setting: how far each of its values stays behind the best."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from xsoftmax.evaluation.metrics import sign_of
from xsoftmax.internal.documents import read_json
from xsoftmax.internal.errors import InputError
from xsoftmax.training.folders import flatten

FOLDER = Path("docs/choosing-a-rate")


def regrets_markdown(argument: str) -> str:
    """Write the table of a search and a setting, ``NAME:KEY``: what an experiment wrote is ``FOLDER / NAME.json``.

    Raises
    ------
    InputError
        If there is no such file, or nothing of that setting in it.
    """
    name, _, key = argument.partition(":")
    path = FOLDER / f"{name}.json"
    if not path.exists():
        raise InputError(f"{path}: no such file; copy results/{name}/searches.json there")
    found = regrets(read_json(path), key)
    if not found:
        raise InputError(f"{path}: nothing of {key!r} was searched; name a setting of the grid")
    values = sorted({value for of_method in found.values() for value in of_method})
    lines = [f"|  | {' | '.join(f'{value:g}' for value in values)} |", "| --- |" + " --: |" * len(values)]
    for method, of_method in found.items():
        cells = [f"{np.mean(of_method[value]):.3f}, {max(of_method[value]):.3f}" for value in values]
        lines.append(f"| {method} | {' | '.join(cells)} |")
    return "\n".join(lines)


def regrets(searches: Sequence[Mapping[str, Any]], key: str) -> dict[str, dict[float, list[float]]]:
    """Give, by method and value of a setting, how far the best trial of it is behind the best of all.

    Parameters
    ----------
    searches : sequence of mapping
        As in ``searches.json`` of an experiment.
    key : str
        Of the setting, such as ``optimizer.learning_rate``.

    Returns
    -------
    dict of dict of list of float
        One number a data set; infinite where all trials of that value diverged.
    """
    found: dict[str, dict[float, list[float]]] = {}
    for search in searches:
        best: dict[float, float] = {}
        sign = sign_of(search["by"])
        for trial in search["trials"]:
            value = flatten(trial["settings"]).get(key)
            if value is not None:
                reached = -math.inf if trial["value"] is None else sign * trial["value"]
                best[value] = max(best.get(value, -math.inf), reached)
        of_method = found.setdefault(search["method"], {}) if best else {}
        for value, reached in best.items():
            of_method.setdefault(value, []).append(max(best.values()) - reached)
    return found

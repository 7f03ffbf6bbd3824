"""Whether the parts of a fit's ``metrics.json`` that are drawn or listed are what `evaluate` writes."""

from typing import Any

from xsoftmax.internal.errors import InputError
from xsoftmax.training.folders import Fit

BINS = ("confidence", "accuracy", "n")
PAIR = {"true": str, "predicted": str, "n": int, "of": int}


def check_evaluated(fit: Fit) -> None:
    """Make sure that bins of confidence and confusions of test rows can be shown, where there are any.

    Raises
    ------
    InputError
        If they are made up or damaged.
    """
    for name, is_sound in (("reliability", _are_bins), ("confusions", _are_confusions)):
        of_splits = fit.metrics.get(name) or {}
        found = of_splits.get("test") if isinstance(of_splits, dict) else of_splits
        if found is not None and not is_sound(found):
            where = fit.folder / "metrics.json"
            raise InputError(f"{where}: {name} of test rows is not what evaluate writes; run it again for this fit")


def _are_bins(found: Any) -> bool:
    if not isinstance(found, dict) or not all(isinstance(found.get(name), list) for name in BINS):
        return False
    columns = [found[name] for name in BINS]
    return len({len(column) for column in columns}) == 1 and all(
        _is_number(value) for part in columns for value in part
    )


def _are_confusions(found: Any) -> bool:
    if not isinstance(found, dict) or not all(_is_number(found.get(name)) for name in ("n_wrong", "n_seen")):
        return False
    pairs = found.get("pairs")
    return isinstance(pairs, list) and all(
        isinstance(pair, dict) and all(isinstance(pair.get(name), kind) for name, kind in PAIR.items())
        for pair in pairs
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
